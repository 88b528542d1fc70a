"""The only way to time: everything that waits or stamps is handed a Clock."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the program needs of time."""

    def now(self) -> float:
        """Seconds since the epoch, as files and status stamps use them."""

    def monotonic(self) -> float:
        """Seconds that never go back, for time-outs."""

    def wait(self, seconds: float) -> bool:
        """Wait that long, or until `wake`; True when woken early."""

    def wake(self) -> None:
        """End the present and every later wait at once; never to be called from within a signal handler."""


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        """Start awake to nothing: no signal has come."""
        self._woken = threading.Event()

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def wait(self, seconds: float) -> bool:
        """Wait, or be woken by a signal."""
        return self._woken.wait(seconds)

    def wake(self) -> None:
        """Let every wait end at once from now on."""
        self._woken.set()


def timestamp(seconds: float) -> str:
    """A time as RFC 3339 in UTC with Z and milliseconds, as all output files write it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
