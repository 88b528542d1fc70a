"""Holds the outputs of one job: their place, the sinks that write there, and what its rules leave themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from evaluator.actions.base import ActionResult, Surroundings
from evaluator.clock import Clock
from evaluator.config.job_config import JobConfig
from evaluator.config.names import folder_name
from evaluator.errors import InputError, Mistake, OutputError, OutputTaken
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.isolation.isolated_run import IsolatedRun
from evaluator.output_folder import PRINTED, PRINTED_BY, TRACEBACK, TRACEBACK_BEGINS, OutputFolder
from evaluator.reporting import make_reports
from evaluator.resuming import differs
from evaluator.rule_state import RuleState
from evaluator.sinks._acting import Acting
from evaluator.sinks.base import Outputs, key_in
from evaluator.sinks.fan_out import SinkSet, build_sinks
from evaluator.status import JobStatus
from evaluator.storage import open_store
from evaluator.storage.base import Requests

PATIENCE_BETWEEN = 30.0
"""Seconds for which an output on S3 is asked again while the job has other things to do: it is told again later."""
PATIENCE_AT_ENDS = 300.0
"""The same at the beginning and at the end, when there is nothing else to do."""

PATIENCE_WITH_ACTIONS = 60.0
"""Seconds for which the end of a job waits for actions that were begun."""
PATIENCE_WHEN_STOPPED = 1.0
"""The same after a stop signal: with the 8 seconds of `stop_grace`, below the 10 after which Docker kills."""


class JobOutputs:
    """Everything that one job writes, from `prepare` until `release`."""

    def __init__(self, config: JobConfig, clock: Clock, message_file: Path | None) -> None:
        """Touch nothing yet.

        Raises:
            InputError: the output is neither a folder nor on storage that is known, or packages for that are missing.
        """
        self._config = config
        self._clock = clock
        self._message_file = message_file
        self._folders = {rule.name: "" if config.flat_output else folder_name(rule.name) for rule in config.rules}
        self._store = open_store(config.settings.output, clock)
        self._folder = OutputFolder(self._store, clock, self._folders.values())
        self._acting: Acting | None = None
        if config.actions:
            around = Surroundings(config.trial, config.settings.training_job_name, config.region)
            self._acting = Acting(config.actions, around, clock)
        self._started: SinkSet | None = None
        self._taken = False
        self._left: set[str] = set()
        """The texts of rules that were told already."""

    @property
    def requests(self) -> Requests:
        """How often the output was asked."""
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
        """See that the output can be written, and keep other evaluators out.

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
            OutputError: what is there cannot be read or removed, or the status cannot be written.
        """
        config = self._config
        unfinished = self._folder.unfinished() if config.settings.follow else None
        if unfinished is not None and not restart:
            other = differs(unfinished, status)
            if other is not None:
                right = "name another --output, or begin anew with --restart"
                raise InputError([Mistake(self._folder.where, f"holds an unfinished job {other}", right)])
        else:
            self._folder.start_over()
        interval = config.settings.status_interval
        outputs = Outputs(
            self._store, self._clock, self._folders, interval, self._message_file, config.fail_on, self._acting
        )
        self._started = SinkSet(build_sinks(outputs), self._clock)
        self._started.start(status)
        self._store.wait_at_most(PATIENCE_BETWEEN)

    def findings(self, findings: Sequence[Finding]) -> None:
        """Write down what was found."""
        for finding in findings:
            self._sinks.finding(finding)

    def reports(self, evaluation: Evaluation, *, final: bool) -> None:
        """Have the reports made that are due."""
        make_reports(evaluation, self._clock, self._folders, self._sinks.report, final=final)

    def status(self, status: JobStatus) -> None:
        """Write the status where that is due.

        Raises:
            OutputTaken: another evaluator writes there by now.
            OutputError: it could not be written for so long that the job is over.
        """
        try:
            self._folder.refresh()
        except OutputTaken:
            self._taken = True
            raise
        self._sinks.status(status)

    def acted(self, configuration: str) -> list[ActionResult]:
        """What came of the actions at the findings of a configuration."""
        return [] if self._acting is None else self._acting.told(configuration)

    def notes(self) -> list[str]:
        """What a reader of the status has to know of its outputs, besides what the sinks say."""
        return [] if self._acting is None else self._acting.problems()

    def settle(self, stopped: Callable[[], bool]) -> None:
        """Wait for actions that were begun, not for long, and less once somebody wants the job to stop."""
        if self._acting is not None and not self._taken:
            self._acting.settle(PATIENCE_WITH_ACTIONS, lambda: PATIENCE_WHEN_STOPPED if stopped() else None)

    def close(self, status: JobStatus) -> None:
        """Write what is left, and the final status; nothing where the output is another evaluator's by now."""
        if not self._taken:
            self._store.wait_at_most(PATIENCE_AT_ENDS)
            self._sinks.close(status)

    def printed(self, run: IsolatedRun) -> None:
        """Keep what the process of a rule printed."""
        if run.output and not self._taken:
            name = run.configuration.name
            head = PRINTED_BY + name.encode("utf-8", "backslashreplace") + b":\n"
            self._sinks.keep(key_in(self._folders.get(name, ""), PRINTED), head + run.output, PRINTED_BY)

    def traceback(self, run: RuleState) -> str:
        """Have the traceback of a rule that raised written into its folder, once; the file's name."""
        key = key_in(self._folders.get(run.configuration.name, ""), TRACEBACK)
        if run.failure is not None and key not in self._left:
            self._left.add(key)
            self._sinks.keep(key, run.failure.encode("utf-8", "backslashreplace"), TRACEBACK_BEGINS)
        return key
