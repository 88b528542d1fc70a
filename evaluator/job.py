"""Puts a job together from its configuration, and runs it: trial, rules and outputs in, status out."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from evaluator.clock import Clock
from evaluator.config.job_config import JobConfig
from evaluator.ending import Ending, Limits, StopSignal, idle_timeout
from evaluator.engine.distributed import missing_dask
from evaluator.engine.partners import Partners
from evaluator.errors import InputError, OutputError, OutputTaken, StorageError
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.isolation.isolated_run import Isolation
from evaluator.job_outputs import JobOutputs
from evaluator.job_status import JobFacts, StatusMaker
from evaluator.loop import Engine, Loop, Pace
from evaluator.other_trials import OtherTrials
from evaluator.outcome import exit_code
from evaluator.outside import Outside, look_outside
from evaluator.places import Share
from evaluator.reasons import unmatched_notes
from evaluator.rule_processes import isolated_runs
from evaluator.sources.base import Source
from evaluator.status import EndedBecause, JobStatus, details_internal
from evaluator.trial.completeness import Waits
from evaluator.trial.opening import await_run, explain_no_step, open_run
from evaluator.trial.trial import Trial

if TYPE_CHECKING:
    from evaluator.engine.distributed.connection import Workers

Watch = Callable[[JobStatus, int], None]
"""Told how the job goes on: its status, and how many steps are waiting."""

log = structlog.get_logger(__name__)


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
        outside: Outside | None = None,
        share: Share | None = None,
    ) -> None:
        """Make what needs neither trial nor output; `stop` can be told to stop, `share` is for one of many jobs.

        Raises:
            InputError: the output is on no storage that is known, or packages for it, for what is watched or for the
                engine are missing.
        """
        settings = config.settings
        if settings.engine == "dask" and (missing := missing_dask()):
            raise missing
        self._outputs = JobOutputs(config, clock, message_file)
        self.stop = StopSignal(config.on_sigterm, settings.stop_grace, clock)
        self._config = config
        self._clock = clock
        self._watch = watch
        self._restart = restart
        self._arn = arn
        if outside is None:
            outside = look_outside(config, clock) if settings.follow else Outside()
        self._outside = outside
        self._share = share or Share(settings.memory_budget)
        started = clock.now()
        facts = JobFacts(
            job_id=f"{os.getpid():x}-{int(started * 1000):x}",
            trial=config.trial,
            labels=config.labels,
            settings=settings.model_dump(mode="json"),
            started_at=started,
            notes=list(config.notes),
            other_trials=sorted({path for rule in config.rules for path in rule.other_trials}),
            requests=[self._outputs.requests, *self._outside.requests()],
        )
        self._maker = StatusMaker(facts, clock, self._outputs.traceback, self._outputs.acted)
        self._told_at: float | None = None
        self._ended_told = 0
        self._trial: Trial | None = None
        self._evaluation: Evaluation | None = None
        self._engine: Engine | None = None

    def run(self) -> Result:
        """Run the job to its end.

        Raises:
            InputError: there is no trial, no saved step in it, or no other trial or scheduler, where one was named.
            OutputError: the output cannot be written, or another evaluator writes there.
        """
        others = OtherTrials(lambda path: open_run(path, self._clock), self._clock)
        config = self._config
        source = None if config.settings.follow else open_run(config.trial, self._clock, config.reading)
        if source is not None and not source.sightings():
            raise InputError([explain_no_step(self._config.trial, source.store)])
        others.open(self._maker.facts.other_trials)
        with closing(self._workers()) if config.settings.engine == "dask" else nullcontext() as workers:
            self._outputs.prepare()
            try:
                self._outputs.start(self._status(), restart=self._restart)
                return self._run_to_end(source, others, workers)
            finally:
                self._outputs.release()

    def stay(self) -> None:
        """Where that was asked for, keep the process alive after the job's end until a stop signal comes.

        The status is final and is not written again, and the output folder may be another job's by now.
        """
        if self._config.after_end == "wait" and not self.stop.requested:
            # that may be for days
            self._trial = self._evaluation = None
            log.info("waiting_for_a_stop_signal")
            self.stop.await_request()

    def _workers(self) -> Workers:
        """The workers that read the trial."""
        from evaluator.engine.distributed.connection import Workers  # noqa: PLC0415 - most jobs go without it

        settings = self._config.settings
        return Workers(settings.scheduler or "", settings.worker_timeout, lambda: self.stop.requested)

    def _run_to_end(self, source: Source | None, others: OtherTrials, workers: Workers | None) -> Result:
        """Run, and write down how it ended also when it fails."""
        try:
            return self._run(source, others, workers)
        except StorageError as error:
            # what was found until now stands; what is left cannot be read
            return self._fail(f"ClientError: {error}")
        except OutputTaken:
            raise
        except OutputError as error:
            # nobody learns of what is found any more
            return self._fail(f"ClientError: {error}")
        except InputError as error:
            self._fail(f"ClientError: {error}")
            raise
        except Exception as error:
            self._fail(details_internal(type(error).__name__))
            raise

    def _run(self, source: Source | None, others: OtherTrials, workers: Workers | None) -> Result:
        self._tell([])
        facts = self._maker.facts
        if source is None:
            source = self._await_run()
        if source is not None:
            facts.refused = source.store.refused
            facts.requests = [source.store.requests, *facts.requests]
            engine = self._engine_for(source, workers)
            self._engine = engine
            try:
                facts.ended_because = self._loop(source, engine, others)
            finally:
                engine.close()
                for run in isolated_runs(self._evaluation):
                    run.close()
                    self._outputs.printed(run)
            facts.notes += [f"{where}: {what}" for where, what in others.unreadable.items()]
        return self._end()

    def _engine_for(self, source: Source, workers: Workers | None) -> Engine:
        if workers is None:
            return self._share.engine(source, lambda: self.stop.now, lambda: self._tell([]))
        from evaluator.engine.distributed.engine import DaskEngine  # noqa: PLC0415 - most jobs go without it

        return DaskEngine(source, self._config.settings.memory_budget, workers)

    def _await_run(self) -> Source | None:
        """The run, once there is one; None when it is known by then that there will be none, and why."""
        settings = self._config.settings
        because: list[EndedBecause] = []

        def stopped() -> bool:
            # asked after every look, so that the status shows that the job lives
            self._tell([])
            reason = "stop_signal" if self.stop.requested else self._outside.gone(self._clock, settings.late_grace)
            because[:] = [reason] if reason is not None else []
            return reason is not None

        source = await_run(
            self._config.trial, self._clock, start_timeout=settings.start_timeout, poll=settings.poll_min,
            stopped=stopped, reading=self._config.reading,
        )  # fmt: skip
        if source is None:
            self._maker.facts.ended_because = because[0] if because else "start_timeout"
        return source

    def _loop(self, source: Source, engine: Engine, others: OtherTrials) -> EndedBecause:
        settings = self._config.settings
        waits = Waits(settings.late_grace, settings.worker_quorum)
        self._trial = Trial(
            source, self._clock, waits, following=settings.follow, relist=settings.relist,
            patience=idle_timeout(settings.idle_timeout, self._config.rules) if settings.follow else 0.0,
        )  # fmt: skip
        partners = Partners(source, self._share.kept, others.values)
        isolation = Isolation.of(source, self._config.trial, settings, lambda: self.stop.now)
        self._evaluation = Evaluation(
            self._config.rules, self._trial, partners, following=settings.follow, isolation=isolation
        )
        self._maker.facts.notes += [note for run in isolated_runs(self._evaluation) for note in run.notes]
        pace = Pace(settings.poll_min, settings.poll_max, settings.late_grace)
        loop = Loop(self._trial, self._evaluation, engine, self._clock, self.stop, pace, self._tell)
        if not settings.follow:
            return loop.read_once()
        idle = idle_timeout(settings.idle_timeout, [run.configuration for run in self._evaluation.runs])
        limits = Limits(settings.start_timeout, idle, settings.late_grace)
        return loop.follow(Ending(self._trial, self._clock, limits, self.stop, self._outside))

    def _tell(self, findings: list[Finding]) -> None:
        """Tell the outputs what is new; the status is made only as often as it may be written."""
        self._outputs.findings([self._maker.complete(finding) for finding in findings])
        now = self._clock.monotonic()
        due = self._told_at is None or now - self._told_at >= self._config.settings.status_interval
        # a rule that ended is told at once: nothing may come for a long time
        ended = 0 if self._evaluation is None else len(self._evaluation.runs) - len(self._evaluation.active)
        if not (findings or due or ended != self._ended_told):
            return
        self._ended_told = ended
        self._told_at = now
        if self._evaluation is not None:
            self._outputs.reports(self._evaluation, final=False)
        status = self._status()
        self._outputs.status(status)
        if self._watch is not None:
            self._watch(status, self._trial.steps_waiting if self._trial is not None else 0)

    def _status(self) -> JobStatus:
        status = self._maker.make(self._trial, self._evaluation, self._config.rules)
        status.job.notes += self._outside.notes() + self._outputs.notes()
        if self._engine is not None:
            status.job.notes += self._engine.notes
        for rule in status.rules:
            rule.RuleEvaluationJobArn = self._arn
        return status

    def _end(self) -> Result:
        if self._evaluation is not None and self._trial is not None:
            self._outputs.reports(self._evaluation, final=True)
            self._maker.facts.notes += unmatched_notes(self._evaluation.runs, self._trial)
        self._outputs.settle(lambda: self.stop.requested)
        return self._close(self._status())

    def _fail(self, details: str) -> Result:
        """End a job that cannot go on: every rule that was still running is in Error."""
        self._outputs.settle(lambda: self.stop.requested)
        status = self._status()
        now = self._maker.now()
        for rule in status.rules:
            if not rule.ended:
                rule.RuleEvaluationStatus, rule.StatusDetails, rule.LastModifiedTime = "Error", details, now
        status.job.ended_because, status.job.ended_at = "failed", now
        return self._close(status)

    def _close(self, status: JobStatus) -> Result:
        self._outputs.close(status)
        written = not self._outputs.status_lost
        return Result(status, exit_code(status, self._config.fail_on, status_written=written))
