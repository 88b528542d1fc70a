"""Decides when a run that is followed has ended, or will not begin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from evaluator.clock import Clock
from evaluator.config.parameters import RuleConfiguration
from evaluator.outside import Outside
from evaluator.status import EndedBecause
from evaluator.trial.trial import Trial

STALL_MARGIN = 60.0
"""Seconds from the silence that meets a rule to the end of the job, so that an idle poll falls into them."""

A_LONG_WHILE = 3600.0
"""Seconds of one wait for a signal; it ends when the signal comes, so any number does."""


class StopSignal:
    """Whether somebody asked the job to stop, and how."""

    def __init__(self, mode: Literal["drain", "stop"], grace: float, clock: Clock) -> None:
        """Nobody has asked yet.

        Args:
            mode: drain: what is already saved is still taken; stop: nothing more is.
            grace: seconds for draining.
            clock: its waits are ended when the signal comes.
        """
        self._mode = mode
        self._grace = grace
        self._clock = clock
        self._at: float | None = None

    def request(self) -> None:
        """Stop soon."""
        if self._at is None:
            self._at = self._clock.monotonic()
        self._clock.wake()

    def await_request(self) -> None:
        """Return when stopping was asked for."""
        while not self.requested:
            self._clock.wait(A_LONG_WHILE)

    @property
    def requested(self) -> bool:
        """Whether stopping was asked for."""
        return self._at is not None

    @property
    def now(self) -> bool:
        """Whether nothing more may be taken."""
        if self._at is None:
            return False
        return self._mode == "stop" or self._clock.monotonic() - self._at >= self._grace


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait: seconds."""

    start_timeout: float
    idle_timeout: float
    late_grace: float


class Ending:
    """Remembers what it takes to tell that a run has ended."""

    def __init__(self, trial: Trial, clock: Clock, limits: Limits, stop: StopSignal, outside: Outside) -> None:
        """Start counting now; `outside` is what tells of the end besides the saved files."""
        self._trial = trial
        self._limits = limits
        self._stop = stop
        self._outside = outside
        self._started = clock.monotonic()
        self._marker = _Confirmation(trial, clock, limits.late_grace)
        self._training_job = _Confirmation(trial, clock, limits.late_grace)

    def reason(self) -> EndedBecause | None:
        """Why the run is over, asked once after every listing; None while it may go on.

        What counts is the time of the listing: judging what it showed can take longer than any of the waits.
        """
        if self._stop.requested:
            return "stop_signal"
        reason = self._outside.reason()
        if reason is not None:
            return reason
        if self._trial.outages.going_on:
            # the last listing is an old one
            return None
        if self._marker.come(told=self._trial.end_marked()):
            return "end_marker"
        if self._training_job.come(told=self._outside.training_job_over_at() is not None):
            return "training_job_status"
        listed, newest = _listed_at(self._trial, self._started), self._trial.newest_at
        if newest is None:
            return "start_timeout" if listed - self._started >= self._limits.start_timeout else None
        return "idle_timeout" if listed - newest >= self._limits.idle_timeout else None


class _Confirmation:
    """Whether an end that somebody tells of has come: nothing new for the grace time since, in two listings.

    Every local worker writes the end marker, and the first one to finish must not end the others; what was saved
    before the training job ended may still be on its way.
    """

    def __init__(self, trial: Trial, clock: Clock, grace: float) -> None:
        """Nobody has told of an end yet."""
        self._trial = trial
        self._clock = clock
        self._grace = grace
        self._told_at: float | None = None
        self._quiet_listings = 0

    def come(self, *, told: bool) -> bool:
        """The same, asked once after every listing; `told` is whether somebody tells of the end now."""
        if not told:
            self._told_at = None
            self._quiet_listings = 0
            return False
        if self._told_at is None:
            self._told_at = self._clock.monotonic()
        self._quiet_listings = self._quiet_listings + 1 if self._trial.quiet else 0
        newest = self._trial.newest_at
        quiet_since = self._told_at if newest is None else max(self._told_at, newest)
        return self._quiet_listings >= 2 and _listed_at(self._trial, self._told_at) - quiet_since >= self._grace


def _listed_at(trial: Trial, otherwise: float) -> float:
    return otherwise if trial.listed_at is None else trial.listed_at


def idle_timeout(setting: float, rules: Iterable[RuleConfiguration]) -> float:
    """The setting, raised so that rules which are met by silence get to see as much of it as they need.

    Those that nobody named do not change what was set.
    """
    waits = [
        one.rule.patience(one.parameters) + STALL_MARGIN
        for one in rules
        if one.rule.patience is not None and not one.candidate
    ]
    return max([setting, *waits])
