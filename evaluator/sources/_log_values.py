"""The values of a log as they come: by step, compact, and with a memory of what was given out already."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from evaluator.modes import Mode


class Named(NamedTuple):
    """What is logged again and again: a name in a mode."""

    name: str
    mode: Mode


@dataclass(frozen=True, slots=True)
class Stored:
    """An array that is read when it is asked for: a record of an event file, and which of the values in it."""

    key: str
    start: int
    length: int
    number: int
    size: int
    """Bytes of the values."""


class StepValues:
    """All values of one step, in the order in which they came; two numbers are kept of each."""

    __slots__ = ("highest", "late", "modes", "modified", "numbers", "series", "shown", "stored", "wall_time")

    def __init__(self) -> None:
        """None yet."""
        self.series = array("I")
        self.numbers = array("d")
        self.highest = -1
        """The highest number in `series`: a higher one need not be searched for."""
        self.modes: tuple[Mode, ...] = ()
        self.stored: dict[int, Stored] | None = None
        """Series -> where its array is, for those that are no single numbers."""
        self.modified = 0.0
        self.wall_time: float | None = None
        self.shown: int | None = None
        """How many values it had when it was opened: from then on its sighting does not change, unless one of them is
        written again."""
        self.late = 0
        """How many values came after that."""

    def place(self, series: int) -> int | None:
        """Where a series stands here; None when it does not."""
        if series > self.highest:
            return None
        try:
            return self.series.index(series)
        except ValueError:
            return None

    def value(self, series: int) -> float | Stored | None:
        """The value of a series; None when it has none here."""
        place = self.place(series)
        return None if place is None else self.at(place)

    def at(self, place: int) -> float | Stored:
        """The value that stands in a place."""
        stored = None if self.stored is None else self.stored.get(self.series[place])
        return self.numbers[place] if stored is None else stored

    def set(self, place: int, value: float | Stored) -> None:
        """Put a value in a place."""
        if isinstance(value, Stored):
            self.stored = {**(self.stored or {}), self.series[place]: value}
            return
        self.numbers[place] = value
        if self.stored is not None:
            self.stored.pop(self.series[place], None)

    def items(self) -> Iterator[tuple[int, float | Stored]]:
        """Series and value, in the order in which they came."""
        return ((number, self.at(place)) for place, number in enumerate(self.series))

    @property
    def size(self) -> int:
        """What tells that something was added, until it was opened."""
        return 8 * (len(self.series) if self.shown is None else self.shown)


class LogValues:
    """Everything that a log holds so far.

    A value that is given again replaces the one before. If that one had been given out (its step was opened), training
    has gone back, and the step's sighting changes. A value that a step got only after it was opened is late: it is
    counted, and seen by whoever opens the step again.
    """

    def __init__(self, former: LogValues | None = None) -> None:
        """Nothing yet, or, for files that were replaced and are read anew, nothing yet after `former`."""
        self.steps: dict[int, StepValues] = {}
        self.series: list[Named] = [] if former is None else former.series
        self.late = 0
        self.index: dict[Named, int] = {} if former is None else former.index
        self._steps_of: dict[Mode, array[int]] = {}
        self._former = {} if former is None else former.given_out()
        self._changed: set[int] = set()

    def given_out(self) -> dict[int, StepValues]:
        """The steps that were opened, and those of attempts before that were."""
        return {step: one for step, one in self.steps.items() if one.shown is not None} | self._former

    def number_of(self, named: Named) -> int:
        """The number of a series; a new one for a new name."""
        found = self.index.get(named)
        if found is None:
            found = self.index[named] = len(self.series)
            self.series.append(named)
        return found

    def put(
        self, step: int, named: Named, value: float | Stored, *, modified: float, wall_time: float | None = None
    ) -> None:
        """Add one value; `modified` is the time of the file that it stands in."""
        number = self.number_of(named)
        one = self.steps.get(step)
        if one is None:
            one = self.steps[step] = StepValues()
            if step in self._former:
                self._changed.add(step)
        place = one.place(number)
        if place is None:
            place = self._add(step, one, number, named.mode)
            if one.shown is not None:
                self._come_late(step, one, number, value, modified)
        elif _same(one.at(place), value):
            return
        elif one.shown is not None:
            self._write_again(one, modified)
        one.set(place, value)
        if one.shown is None:
            one.modified = max(one.modified, modified)
        if one.wall_time is None:
            one.wall_time = wall_time

    def drop(self, from_step: int, names: Iterable[str]) -> None:
        """Forget the values of these names from a step on: training begins there anew."""
        gone = {self.index[Named(name, mode)] for name in names for mode in Mode if Named(name, mode) in self.index}
        for step in [step for step in self.steps if step >= from_step]:
            one = self.steps[step]
            if gone.isdisjoint(one.series):
                continue
            if one.shown is not None:
                self._former.setdefault(step, one)
            kept = StepValues()
            kept.modified, kept.wall_time = one.modified, one.wall_time
            del self.steps[step]
            for mode in one.modes:
                steps = self._steps_of[mode]
                steps.pop(bisect_left(steps, step))
            for number, value in one.items():
                if number not in gone:
                    self.put(step, self.series[number], value, modified=one.modified, wall_time=one.wall_time)

    def settle(self) -> None:
        """After everything new was read: steps that came again after they were gone are those of before, or others."""
        for step in self._changed:
            one, former = self.steps[step], self._former[step]
            common = [(before, one.value(number)) for number, before in former.items()]
            there = [(before, now) for before, now in common if now is not None]
            if not there or not all(_same(before, now) for before, now in there):
                one.modified = max(one.modified, math.nextafter(former.modified, math.inf))
                del self._former[step]
                continue
            # a value that is not there (yet) is no other value: the file may be rewritten just now
            one.modified, one.shown, one.wall_time = former.modified, former.shown, former.wall_time
            one.late = max(0, len(one.series) - len(there))
            self.late += one.late
            if len(there) == len(common):
                del self._former[step]
        self._changed.clear()

    def open(self, step: int) -> StepValues:
        """The values of a step; its sighting stays as it is from now on."""
        one = self.steps[step]
        if one.shown is None or one.late:
            self.late -= one.late
            one.shown = one.shown or len(one.series)
            one.late = 0
        return one

    def reveal(self, modified: float) -> bool:
        """Change all sightings from the first step on that is late; whether any is."""
        last = max((step for step, one in self.steps.items() if one.shown is not None), default=-1)
        late = [step for step, one in self.steps.items() if one.late or (one.shown is None and step < last)]
        for step in [step for step in self.steps if late and step >= min(late)]:
            self._write_again(self.steps[step], modified)
        return bool(late)

    def mode_step(self, step: int, mode: Mode) -> int:
        """How many earlier steps have a value in this mode."""
        return bisect_left(self._steps_of[mode], step)

    def _add(self, step: int, one: StepValues, number: int, mode: Mode) -> int:
        """Make room for a value of a series; where it stands."""
        one.series.append(number)
        one.numbers.append(math.nan)
        one.highest = max(one.highest, number)
        if mode not in one.modes:
            one.modes = (*one.modes, mode)
            steps = self._steps_of.setdefault(mode, array("q"))
            if steps and steps[-1] > step:
                insort(steps, step)
            else:
                steps.append(step)
        return len(one.series) - 1

    def _come_late(self, step: int, one: StepValues, number: int, value: float | Stored, modified: float) -> None:
        """A value came after its step was opened; it may have been there before, in a file that is rewritten."""
        former = self._former.get(step)
        before = None if former is None else former.value(number)
        if before is None:
            one.late += 1
            self.late += 1
        elif not _same(before, value):
            self._write_again(one, modified)

    def _write_again(self, one: StepValues, modified: float) -> None:
        """Make the sighting another one."""
        self.late -= one.late
        one.late, one.shown = 0, None
        # also where the store's clock stands still
        one.modified = max(modified, math.nextafter(one.modified, math.inf))


def _same(one: float | Stored, other: float | Stored) -> bool:
    return one == other or (one != one and other != other)  # noqa: PLR0124 - NaN
