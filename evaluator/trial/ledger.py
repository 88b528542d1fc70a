"""Ledger: which files of which worker were dealt with, in a few bytes per file, so that days of steps fit in memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import NamedTuple


class Taken(NamedTuple):
    """What is remembered of one file."""

    modified: float
    size: int
    used: bool
    """Whether it was evaluated; not so when it came too late or could not be read."""


class Ledger:
    """Per worker the steps dealt with, with the modification time and size of the file."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._steps: dict[str, array[int]] = {}
        self._modified: dict[str, array[float]] = {}
        self._sizes: dict[str, array[int]] = {}

    def record(self, worker: str, step: int, modified: float, size: int, *, used: bool = True) -> None:
        """Remember this file; a later one for the same step replaces an earlier one."""
        steps = self._steps.setdefault(worker, array("q"))
        modified_times = self._modified.setdefault(worker, array("d"))
        sizes = self._sizes.setdefault(worker, array("q"))
        # Sizes are never negative, so the sign has room for what else there is to know.
        stored = size if used else ~size
        place = len(steps) if not steps or steps[-1] < step else bisect_left(steps, step)
        if place < len(steps) and steps[place] == step:
            modified_times[place], sizes[place] = modified, stored
        else:
            steps.insert(place, step)
            modified_times.insert(place, modified)
            sizes.insert(place, stored)

    def find(self, worker: str, step: int) -> Taken | None:
        """The file recorded for this worker and step."""
        steps = self._steps.get(worker)
        if steps is None:
            return None
        place = bisect_left(steps, step)
        if place == len(steps) or steps[place] != step:
            return None
        size = self._sizes[worker][place]
        return Taken(self._modified[worker][place], max(size, ~size), size >= 0)

    def knows(self, step: int) -> bool:
        """Whether any worker's file for this step was recorded."""
        return any(self.find(worker, step) is not None for worker in self._steps)

    def last_step(self, worker: str) -> int | None:
        """The last step of this worker."""
        steps = self._steps.get(worker)
        return steps[-1] if steps else None

    def first_step(self, worker: str) -> int:
        """The first step of a worker of which something was recorded."""
        return self._steps[worker][0]

    def steps_of(self, worker: str) -> int:
        """How many steps of this worker are recorded."""
        return len(self._steps.get(worker, ()))

    @property
    def workers(self) -> list[str]:
        """The workers of which something was recorded."""
        return list(self._steps)
