"""Puts a job together from its configuration, and runs it: trial, rules and sinks in, status out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evaluator.clock import Clock
from evaluator.config.job_config import JobConfig
from evaluator.config.names import folder_name
from evaluator.ending import Ending, Limits, StopSignal, idle_timeout, is_running
from evaluator.engine.local import LocalEngine
from evaluator.engine.partners import Partners
from evaluator.errors import InputError, Mistake, OutputError, StorageError
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.job_status import JobFacts, StatusMaker
from evaluator.loop import Loop, Pace
from evaluator.other_trials import OtherTrials
from evaluator.outcome import exit_code
from evaluator.output_folder import OutputFolder
from evaluator.reasons import unmatched
from evaluator.reporting import make_reports
from evaluator.resuming import differs
from evaluator.rule_run import RuleRun
from evaluator.sinks.base import Outputs
from evaluator.sinks.fan_out import SinkSet, build_sinks
from evaluator.sources.base import Source
from evaluator.status import EndedBecause, JobStatus, details_internal
from evaluator.storage.file import FileStore
from evaluator.trial.completeness import Waits
from evaluator.trial.opening import await_run, explain_no_step, open_run
from evaluator.trial.trial import Trial

Watch = Callable[[JobStatus, int], None]
"""Told how the job goes on: its status, and how many steps are waiting."""


@dataclass(frozen=True)
class Result:
    """What a job came to."""

    status: JobStatus
    exit_code: int


class Job:
    """One execution: everything that is made of a JobConfig."""

    def __init__(
        self,
        config: JobConfig,
        clock: Clock,
        *,
        message_file: Path | None = None,
        watch: Watch | None = None,
        restart: bool = False,
        arn: str | None = None,
    ) -> None:
        """Make what needs neither trial nor output; `stop` can be told to stop from now on.

        Raises:
            InputError: the output is no local folder.
        """
        settings = config.settings
        if "://" in settings.output:
            right = "a local folder; other storage is not part of this version"
            raise InputError([Mistake("output", f"{settings.output!r} is not a local folder", right)])
        self.stop = StopSignal(config.on_sigterm, settings.stop_grace, clock)
        self._config = config
        self._clock = clock
        self._message_file = message_file
        self._watch = watch
        self._restart = restart
        self._arn = arn
        self._folders = {rule.name: "" if config.flat_output else folder_name(rule.name) for rule in config.rules}
        self._output = OutputFolder(Path(settings.output), self._folders.values())
        started = clock.now()
        facts = JobFacts(
            job_id=f"{os.getpid():x}-{int(started * 1000):x}",
            trial=config.trial,
            labels=config.labels,
            settings=settings.model_dump(mode="json"),
            started_at=started,
            notes=list(config.notes),
            other_trials=sorted({path for rule in config.rules for path in rule.other_trials}),
        )
        self._maker = StatusMaker(facts, clock, self._write_traceback)
        self._store = FileStore(settings.output)
        self._told_at: float | None = None
        self._sinks: SinkSet | None = None
        self._trial: Trial | None = None
        self._evaluation: Evaluation | None = None

    def run(self) -> Result:
        """Run the job to its end.

        Raises:
            InputError: there is no trial, no saved step in it, or no other trial, where one was named.
            OutputError: the output folder cannot be written.
        """
        others = OtherTrials(open_run, self._clock)
        source = None if self._config.settings.follow else open_run(self._config.trial)
        if source is not None and not source.sightings():
            raise InputError([explain_no_step(self._config.trial, source.store)])
        others.open(self._maker.facts.other_trials)
        self._output.prepare()
        try:
            self._start_output()
            return self._run_to_end(source, others)
        finally:
            self._output.release()

    def _run_to_end(self, source: Source | None, others: OtherTrials) -> Result:
        """Run, and write down how it ended also when it fails."""
        try:
            return self._run(source, others)
        except StorageError as error:
            # what was found until now stands; what is left cannot be read
            return self._fail(f"ClientError: {error}")
        except InputError as error:
            self._fail(f"ClientError: {error}")
            raise
        except Exception as error:
            self._fail(details_internal(type(error).__name__))
            raise

    def _run(self, source: Source | None, others: OtherTrials) -> Result:
        settings = self._config.settings
        self._tell([])
        watched = self._watched() or (lambda: True)
        if source is None:
            source = await_run(
                self._config.trial, self._clock, start_timeout=settings.start_timeout, poll=settings.poll_min,
                stopped=lambda: self.stop.requested or not watched(),
            )  # fmt: skip
        facts = self._maker.facts
        if source is None:
            # a process that has ended cannot begin to save any more
            gone: EndedBecause = "start_timeout" if watched() else "watched_process_ended"
            facts.ended_because = "stop_signal" if self.stop.requested else gone
        else:
            facts.refused = source.store.refused
            facts.requests = [source.store.requests, self._store.requests]
            engine = LocalEngine(source, settings.memory_budget)
            try:
                facts.ended_because = self._loop(source, engine, others)
            finally:
                engine.close()
            facts.notes += [f"{where}: {what}" for where, what in others.unreadable.items()]
        return self._end()

    def _loop(self, source: Source, engine: LocalEngine, others: OtherTrials) -> EndedBecause:
        settings = self._config.settings
        waits = Waits(settings.late_grace, settings.worker_quorum)
        self._trial = Trial(source, self._clock, waits, following=settings.follow, relist=settings.relist)
        partners = Partners(source, settings.memory_budget, others.values)
        self._evaluation = Evaluation(self._config.rules, self._trial, partners, following=settings.follow)
        pace = Pace(settings.poll_min, settings.poll_max, settings.late_grace)
        loop = Loop(self._trial, self._evaluation, engine, self._clock, self.stop, pace, self._tell)
        if not settings.follow:
            return loop.read_once()
        limits = Limits(
            settings.start_timeout, idle_timeout(settings.idle_timeout, self._config.rules), settings.late_grace
        )
        return loop.follow(Ending(self._trial, self._clock, limits, self.stop, self._watched()))

    def _watched(self) -> Callable[[], bool] | None:
        pid = self._config.until_pid
        return None if pid is None else lambda: is_running(pid)

    def _start_output(self) -> None:
        """Begin with an empty output folder, or go on with what an unfinished job over the same trial left."""
        unfinished = self._output.unfinished() if self._config.settings.follow else None
        if unfinished is not None and not self._restart:
            other = differs(unfinished, self._maker.make(None, None, self._config.rules))
            if other is not None:
                right = "name another --output, or begin anew with --restart"
                raise InputError([Mistake(str(self._output.root), f"holds an unfinished job {other}", right)])
        else:
            self._output.start_over()
        outputs = Outputs(
            self._store,
            self._clock,
            self._folders,
            self._config.settings.status_interval,
            self._message_file,
            self._config.fail_on,
        )
        self._sinks = SinkSet(build_sinks(outputs), self._clock)
        self._sinks.start(self._status())

    def _tell(self, findings: list[Finding]) -> None:
        """Tell the sinks what is new; the status is made only as often as it may be written."""
        if self._sinks is None:
            raise OutputError("job", "told something before its outputs were ready")
        for finding in findings:
            self._sinks.finding(self._maker.complete(finding))
        now = self._clock.monotonic()
        due = self._told_at is None or now - self._told_at >= self._config.settings.status_interval
        if not (findings or due):
            return
        self._told_at = now
        if self._evaluation is not None:
            make_reports(self._evaluation, self._clock, self._folders, self._sinks.report, final=False)
        status = self._status()
        self._sinks.status(status)
        if self._watch is not None:
            self._watch(status, self._trial.steps_waiting if self._trial is not None else 0)

    def _status(self) -> JobStatus:
        status = self._maker.make(self._trial, self._evaluation, self._config.rules)
        for rule in status.rules:
            rule.RuleEvaluationJobArn = self._arn
        return status

    def _end(self) -> Result:
        if self._sinks is None:
            raise OutputError("job", "ended before its outputs were ready")
        if self._evaluation is not None:
            make_reports(self._evaluation, self._clock, self._folders, self._sinks.report, final=True)
            self._note_unmatched(self._evaluation)
        return self._close(self._status())

    def _note_unmatched(self, evaluation: Evaluation) -> None:
        """A part of a selection that selects nothing is a slip of the pen that nobody would notice otherwise."""
        if self._trial is None or not self._trial.anything_seen:
            return
        for run in evaluation.runs:
            problems = unmatched(run, self._trial.names) if run.counts.evaluated else []
            self._maker.facts.notes += [f"{run.configuration.name}: {problem}" for problem in problems]

    def _fail(self, details: str) -> Result:
        """End a job that cannot go on: every rule that was still running is in Error."""
        status = self._status()
        now = self._maker.now()
        for rule in status.rules:
            if not rule.ended:
                rule.RuleEvaluationStatus, rule.StatusDetails, rule.LastModifiedTime = "Error", details, now
        status.job.ended_because, status.job.ended_at = "failed", now
        return self._close(status)

    def _close(self, status: JobStatus) -> Result:
        if self._sinks is None:
            raise OutputError("job", "ended before its outputs were ready")
        self._sinks.close(status)
        written = not self._sinks.status_lost
        return Result(status, exit_code(status, self._config.fail_on, status_written=written))

    def _write_traceback(self, run: RuleRun) -> str:
        """Write the traceback of a rule that raised into its folder; the file's name."""
        folder = self._folders.get(run.configuration.name, "")
        key = f"{folder}/traceback.txt" if folder else "traceback.txt"
        if run.failure is not None and self._store.stat(key) is None:
            self._store.write(key, run.failure.encode("utf-8", "backslashreplace"))
        return key
