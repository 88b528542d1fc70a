"""Gathers all that checks may go by, from files, from saved runs, and from AWS where a training job is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from evaluator import strict_json
from evaluator.aws import Refused
from evaluator.clock import Clock
from evaluator.errors import EvaluatorError, InputError, Mistake
from evaluator.sagemaker.check_job import read_request
from evaluator.sagemaker.diagnose._aws import Aws
from evaluator.sagemaker.diagnose._checkpoints import Checkpoint, read_checkpoint
from evaluator.sagemaker.diagnose._efa import has_efa
from evaluator.sagemaker.diagnose._evidence import START_LIMIT, Evidence
from evaluator.sagemaker.diagnose._file_systems import PERIOD, Throughput, file_systems, throughput, throughput_of
from evaluator.sagemaker.diagnose._groups import security_groups
from evaluator.sagemaker.diagnose._job import JobFacts, job_facts
from evaluator.sagemaker.diagnose._lines import lines_of
from evaluator.sagemaker.diagnose._log import LogReader
from evaluator.sagemaker.diagnose._trial import TrialFacts, read_trial
from evaluator.sagemaker.diagnose._walking import signs

MOST_BYTES = 64 * 2**20
"""Bytes of a document; saved answers of AWS have far fewer."""
Read = TypeVar("Read")


@dataclass(frozen=True)
class Inputs:
    """What the user gave.

    Args:
        training_job: its name; AWS is asked about it.
        request: a file with a request or description.
    """

    training_job: str | None = None
    request: str | None = None
    trial: str | None = None
    other_trials: Sequence[str] = ()
    logs: Sequence[str] = ()
    checkpoints: Sequence[str] = ()
    security_groups: str | None = None
    file_systems: str | None = None
    metrics: str | None = None
    start_limit: float = START_LIMIT


class Gathering:
    """One gathering, which lists all mistakes before it gives up."""

    def __init__(self, inputs: Inputs, clock: Clock, tell: Callable[[str], None]) -> None:
        """Read nothing yet; `tell` is given what is being read."""
        self._inputs = inputs
        self._clock = clock
        self._tell = tell
        self._mistakes: list[Mistake] = []
        self._evidence = Evidence(clock.now(), inputs.start_limit)
        self._log = LogReader(signs())

    def gather(self) -> Evidence:
        """All that there is.

        Raises:
            InputError: something that was named is not there, or is not what it should be.
        """
        inputs, found = self._inputs, self._evidence
        # what is small comes first, so that mistakes are told before gigabytes are read
        found.groups = self._document(inputs.security_groups, security_groups)
        found.file_systems = self._document(inputs.file_systems, file_systems)
        done = self._document(inputs.metrics, throughput)
        if done is not None:
            found.throughput = {"": done}
        found.checkpoints = [one for path in inputs.checkpoints if (one := self._checkpoint(path)) is not None]
        if inputs.request is not None:
            self._document(inputs.request, self._request)
        self._refuse()
        if inputs.training_job is not None:
            self._ask(Aws(self._clock), inputs.training_job)
        found.trial = self._trial(inputs.trial, "trial")
        found.other_trials = [run for path in inputs.other_trials if (run := self._trial(path, "trial")) is not None]
        for path in inputs.logs:
            self._read_log(path)
        self._refuse()
        if self._log.facts.sources:
            found.log = self._log.close()
        return found

    def _refuse(self) -> None:
        if self._mistakes:
            raise InputError(self._mistakes)

    def _document(self, path: str | None, read: Callable[[object, str], Read | Mistake]) -> Read | None:
        """What a JSON file comes to."""
        if path is None:
            return None
        try:
            with Path(path).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise InputError([Mistake(path, f"is larger than {MOST_BYTES} bytes", "expected a JSON document")])
            result = read(strict_json.loads(data, path), path)
        except EvaluatorError as error:
            result = error.mistake
        except OSError as error:
            result = _unread(path, error)
        if not isinstance(result, Mistake):
            return result
        self._mistakes.append(result)
        return None

    def _request(self, document: object, where: str) -> JobFacts | Mistake:
        request = read_request(document, where)
        if isinstance(request, Mistake):
            return request
        self._evidence.request = request
        self._evidence.job = job_facts(document if isinstance(document, dict) else {})
        return self._evidence.job

    def _checkpoint(self, path: str) -> Checkpoint | None:
        read = read_checkpoint(path)
        if isinstance(read, Mistake):
            self._mistakes.append(read)
            return None
        return read

    def _trial(self, path: str | None, what: str) -> TrialFacts | None:
        if path is None:
            return None
        self._tell(f"reading {path}")
        try:
            return read_trial(path, self._clock)
        except InputError as error:
            self._mistakes += error.mistakes
        except EvaluatorError as error:
            # a storage that does not answer is nobody's mistake
            self._evidence.missing[what] = str(error)
        return None

    def _read_log(self, path: str) -> None:
        self._tell(f"reading {path}")
        try:
            with Path(path).open("rb") as file:
                self._log.read(lines_of(file), path)
        except OSError as error:
            self._mistakes.append(_unread(path, error))

    def _ask(self, aws: Aws, name: str) -> None:
        """What AWS knows of a training job; what it does not tell is missing, with its reason."""
        found = self._evidence
        self._tell(f"asking about {name}")
        try:
            document: Mapping[str, object] = aws.training_job(name)
        except Refused as error:
            if error.code in ("ValidationException", "ResourceNotFound"):
                right = "the name of a training job in this account and region"
                self._mistakes.append(Mistake("--training-job", f"there is no training job {name!r}", right))
            found.missing["job"] = str(error)
            return
        self._request(document, f"training job {name!r}")
        job = found.job or JobFacts()
        if found.groups is None and job.groups and has_efa(job.instance_type):
            found.groups = self._had("security_groups", lambda: security_groups(aws.security_groups(job.groups), "ec2"))
        if found.file_systems is None and job.file_systems:
            found.file_systems = self._had(
                "file_systems", lambda: file_systems(aws.file_systems(job.file_systems), "fsx")
            )
        if not found.throughput and job.file_systems and job.started is not None:
            end = max(job.ended if job.ended is not None else found.now, job.started + PERIOD)
            for system in job.file_systems:
                done = self._had("metrics", partial(_throughput, aws, system, job.started, end))
                found.throughput = found.throughput if done is None else {**found.throughput, system: done}
        self._tell(f"reading the logs of {name}")
        self._had("log", lambda: self._logs(aws, name))

    def _logs(self, aws: Aws, name: str) -> bool:
        for host, at, text in aws.log(name):
            self._log.take(text, at, host)
        if not self._log.facts.sources:
            raise Refused(f"no log stream begins with '{name}/'")
        return True

    def _had(self, what: str, ask: Callable[[], Read | Mistake]) -> Read | None:
        try:
            answer = ask()
        except Refused as error:
            self._evidence.missing[what] = str(error)
            return None
        if isinstance(answer, Mistake):
            self._evidence.missing[what] = str(answer)
            return None
        return answer


def _throughput(aws: Aws, system: str, start: float, end: float) -> Throughput:
    return throughput_of(aws.transferred(system, start, end), PERIOD)


def _unread(path: str, error: OSError) -> Mistake:
    if isinstance(error, FileNotFoundError):
        return Mistake(path, "there is no such file")
    return Mistake(path, f"cannot be read: {error.strerror or error}")
