"""What all logs that people already have share as sources: one worker, values by step, names that tell the rest.

How a log is followed. Nobody says when a step is whole: a validation loss is written minutes after the training loss of
the same step. So the newest step stays open until a later one has begun (`open_from`), and what comes for a step after
it was opened is counted and named as late. A followed log ends by the end marker that `rule-evaluator end` writes, by
the watched process, the time-out, or a signal; the Trainer's state says when training has ended.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evaluator.errors import FormatError, KeyMissing, StorageError
from evaluator.formats.collection_file import SavedCollection
from evaluator.formats.key_names import END_MARKER
from evaluator.modes import Mode
from evaluator.scalar_names import Naming, collections_of
from evaluator.segments import Array
from evaluator.sources._log_values import LogValues, Named, Stored
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

WORKER = "worker_0"
"""Logs do not say which process wrote them; there is one."""

LARGEST_STEP = 2**62
"""Steps above are not taken: nobody counts so far, and they would not fit elsewhere."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a step file holds: values by position, and the time that the log gives."""

    values: tuple[float | Stored, ...]
    wall_time: float | None


class LogSource(Source):
    """A log: subclasses read what is new into `values`.

    `naming` may be set before the first listing where a configuration knows better than names do.
    """

    is_log: ClassVar[bool] = True
    naming: Naming
    values: LogValues
    problems: dict[str, str]
    """Where -> what was wrong, as the log is now."""

    def __init__(self, store: Store, naming: Naming | None = None) -> None:
        """Nothing is read yet."""
        self.store = store
        self.naming = Naming() if naming is None else naming
        self.values = LogValues()
        self.problems = {}
        self.modified = 0.0
        """Of the newest file that was read."""
        self._layouts: dict[tuple[tuple[str, ...], tuple[str, ...]], Layout] = {}
        self._told: tuple[int, dict[str, str]] | None = None
        self._listings = 0
        """How many listings may follow before it is looked again: a poll asks for the collections, then lists a part or
        everything, and all of it is to show the same."""

    @abstractmethod
    def look(self) -> None:
        """Read what is new into `values`, and keep `problems` and `modified` true."""

    def load(self, stored: Stored) -> Array:
        """The array of a value that was left in its file. Raises FormatError or StorageError."""
        raise FormatError(stored.key, "holds no arrays", "only single numbers are in such a log")

    @property
    def open_from(self) -> float:
        """The newest step; formats with several writers say the least of their newest ones.

        With nothing there every step is open: the file may be rewritten just now.
        """
        return max(self.values.steps, default=0)

    def sightings(self, *, from_step: int | None = None) -> list[Sighting]:
        """One per step."""
        if self._listings == 0 or (self._listings == 1 and from_step is not None):
            self._look()
            self._listings = 0
        else:
            # after a part of it the same poll may list everything
            self._listings = 1 if self._listings == 2 and from_step is not None else 0
        steps = sorted(step for step in self.values.steps if from_step is None or step >= from_step)
        return [self._sighting(step) for step in steps]

    def open(self, sighting: Sighting) -> Sequence[StepFile]:
        """One file per mode; what comes for the step from now on is late."""
        if sighting.step not in self.values.steps:
            raise KeyMissing(sighting.key, "is in the log no more")
        one = self.values.open(sighting.step)
        sighting.modified, sighting.size = one.modified, one.size
        by_mode: dict[Mode, list[tuple[str, float | Stored]]] = {}
        for number, value in sorted(one.items(), key=lambda item: item[0]):
            named = self.values.series[number]
            by_mode.setdefault(named.mode, []).append((named.name, value))
        files = []
        for mode, there in sorted(by_mode.items()):
            names = tuple(name for name, _ in there)
            layout = interned(self._layouts, names, (VALUE,) * len(names))
            values = tuple(value for _, value in there)
            mode_step = self.values.mode_step(sighting.step, mode)
            held = Held(values, one.wall_time)
            files.append(StepFile(sighting.step, WORKER, mode, mode_step, sighting.modified, layout, held))
        return files

    def read(self, file: StepFile, groups: Sequence[Positions]) -> FileValues:
        """Numbers as they are held; arrays from where they lie."""
        held = _held(file)
        values = FileValues(wall_time=held.wall_time)
        arrays: dict[int, Array] = {}
        for position in (at for group in groups for at in group.tolist()):
            value = held.values[position]
            if not isinstance(value, Stored):
                arrays[position] = np.array(value, np.float64)
                continue
            try:
                arrays[position] = self.load(value)
            except (FormatError, KeyMissing) as error:
                values.problems[position] = str(error)
        join(arrays, groups, values)
        return values

    def size_of(self, file: StepFile, groups: Sequence[Positions]) -> int:
        """Eight bytes for a number."""
        found = (_held(file).values[position] for group in groups for position in group.tolist())
        return sum(value.size if isinstance(value, Stored) else 8 for value in found)

    def wall_time(self, file: StepFile) -> float | None:
        """What the log says, if it does."""
        return _held(file).wall_time

    def collections(self) -> Collections | None:
        """Those that the names tell, and what was wrong with the log; looks at the log first."""
        self._look()
        self._listings = 2
        problems = self._all_problems()
        now = (len(self.values.series), problems)
        if self._told == now:
            return None
        self._told = now
        return Collections(
            by_name=self._named_collections(), num_workers=1, files={WORKER: self.modified}, problems=problems
        )

    def ended(self) -> bool:
        """Whether somebody left an end marker beside the log (`rule-evaluator end`); formats may have a sign too."""
        return self.store.stat(END_MARKER) is not None

    def reveal(self) -> bool:
        """From the first step on that has late values, or that came late itself, every step is another one."""
        self._look()
        return self.values.reveal(self.modified)

    def put(
        self, step: int, name: str, value: float | Stored, said: Mode | None = None, wall_time: float | None = None
    ) -> None:
        """Add one value, whose row or folder may say the mode."""
        named = Named(name, self.naming.mode(name, said))
        self.values.put(step, named, value, modified=self.modified, wall_time=wall_time)

    def _look(self) -> None:
        self.look()
        self.values.settle()

    def _sighting(self, step: int) -> Sighting:
        one = self.values.steps[step]
        return Sighting(step, WORKER, one.modified, one.size, f"step {step}")

    def _named_collections(self) -> dict[str, SavedCollection]:
        inferred = collections_of(named.name for named in self.values.series)
        found = {name: SavedCollection(name, tensor_names=tuple(names)) for name, names in inferred.items()}
        given = self.naming.collections.items()
        return found | {name: SavedCollection(name, include_regex=tuple(patterns)) for name, patterns in given}

    def _all_problems(self) -> dict[str, str]:
        problems = dict(self.problems)
        if self.values.late:
            late = counted(self.values.late, "value")
            problems["late values"] = f"{late} came after their step was taken; not evaluated"
        return problems


class Skipped:
    """What of a file could not be used: how much, and the first few with the reason."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.count = 0
        self._first: list[str] = []

    def add(self, where: str, why: str) -> None:
        """One more."""
        self.count += 1
        if len(self._first) < 3:
            self._first.append(f"{where} {why}")

    def text(self, what: str) -> str:
        """How many, which, and why."""
        more = f"; and {self.count - len(self._first)} more" if self.count > len(self._first) else ""
        return f"{counted(self.count, what)} not used: {'; '.join(self._first)}{more}"


def counted(number: int, what: str) -> str:
    """The number with the word for it."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def is_step(value: float) -> bool:
    """Whether a number can be a step."""
    return math.isfinite(value) and value == int(value) and 0 <= value <= LARGEST_STEP


def note_missing(problems: Mapping[str, str], key: str, error: StorageError) -> dict[str, str]:
    """The problems, and that a file could not be read."""
    return {**problems, key: error.without(key)}


def _held(file: StepFile) -> Held:
    if not isinstance(file.place, Held):
        raise TypeError("the step file is not of a log")
    return file.place
