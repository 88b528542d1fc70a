"""What one row of a table of scalars says: its step, its mode, and named numbers.

A row is wide (`step`, then one column per name) or long (`step`, `name`, `value`), and may say its `mode`.
The step stands in the first of STEPS that the first row with any of them has; where there is none, in `epoch`.
Other counters of this kind are no values. Cells that are empty, and columns of text, are not saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from evaluator.modes import Mode
from evaluator.scalar_names import mode_said
from evaluator.sources._log_source import LARGEST_STEP, is_step

STEPS = (
    *("step", "global_step", "trainer/global_step", "_step", "current_steps", "iter", "iteration", "iterations"),
    *("total_timesteps", "time/total_timesteps", "timesteps_total"),
)
"""Columns that count steps, best first."""
EPOCHS = ("epoch", "epochs", "current_epoch")
MODES = ("mode", "split", "phase")
NAMES = ("name", "tag", "metric", "key")
VALUE = "value"

DEEPEST = 8
"""Objects in objects are names with "/" between; deeper ones are not looked into."""


class RowProblem(ValueError):
    """Why a row cannot be used."""


class Row(NamedTuple):
    """A row as it was understood."""

    step: int
    mode: Mode | None
    values: list[tuple[str, float]]


class RowReader:
    """Reads the rows of one table, which all count their steps in the same column."""

    def __init__(self) -> None:
        """The first row decides."""
        self.step_column: str | None = None
        self.text: dict[str, None] = {}
        """Columns in which something stood that is no number."""

    def read(self, row: Mapping[str, object]) -> Row:
        """What a row says. Raises RowProblem."""
        plain = {name.strip().lower(): name for name in row}
        if self.step_column is None:
            self.step_column = step_column(plain)
        column = self.step_column
        if column is None:
            raise RowProblem("has no step: a column 'step', or another that counts, would be right")
        cell = row[plain[column]] if column in plain else None
        step = number(cell)
        if step is None or not is_step(step):
            shown = "nothing" if cell is None or cell == "" else repr(cell)[:40]
            raise RowProblem(f"has {shown} as {column!r}; a whole number from 0 to {LARGEST_STEP} would be right")
        said = next((mode for one in MODES if one in plain and (mode := mode_said(row[plain[one]]))), None)
        label = next((row[plain[one]] for one in NAMES if one in plain), None)
        if VALUE in plain and isinstance(label, str) and label.strip():
            return Row(int(step), said, list(self._numbers(label.strip(), row[plain[VALUE]], strict=True)))
        index = {*STEPS, *EPOCHS}
        values: list[tuple[str, float]] = []
        for lowered, name in plain.items():
            if lowered in index or (lowered in MODES and isinstance(row[name], str)) or not lowered:
                continue
            values.extend(self._numbers(name.strip(), row[name]))
        return Row(int(step), said, values)

    def _numbers(self, name: str, cell: object, depth: int = 0, *, strict: bool = False) -> Iterator[tuple[str, float]]:
        """The numbers in a cell, with their names."""
        if isinstance(cell, Mapping) and depth < DEEPEST:
            for inner, value in cell.items():
                yield from self._numbers(f"{name}/{inner}", value, depth + 1)
            return
        found = number(cell)
        if found is not None:
            yield name, found
        elif cell is not None and cell != "":
            if strict:
                raise RowProblem(f"has {repr(cell)[:40]} as value of {name!r}; a number would be right")
            if len(self.text) < 100:
                self.text[name] = None


def step_column(lowered: Mapping[str, object]) -> str | None:
    """The column that counts the steps, of those that there are."""
    return next((one for one in (*STEPS, *EPOCHS) if one in lowered), None)


def number(cell: object) -> float | None:
    """The number in a cell, also where it is written as text; None where there is none."""
    if isinstance(cell, bool):
        return None
    if isinstance(cell, int | float):
        try:
            return float(cell)
        except OverflowError:
            return math.inf if cell > 0 else -math.inf
    if not isinstance(cell, str) or "_" in cell:
        return None
    try:
        # also NaN, Infinity, inf, -inf, in any case
        return float(cell)
    except ValueError:
        return None
