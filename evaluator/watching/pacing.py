"""The clock of one of many jobs: it does not wait in step with the others, and not unboundedly often."""

from __future__ import annotations

import threading
from random import Random

from evaluator.clock import Clock
from evaluator.storage._sharing import Pace

SPREAD = 0.2
"""Part of a pause that may be left out by chance, so that jobs that began together do not look together for ever."""


class SpreadClock:
    """A clock for one thread and those that work for it."""

    def __init__(self, clock: Clock, pace: Pace, shortest: float) -> None:
        """Wait as `clock` does.

        Args:
            clock: the one of all jobs; whoever wakes it wakes all.
            pace: of all jobs; one that has waited takes its turn.
            shortest: seconds; no wait that is meant to be as long is made shorter than this.
        """
        self._clock = clock
        self._pace = pace
        self._shortest = shortest
        self._owner = threading.get_ident()
        self._woken = False
        self._dice = Random()  # noqa: S311 - spreads looks over time, nothing is secret

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._clock.now()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._clock.monotonic()

    def wait(self, seconds: float) -> bool:
        """Wait a little less than that, where that is not too short, and for one's turn."""
        if self._woken:
            return True
        if threading.get_ident() != self._owner:
            return self._clock.wait(seconds)
        shorter = seconds * (1 - SPREAD * self._dice.random())
        woken = self._clock.wait(min(seconds, max(self._shortest, shorter)))
        if not woken:
            self._pace.take()
        return woken or self._woken

    def wake(self) -> None:
        """End the waits of this job from the next one on; the present one ends in its time."""
        self._woken = True
