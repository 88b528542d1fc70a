"""What all stores of one process share where it follows many runs: one client of S3, and the pace at which they ask."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from evaluator.clock import Clock

BURST = 1.0
"""Seconds whose requests may come all at once after a silence."""


class Pace:
    """Lets through so many requests a second; who comes too early waits, in the order of coming."""

    def __init__(self, clock: Clock, per_second: float) -> None:
        """Nobody has asked yet.

        Args:
            clock: its waits end at once when it is woken, so that nothing holds up who is told to stop.
            per_second: how many are let through.
        """
        self._clock = clock
        self._gap = 1 / per_second
        self._lock = Lock()
        self._next = -math.inf

    def take(self) -> None:
        """Return when one more may be made."""
        with self._lock:
            now = self._clock.monotonic()
            self._next = max(self._next, now - BURST) + self._gap
            pause = self._next - now
        if pause > 0:
            self._clock.wait(pause)


class Shared:
    """One client of S3 at a time, and the pace, of all stores that are opened within `sharing`."""

    def __init__(self, pace: Pace | None = None) -> None:
        """Make no client yet; without a pace nobody waits."""
        self._pace = pace
        self._lock = Lock()
        self._client: Any = None

    def client(self, make: Callable[[], Any]) -> Any:
        """The client for one more request, when the pace allows it; threads that ask together get the same one."""
        if self._pace is not None:
            self._pace.take()
        with self._lock:
            if self._client is None:
                self._client = make()
            return self._client

    def drop(self, client: Any) -> None:
        """Have a new one made for the next request, unless another thread has done so since."""
        with self._lock:
            if self._client is client:
                self._client = None


_shared: ContextVar[Shared | None] = ContextVar("shared", default=None)


@contextmanager
def sharing(shared: Shared) -> Iterator[None]:
    """Let all stores that this thread opens from now on, to the end of `with`, share this."""
    token = _shared.set(shared)
    try:
        yield
    finally:
        _shared.reset(token)


def shared_here() -> Shared | None:
    """What a store that is opened now shares with others; None where each is on its own."""
    return _shared.get()
