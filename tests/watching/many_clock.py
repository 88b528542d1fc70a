"""Time for several threads: it moves on only when all of them wait, to the first one's end, and lets that one go on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from evaluator.testing import BEGIN


class ManyClock:
    """A clock for the thread that makes it and for those that trials have; waiting takes no time.

    `at` lets something happen at a time, while all wait.
    """

    def __init__(self, limit: float = 100_000.0) -> None:
        self._now = BEGIN
        self._limit = BEGIN + limit
        self._woken = False
        self._waits = threading.Condition()
        self._until: dict[threading.Thread, float] = {}
        self._script: list[tuple[float, int, Callable[[], object]]] = []
        self._others = {one for one in threading.enumerate() if one is not threading.current_thread()}
        self.waited: list[tuple[str, float]] = []
        """Who began to wait when, in seconds since the start."""

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now - BEGIN

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Do this once the clock shows so many seconds since the start."""
        self._script.append((BEGIN + seconds, len(self._script), action))
        self._script.sort(key=lambda item: item[:2])

    def wait(self, seconds: float) -> bool:
        me = threading.current_thread()
        with self._waits:
            self.waited.append((me.name, self.monotonic()))
            assert len(self.waited) < 200_000, "waited for ever in small steps"
            self._until[me] = self._now + seconds
            while not self._woken and me in self._until:
                if self._all_wait():
                    self._move_on()
                else:
                    # a thread that ends tells nobody
                    self._waits.wait(0.001)
            self._until.pop(me, None)
            return self._woken

    def wake(self) -> None:
        with self._waits:
            self._woken = True
            self._waits.notify_all()

    def _all_wait(self) -> bool:
        mine = [one for one in threading.enumerate() if one.name.startswith(("trial ", "MainThread"))]
        return all(one in self._until for one in mine if one not in self._others)

    def _move_on(self) -> None:
        first = min(self._until, key=lambda one: self._until[one])
        until = self._until[first]
        assert until < self._limit, "waited for ever"
        while self._script and self._script[0][0] <= until and not self._woken:
            at, _, action = self._script.pop(0)
            self._now = max(self._now, at)
            # what it does may wake the clock
            action()
        self._now = max(self._now, until)
        del self._until[first]
        self._waits.notify_all()
