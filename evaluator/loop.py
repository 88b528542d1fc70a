"""The loop: looks for new steps, has them judged, tells the sinks, and knows when to end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from evaluator.clock import Clock
from evaluator.ending import Ending, StopSignal
from evaluator.engine.local import LocalEngine
from evaluator.engine.summaries import FileSummary, StepSummary
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.status import EndedBecause
from evaluator.trial.trial import Step, Trial

if TYPE_CHECKING:
    from evaluator.engine.distributed.engine import DaskEngine


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to look for new steps: seconds, growing from the least to the most while nothing comes."""

    poll_min: float
    poll_max: float
    late_grace: float


LONGEST_SILENCE = 100.0
"""Seconds between two times that the sinks are told that the job lives; the status file is due every 300."""

GROWTH = 1.5
"""How much longer each pause is than the one before, while nothing comes."""

_AS_IT_STANDS: tuple[EndedBecause, ...] = ("read_once", "stop_signal", "rule_stop_signal")
"""Ends of a job that say nothing about the run; what it saved last may be half of a step."""

Engine: TypeAlias = "LocalEngine | DaskEngine"

Tell = Callable[[list[Finding]], None]
"""Told after every step and every poll, with the findings that are new."""


class Loop:
    """Evaluates one trial from its first step to its end."""

    def __init__(
        self,
        trial: Trial,
        evaluation: Evaluation,
        engine: Engine,
        clock: Clock,
        stop: StopSignal,
        pace: Pace,
        tell: Tell,
    ) -> None:
        """Put the parts together; nothing runs yet."""
        self._trial = trial
        self._evaluation = evaluation
        self._engine = engine
        self._clock = clock
        self._stop = stop
        self._pace = pace
        self._tell = tell

    def read_once(self) -> EndedBecause:
        """Evaluate what is there, from the start."""
        return self._end(self._take(self._trial.finish()) or "read_once")

    def follow(self, ending: Ending) -> EndedBecause:
        """Evaluate what comes, until the run ends or something else ends the job."""
        delay = self._pace.poll_min
        while True:
            because = self._take(self._trial.poll())
            if because is not None:
                return self._end(because)
            reason = ending.reason()
            if reason is not None:
                if not self._stop.now and reason != "start_timeout":
                    reason = self._finish() or reason
                return self._end(reason)
            quiet = self._trial.quiet or self._trial.outages.going_on
            # that the storage does not answer is no silence of the run
            if self._trial.quiet and not self._trial.outages.going_on:
                self._tell(self._evaluation.judge_idle(self._clock.now(), "idle", self._trial.counts.last))
                if not self._evaluation.active:
                    return self._end("all_rules_ended")
            delay = min(GROWTH * delay, self._pace.poll_max) if quiet else self._pace.poll_min
            self._rest(delay)

    def _finish(self) -> EndedBecause | None:
        """Take what is left, also where the storage has to be waited for, unless somebody stops the job."""
        while True:
            # whoever stops the job has no time for judging a log anew
            because = self._take(self._trial.finish(again=not self._stop.requested))
            if because is not None or self._stop.requested or not self._trial.outages.going_on:
                return because
            self._rest(self._pace.poll_max)

    def _rest(self, seconds: float) -> None:
        """Wait for the next look, and tell now and then that the job lives."""
        pieces = math.ceil(seconds / LONGEST_SILENCE)
        for piece in range(pieces):
            if piece:
                self._tell([])
            if self._clock.wait(seconds / pieces):
                return

    def _take(self, steps: Iterable[Step]) -> EndedBecause | None:
        """Judge these steps; why the job is over before the run is, or None."""
        for summary in self._summaries(steps):
            if self._stop.now or any(one.outage for one in summary.files):
                return "stop_signal"
            self._tell(self._evaluation.judge(summary))
            if not self._evaluation.active:
                return "all_rules_ended"
        self._tell([])
        self._trial.source.store.rest()
        return "stop_signal" if self._stop.now else None

    def _summaries(self, steps: Iterable[Step]) -> Iterator[StepSummary]:
        for summary in self._engine.ahead(steps, self._evaluation.plan_of):
            yield self._whole(summary)

    def _whole(self, summary: StepSummary) -> StepSummary:
        """Wait a little for bytes that an index file promised and that are not there yet.

        The two files of a step are uploaded in no particular order. A modification time can be anything, so it may
        shorten the wait, for a file that has been there for long, and not lengthen it.
        """
        summary = self._answered(summary)
        # read ahead, a step may have become whole meanwhile, and what went wrong concern only rules that have ended
        outdated = not self._trial.ended or not self._evaluation.is_current(summary)
        if outdated and any(one.problems or one.failures for one in summary.files):
            summary = self._answered(self._engine.again(self._as_planned(summary)))
        if any(one.problems for one in summary.files):
            # in this order the larger one is 0 also where a time is no number
            age = max(0.0, min(self._clock.now() - one.file.modified for one in summary.files))
            until = self._clock.monotonic() + self._pace.late_grace - age
            while not (self._trial.ended or self._stop.requested or self._clock.monotonic() >= until):
                self._clock.wait(self._pace.poll_min)
                summary = self._answered(self._engine.again(summary))
                if not any(one.problems for one in summary.files):
                    break
        return summary

    def _as_planned(self, summary: StepSummary) -> StepSummary:
        """The step with nothing read of it, as the rules that have not ended want it."""
        return StepSummary(
            summary.step, [FileSummary(one.file, self._evaluation.plan.renewed(one.plan)) for one in summary.files]
        )

    def _answered(self, summary: StepSummary) -> StepSummary:
        """Wait for a storage that does not answer, for as long as that is borne and nobody stops the job."""
        outages = self._trial.outages
        while outage := next((one.outage for one in summary.files if one.outage), None):
            outages.met(outage)
            if self._stop.requested:
                return summary
            self._tell([])
            self._rest(self._pace.poll_max)
            summary = self._engine.again(summary)
            if not any(one.outage for one in summary.files):
                outages.over()
        return summary

    def _end(self, reason: EndedBecause) -> EndedBecause:
        """The run is over, or the job before it: let those judge that wait for the end, and close what is open."""
        if reason != "all_rules_ended":
            progress = self._evaluation.progress
            progress.ended = True
            progress.complete = reason not in _AS_IT_STANDS or self._trial.end_marked()
        findings = self._evaluation.judge_idle(self._clock.now(), "end", self._trial.counts.last)
        self._tell([*findings, *self._evaluation.finish()])
        return reason
