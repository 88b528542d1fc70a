"""Pieces: parts of bytes that are laid end to end, with few copies where they lie at equal distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORTH_A_RUN = 4
"""Parts at equal distances from which on one strided copy takes less than cutting each out."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Parts of one size at equal distances."""

    start: int
    stride: int
    count: int
    size: int


class Pieces:
    """Where the parts are; the same for all bytes that are laid out alike."""

    __slots__ = ("_alone", "_cut", "_runs", "size")

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        """Note the first and the last byte (exclusive) of each part, in the order in which they are laid."""
        self._alone = spans[0] if len(spans) == 1 else None
        self.size = sum(stop - start for start, stop in spans)
        runs = _runs(spans)
        self._runs = runs if WORTH_A_RUN * len(runs) <= len(spans) else []
        self._cut: Callable[[memoryview], Any] = itemgetter(*(slice(start, stop) for start, stop in spans))

    def of(self, data: bytes, *, copied: bool) -> NDArray[np.uint8]:
        """The parts of these bytes, not to be written to; a lone one is a view unless it must be a copy."""
        if self._alone is not None:
            part = memoryview(data)[slice(*self._alone)]
            return np.frombuffer(bytes(part) if copied else part, np.uint8)
        if not self._runs:
            return np.frombuffer(b"".join(self._cut(memoryview(data))), np.uint8)
        laid = np.empty(self.size, np.uint8)
        self.lay(data, laid)
        laid.flags.writeable = False
        return laid

    def lay(self, data: bytes, laid: NDArray[np.uint8]) -> None:
        """Copy the parts of these bytes to where there is room for them."""
        if not self._runs:
            laid[:] = self.of(data, copied=False)
            return
        at = 0
        for run in self._runs:
            kind = f"V{run.size}"
            stop = at + run.count * run.size
            laid[at:stop].view(kind)[:] = np.ndarray((run.count,), kind, data, run.start, (run.stride,))
            at = stop


def _runs(spans: Sequence[tuple[int, int]]) -> list[_Run]:
    """The parts in runs that are as long as possible from the first one on."""
    runs: list[_Run] = []
    for start, stop in spans:
        last = runs[-1] if runs else None
        if last is not None and stop - start == last.size and start > last.start:
            stride = start - last.start if last.count == 1 else last.stride
            if start == last.start + last.count * stride:
                runs[-1] = _Run(last.start, stride, last.count + 1, last.size)
                continue
        runs.append(_Run(start, stop - start, 1, stop - start))
    return runs
