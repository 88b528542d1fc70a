"""Holds the outputs of one job: its folder, the sinks that write to it, and what its rules leave there themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluator.clock import Clock
from evaluator.config.job_config import JobConfig
from evaluator.config.names import folder_name
from evaluator.errors import InputError, Mistake, OutputError
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.isolation.isolated_run import IsolatedRun
from evaluator.output_folder import PRINTED, PRINTED_BY, TRACEBACK, OutputFolder
from evaluator.reporting import make_reports
from evaluator.resuming import differs
from evaluator.rule_state import RuleState
from evaluator.sinks.base import Outputs, key_in
from evaluator.sinks.fan_out import SinkSet, build_sinks
from evaluator.status import JobStatus
from evaluator.storage.base import Requests
from evaluator.storage.file import FileStore


class JobOutputs:
    """Everything that one job writes, from `prepare` until `release`."""

    def __init__(self, config: JobConfig, clock: Clock, message_file: Path | None) -> None:
        """Touch nothing yet.

        Raises:
            InputError: the output is no local folder.
        """
        settings = config.settings
        if "://" in settings.output:
            right = "a local folder; other storage is not part of this version"
            raise InputError([Mistake("output", f"{settings.output!r} is not a local folder", right)])
        self._config = config
        self._clock = clock
        self._message_file = message_file
        self._folders = {rule.name: "" if config.flat_output else folder_name(rule.name) for rule in config.rules}
        self._folder = OutputFolder(Path(settings.output), self._folders.values())
        self._store = FileStore(settings.output)
        self._started: SinkSet | None = None

    @property
    def requests(self) -> Requests:
        """How often the output folder was asked."""
        return self._store.requests

    @property
    def status_lost(self) -> bool:
        """Whether the newest status could not be written."""
        return self._sinks.status_lost

    @property
    def _sinks(self) -> SinkSet:
        if self._started is None:
            raise OutputError("job", "told something before its outputs were ready")
        return self._started

    def prepare(self) -> None:
        """Make the folder, and keep other evaluators out.

        Raises:
            OutputError: it cannot be written, or another evaluator is at work in it.
        """
        self._folder.prepare()

    def release(self) -> None:
        """Let other evaluators in."""
        self._folder.release()

    def start(self, status: JobStatus, *, restart: bool) -> None:
        """Begin with an empty folder, or go on with what an unfinished job over the same trial left.

        Raises:
            InputError: the unfinished job is another one, and nobody asked to begin anew.
            OutputError: the status cannot be written.
        """
        config = self._config
        unfinished = self._folder.unfinished() if config.settings.follow else None
        if unfinished is not None and not restart:
            other = differs(unfinished, status)
            if other is not None:
                right = "name another --output, or begin anew with --restart"
                raise InputError([Mistake(str(self._folder.root), f"holds an unfinished job {other}", right)])
        else:
            self._folder.start_over()
        interval = config.settings.status_interval
        outputs = Outputs(self._store, self._clock, self._folders, interval, self._message_file, config.fail_on)
        self._started = SinkSet(build_sinks(outputs), self._clock)
        self._started.start(status)

    def findings(self, findings: Sequence[Finding]) -> None:
        """Write down what was found."""
        for finding in findings:
            self._sinks.finding(finding)

    def reports(self, evaluation: Evaluation, *, final: bool) -> None:
        """Have the reports made that are due."""
        make_reports(evaluation, self._clock, self._folders, self._sinks.report, final=final)

    def status(self, status: JobStatus) -> None:
        """Write the status where that is due."""
        self._sinks.status(status)

    def close(self, status: JobStatus) -> None:
        """Write the final status."""
        self._sinks.close(status)

    def printed(self, run: IsolatedRun) -> None:
        """Keep what the process of a rule printed."""
        if run.output:
            name = run.configuration.name
            head = PRINTED_BY + name.encode("utf-8", "backslashreplace") + b":\n"
            self._store.write(key_in(self._folders.get(name, ""), PRINTED), head + run.output)

    def traceback(self, run: RuleState) -> str:
        """Write the traceback of a rule that raised into its folder; the file's name."""
        key = key_in(self._folders.get(run.configuration.name, ""), TRACEBACK)
        if run.failure is not None and self._store.stat(key) is None:
            self._store.write(key, run.failure.encode("utf-8", "backslashreplace"))
        return key
