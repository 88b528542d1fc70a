"""Where in a row the single numbers stand, which is worked out once for all rows that are alike in this.

What is known of a number stands in a slot: two for each column, one for training and one for evaluation, because a
column has no mode: the same loss may be saved in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from builtin_rules.losses._names import of_evaluation
from evaluator.modes import Mode
from evaluator.rule import Column, Row

ALL_PHASES = frozenset({Mode.TRAIN, Mode.EVAL, Mode.GLOBAL})
EVALUATION_MODES = frozenset({Mode.EVAL, Mode.GLOBAL})
TRAINING, EVALUATION = 0, 1
_GLOBAL = int(Mode.GLOBAL)
_PHASES = {int(Mode.TRAIN): TRAINING, int(Mode.EVAL): EVALUATION}


class Place(NamedTuple):
    """Where a single number stands: its slot, its column in the row, the name there, and the mode it was saved in."""

    slot: int
    column: int
    name: str
    mode: int


@dataclass(frozen=True, eq=False)
class Layout:
    """Which columns of a row hold single numbers, in column order; equal to itself only, so that it is quickly found.

    Keeping the columns keeps others from getting their identity, by which a layout is known.
    """

    columns: Sequence[Column]
    width: int
    """How many columns the row had; there may be more by now."""
    places: tuple[Place, ...]


MOST_LAYOUTS = 64
"""A run has few, one for each mode or so; where columns are saved at random there is no use in keeping them."""
_layouts: dict[tuple[int, bytes, bytes], Layout] = {}


def layout_of(row: Row) -> Layout:
    """The layout of a row; `row.values` are values and numbers of elements."""
    key = (id(row.columns), row.modes.tobytes(), row.values[:, 1].tobytes())
    layout = _layouts.get(key)
    if layout is None:
        if len(_layouts) >= MOST_LAYOUTS:
            _layouts.clear()
        layout = _layouts[key] = Layout(row.columns, len(row.values), tuple(_places(row)))
    return layout


def _places(row: Row) -> Iterator[Place]:
    for column, (mode, size) in enumerate(zip(row.modes.tolist(), row.values[:, 1].tolist(), strict=True)):
        if mode and size == 1:
            name = row.columns[column].tensor
            phase = phase_of(mode, name)
            if phase is not None:
                yield Place(2 * column + phase, column, name, mode)


def phase_of(mode: int, name: str) -> int | None:
    """TRAINING or EVALUATION; None for what belongs to neither.

    Our choice: what was saved without a mode is of evaluation if its name says so (`eval_loss`), and of training
    otherwise.
    """
    if mode == _GLOBAL:
        return EVALUATION if of_evaluation(name) else TRAINING
    return _PHASES.get(mode)


def values_of(row: Row) -> list[float]:
    """The value in each column."""
    values: list[float] = row.values[:, 0].tolist()
    return values
