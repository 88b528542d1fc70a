"""Decides when a run that is followed has ended, or will not begin."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from evaluator.clock import Clock
from evaluator.config.parameters import RuleConfiguration
from evaluator.status import EndedBecause
from evaluator.trial.trial import Trial

STALL_MARGIN = 60.0
"""Seconds from the silence that meets a rule to the end of the job, so that an idle poll falls into them."""


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

    def __init__(
        self, trial: Trial, clock: Clock, limits: Limits, stop: StopSignal, watched: Callable[[], bool] | None
    ) -> None:
        """Start counting now; `watched` says whether the process to wait for is still there."""
        self._trial = trial
        self._clock = clock
        self._limits = limits
        self._stop = stop
        self._watched = watched
        self._started = clock.monotonic()
        self._marker_at: float | None = None
        self._quiet_listings = 0

    def reason(self) -> EndedBecause | None:
        """Why the run is over, asked once after every listing; None while it may go on.

        What counts is the time of the listing: judging what it showed can take longer than any of the waits.
        """
        if self._stop.requested:
            return "stop_signal"
        if self._watched is not None and not self._watched():
            return "watched_process_ended"
        if self._marker_confirmed():
            return "end_marker"
        listed, newest = self._listed_at(), self._trial.newest_at
        if newest is None:
            return "start_timeout" if listed - self._started >= self._limits.start_timeout else None
        return "idle_timeout" if listed - newest >= self._limits.idle_timeout else None

    def _marker_confirmed(self) -> bool:
        """Whether the end marker is there and nothing has come for the grace time, in two listings.

        Every local worker writes the marker; the first one to finish must not end the others.
        """
        if not self._trial.source.ended():
            self._marker_at = None
            self._quiet_listings = 0
            return False
        if self._marker_at is None:
            self._marker_at = self._clock.monotonic()
        self._quiet_listings = self._quiet_listings + 1 if self._trial.quiet else 0
        newest = self._trial.newest_at
        quiet_since = self._marker_at if newest is None else max(self._marker_at, newest)
        return self._quiet_listings >= 2 and self._listed_at() - quiet_since >= self._limits.late_grace

    def _listed_at(self) -> float:
        listed = self._trial.listed_at
        return self._started if listed is None else listed


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


def is_running(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # somebody else's process is a process all the same
        return True
    return True
