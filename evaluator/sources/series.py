"""Source: a run that is given in memory, value by value: for examples, tests, and logs that are no trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evaluator.errors import KeyMissing
from evaluator.formats.collection_file import SavedCollection
from evaluator.formats.key_names import natural_key
from evaluator.modes import Mode
from evaluator.segments import Array
from evaluator.sources.base import (
    VALUE,
    Collections,
    FileValues,
    Layout,
    Positions,
    Sighting,
    Source,
    StepFile,
    interned,
    join,
)
from evaluator.storage.base import Store
from evaluator.storage.memory import MemoryStore


class Point(NamedTuple):
    """One saved value.

    Args:
        value: a number, a text, or an array; None: not saved at this step, as if the point were not there.
        wall_time: seconds since the epoch; the first one given in a file counts for the whole file.
    """

    step: int
    name: str
    value: Any
    mode: Mode
    worker: str = "worker_0"
    wall_time: float | None = None


class _File:
    """What one worker saves at one step in one mode, while points still come."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.wall_time: float | None = None


class SeriesRun(Source):
    """A finished run of one or several workers, held in memory.

    It is made by code and never found in a store, so this module has no SOURCE. Tensors stand in the order in which
    they first appear among the points. Values of several modes at one step make one step file per mode. Of a value that
    is given twice (same step, worker, mode and name) the later one counts.
    """

    name = "series"

    def __init__(
        self, points: Iterable[Point], *, collections: Mapping[str, Sequence[str] | SavedCollection] | None = None
    ) -> None:
        """Take all points at once.

        Args:
            points: in any order of steps; their order is that of the tensors.
            collections: name -> tensor names, or a SavedCollection where patterns are wanted.

        Raises:
            ValueError: a step is negative, or a value is neither numbers nor text.
        """
        self.store: Store = MemoryStore()
        self._layouts: dict[tuple[tuple[str, ...], tuple[str, ...]], Layout] = {}
        self._files: dict[tuple[int, str], dict[Mode, _File]] = {}
        self._workers: dict[str, None] = {}
        order: dict[str, int] = {}
        for point in points:
            self._take(point, order)
        self._mode_steps = self._count_mode_steps()
        self._sightings = self._sight()
        self._order = order
        self._collections: Collections | None = Collections(
            by_name={name: _saved(name, given) for name, given in (collections or {}).items()},
            num_workers=len(self._workers) or None,
            files=dict.fromkeys(self._workers, 0.0),
        )

    @classmethod
    def detect(cls, store: Store) -> bool:  # noqa: ARG003 - no store holds such a run
        """Never: nothing of it is stored."""
        return False

    def sightings(self, *, from_step: int | None = None) -> list[Sighting]:
        """One for each step of each worker; a run in memory does not grow."""
        return [sighting for sighting in self._sightings if from_step is None or sighting.step >= from_step]

    def open(self, sighting: Sighting) -> Sequence[StepFile]:
        """One file per mode."""
        files = self._files.get((sighting.step, sighting.worker))
        if files is None:
            raise KeyMissing(sighting.key, "no value was given for this step and worker")
        return [
            StepFile(
                sighting.step,
                sighting.worker,
                mode,
                self._mode_steps[sighting.step, sighting.worker, mode],
                sighting.modified,
                *self._lay_out(file),
            )
            for mode, file in sorted(files.items())
        ]

    def read(self, file: StepFile, groups: Sequence[Positions]) -> FileValues:
        """The values as they were given."""
        arrays = _arrays(file)
        values = FileValues(wall_time=self.wall_time(file))
        join(arrays, groups, values)
        return values

    def size_of(self, file: StepFile, groups: Sequence[Positions]) -> int:
        """The bytes of the arrays."""
        arrays = _arrays(file)
        return sum(arrays[position].nbytes for group in groups for position in group.tolist())

    def wall_time(self, file: StepFile) -> float | None:
        """The time given with the first point of the file that has one."""
        return self._files[file.step, file.worker][file.mode].wall_time

    def collections(self) -> Collections | None:
        """As given, the first time it is asked."""
        known, self._collections = self._collections, None
        return known

    def ended(self) -> bool:
        """A run that is given whole has ended."""
        return True

    def _take(self, point: Point, order: dict[str, int]) -> None:
        if point.step < 0:
            raise ValueError(f"{point.name!r}: step {point.step} is negative; steps count from 0")
        if point.value is None:
            return
        # a copy: training goes on changing the array it saved
        array = np.array(point.value)
        if array.dtype.kind not in "biufcUS":
            what = f"numpy type {array.dtype} is neither numbers nor text"
            raise ValueError(f"{point.name!r} at step {point.step}: {what}")
        order.setdefault(point.name, len(order))
        self._workers.setdefault(point.worker)
        file = self._files.setdefault((point.step, point.worker), {}).setdefault(Mode(point.mode), _File())
        file.arrays[point.name] = array
        if file.wall_time is None:
            file.wall_time = point.wall_time

    def _count_mode_steps(self) -> dict[tuple[int, str, Mode], int]:
        """How many earlier steps of the same worker and mode there are, for each file."""
        counts: dict[tuple[str, Mode], int] = {}
        found = {}
        for step, worker in sorted(self._files):
            for mode in self._files[step, worker]:
                found[step, worker, mode] = counts.get((worker, mode), 0)
                counts[worker, mode] = found[step, worker, mode] + 1
        return found

    def _sight(self) -> list[Sighting]:
        keys = sorted(self._files, key=lambda key: (key[0], natural_key(key[1])))
        found = []
        for step, worker in keys:
            files = self._files[step, worker].values()
            size = sum(array.nbytes for file in files for array in file.arrays.values())
            times = [file.wall_time for file in files if file.wall_time is not None]
            found.append(Sighting(step, worker, max(times, default=0.0), size, f"{step}/{worker}"))
        return found

    def _lay_out(self, file: _File) -> tuple[Layout, Mapping[int, Array]]:
        """The file's layout, tensors in the run's order, and its values by position."""
        names = tuple(sorted(file.arrays, key=self._order.__getitem__))
        layout = interned(self._layouts, names, (VALUE,) * len(names))
        return layout, {position: file.arrays[name] for position, name in enumerate(names)}


def _saved(name: str, given: Sequence[str] | SavedCollection) -> SavedCollection:
    return given if isinstance(given, SavedCollection) else SavedCollection(name, tensor_names=tuple(given))


def _arrays(file: StepFile) -> dict[int, Array]:
    if not isinstance(file.place, dict):
        raise TypeError("the step file is not of a series run")
    return file.place
