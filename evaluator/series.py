"""Series: one thing computed of one selection of tensors, row by row, shared by every rule that needs the same."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.modes import Mode
from evaluator.needs import Accumulator, Measure, OtherTrial, Partner, Selection, StateArrays
from evaluator.segments import Array, Bools
from evaluator.window import Column, Row, State, Window

Codes = NDArray[np.int8]
Indices = NDArray[np.int64]

LEAST_ROWS = 16
"""Room for so many rows is made at a time."""


@dataclass(frozen=True)
class SeriesKey:
    """What makes two needs the same: they share one series."""

    selection: Selection
    measure: Measure
    modes: frozenset[Mode] | None
    partner: Partner | None


@dataclass(slots=True)
class RowPart:
    """What one file adds to a row: columns, values (one per column, or a row of `width`), and modes."""

    columns: Indices | slice
    values: Array
    codes: Codes

    def covers(self, columns: int) -> bool:
        """Whether it gives every one of so many columns a value."""
        return isinstance(self.columns, slice) and self.columns == slice(0, columns)


class Series:
    """The rows of one SeriesKey, and the states folded from them.

    Columns only ever get added, so an index into them stays valid; those of one step are added in column order
    (tensors as training first saved them, workers in natural order within a tensor).
    """

    def __init__(self, key: SeriesKey) -> None:
        """No row yet, and no history asked for."""
        self.key = key
        self.columns: list[Column] = []
        self.index: dict[tuple[str, str], int] = {}
        self.states: dict[Accumulator, StateArrays] = {}
        self.failures: dict[Accumulator, str] = {}
        """States that could not be folded further, with the traceback."""
        self.last_row: Row | None = None
        self.without_value: dict[str, set[str]] = {}
        """Why selected tensors had no value -> their names (the first few)."""
        self._other = key.partner.path if isinstance(key.partner, OtherTrial) else ""
        self._keep_rows = 1
        self._keep_steps = 0
        self._first = 0
        self._count = 0
        self._values: Array = key.measure.room(0, 0)
        self._codes: Codes = np.empty((0, 0), np.int8)
        self._steps: Indices = np.empty(0, np.int64)

    def keep(self, rows: int, steps: int) -> None:
        """Keep at least this much history."""
        self._keep_rows = max(self._keep_rows, rows)
        self._keep_steps = max(self._keep_steps, steps)

    def fold(self, accumulator: Accumulator) -> None:
        """Fold the rows into a state from now on."""
        self.states.setdefault(accumulator, accumulator.start())

    def column(self, tensor: str, worker: str) -> int:
        """The index of a column, which is added if it is new."""
        key = (tensor, worker)
        found = self.index.get(key)
        if found is None:
            found = self.index[key] = len(self.columns)
            self.columns.append(Column(tensor, worker))
        return found

    def add(self, step: int, parts: Sequence[RowPart]) -> None:
        """Add the row of a step."""
        self._make_room()
        at = self._first + self._count
        values, codes = self._values[at], self._codes[at]
        if len(parts) > 1 or not parts[0].covers(len(codes)):
            values[...] = None if self.key.measure.ragged else np.nan
            codes[...] = 0
        self._steps[at] = step
        for part in parts:
            values[part.columns] = part.values
            codes[part.columns] = part.codes
        self._count += 1
        self.last_row = Row(values, codes, step, self.columns)
        for accumulator, state in self.states.items():
            try:
                self.states[accumulator] = accumulator.add(state, self.last_row)
            except Exception:  # noqa: BLE001 - a rule's own function may raise anything; only that rule ends
                self.failures[accumulator] = traceback.format_exc()

    def forget(self) -> None:
        """All steps come anew: drop the rows, and what was folded from them; columns stay."""
        self._first = self._count = 0
        self.last_row = None
        self.states = {accumulator: accumulator.start() for accumulator in self.states}

    def window(self, rows: int, steps: int) -> Window:
        """The last rows, as many as were asked for and are there."""
        if self._codes.shape[1] < len(self.columns):
            self._make_room()
        end = self._first + self._count
        start = end - min(rows, self._count)
        if steps:
            start = min(start, self._reaching_back(steps))
        rows_of = slice(start, end)
        return Window(self._values[rows_of], self._codes[rows_of], self._steps[rows_of], self.columns, self._other)

    def state(self, accumulator: Accumulator) -> State:
        """What was folded so far."""
        if self.last_row is None:
            self.last_row = Row(
                self.key.measure.room(len(self.columns)),
                np.zeros(len(self.columns), np.int8),
                -1,
                self.columns,
            )
        return State(self.states[accumulator], self.last_row)

    def _reaching_back(self, steps: int) -> int:
        """The first row that a window of the last `steps` steps needs."""
        older = self._older(steps)
        return self._first + (int(older[0]) if len(older) else 0)

    def _older(self, steps: int) -> Indices:
        """Of the rows at least `steps` steps older than the last, those with the last value of a column in a mode."""
        count = self._older_count(steps)
        codes = self._codes[self._first : self._first + count]
        needed = [_last_rows(codes == code) for code in range(1, len(Mode) + 1)] if count > 1 else [np.arange(count)]
        return np.unique(np.concatenate(needed))

    def _older_count(self, steps: int) -> int:
        """How many rows are at least `steps` steps older than the last one."""
        live = self._steps[self._first : self._first + self._count]
        return int(np.searchsorted(live, live[-1] - steps, side="right")) if len(live) else 0

    def _trim(self) -> None:
        """Let go of rows that no need reaches back to."""
        start = self._count - min(self._keep_rows, self._count)
        if self._keep_steps:
            start = min(start, self._older_count(self._keep_steps))
            older = self._older(self._keep_steps)
            older = older[older < start]
            self._move_up(older, self._first + start)
            start -= len(older)
        self._first += start
        self._count -= start

    def _move_up(self, rows: Indices, start: int) -> None:
        """Put these rows directly before `start`, over others that are let go."""
        target = slice(start - len(rows), start)
        source = self._first + rows
        if len(rows) and int(source[0]) != target.start:
            self._values[target] = self._values[source]
            self._codes[target] = self._codes[source]
            self._steps[target] = self._steps[source]

    def _make_room(self) -> None:
        """Room for one more row and for the columns there are now; what nobody needs any more is let go on the way."""
        capacity, columns = self._codes.shape
        if columns >= len(self.columns) and self._first + self._count < capacity:
            return
        self._trim()
        rows = max(LEAST_ROWS, 2 * self._count)
        width = max(len(self.columns), columns)
        old = slice(self._first, self._first + self._count)
        values = self.key.measure.room(rows, width)
        codes: Codes = np.zeros((rows, width), np.int8)
        steps: Indices = np.zeros(rows, np.int64)
        values[: self._count, :columns] = self._values[old]
        codes[: self._count, :columns] = self._codes[old]
        steps[: self._count] = self._steps[old]
        self._values, self._codes, self._steps, self._first = values, codes, steps, 0


def _last_rows(saved: Bools) -> Indices:
    """The rows in which some column was saved last."""
    last = len(saved) - 1 - np.argmax(saved[::-1], axis=0)
    return np.unique(last[saved.any(axis=0)])
