"""What every fuzzed case has to keep to: documented errors only, bounded memory, bounded time."""

from __future__ import annotations

import signal
import time
import tracemalloc
from collections.abc import Callable
from types import FrameType

from evaluator.errors import FormatError, InputError, StorageError

DOCUMENTED = (FormatError, StorageError, InputError)
"""What reading a trial may raise."""

MEMORY = 64 * 2**20
"""Bytes that a case may take at once, beyond its input."""

SECONDS = 1.0
"""Processor time of a case that is not the whole program; the clock on the wall would blame other programs on us."""

STUCK = 60
"""Seconds on the wall after which a case hangs."""


class OutOfBounds(AssertionError):
    """A case took too much memory or time."""


def bounded(case: Callable[[bytes], object], data: bytes, seconds: float = SECONDS) -> None:
    """Run a case on its input.

    Raises:
        OutOfBounds: it took too much.
        Exception: whatever the case raised that is not documented, or an assertion of its own.
    """
    # only while the case runs: tracing makes everything else slow
    tracemalloc.start()
    former = signal.signal(signal.SIGALRM, _stuck)
    signal.alarm(STUCK)
    started = time.process_time()
    try:
        case(data)
    except DOCUMENTED:
        # the whole file is bad, which its reader counts
        pass
    finally:
        took = time.process_time() - started
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
    if peak > MEMORY + len(data):
        raise OutOfBounds(
            f"takes {peak} bytes of memory for {len(data)} of input; at most {MEMORY} more would be right"
        )
    if took > seconds:
        raise OutOfBounds(f"takes {took:.1f} s for {len(data)} bytes; at most {seconds} s would be right")


def _stuck(_: int, __: FrameType | None) -> None:
    raise OutOfBounds(f"hangs: not done after {STUCK} s")
