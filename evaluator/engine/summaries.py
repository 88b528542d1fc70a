"""Summaries: what is known of a step once its files were read: measures of tensors, and values kept to be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evaluator.engine.kept import Kept
from evaluator.errors import StorageUnavailable
from evaluator.file_plan import FilePlan
from evaluator.needs import Measure
from evaluator.segments import Array, Bools
from evaluator.sources.base import Positions, StepFile
from evaluator.trial.trial import Step

if TYPE_CHECKING:
    from evaluator.engine.alike import Block


@dataclass(slots=True)
class Measured:
    """One measure of the tensors of one file, by the position of their entries in the layout."""

    values: Array
    present: NDArray[np.bool_]

    @classmethod
    def room(cls, measure: Measure, entries: int) -> Measured:
        """Nothing measured yet."""
        return cls(measure.room(entries), np.zeros(entries, np.bool_))


Chosen = tuple[Array, Bools | None]
"""Results per tensor that feeds a series, and which tensors have one (None: all of them)."""


def chosen(values: Array, present: Bools, positions: Positions) -> Chosen | None:
    """The results at these positions of a layout; None where there is none."""
    there = present[positions]
    if there.all():
        return values[positions], None
    return (values[positions], there) if there.any() else None


@dataclass(slots=True)
class FileSummary:
    """Everything that is needed of one file, the bytes themselves let go where they are not compared later."""

    file: StepFile
    plan: FilePlan
    measured: dict[Measure, Measured] = field(default_factory=dict)
    kept: Kept | None = None
    problems: dict[int, str] = field(default_factory=dict)
    failures: dict[Measure, str] = field(default_factory=dict)
    """Measures that raised, with the traceback."""
    wall_time: float | None = None
    empty: dict[int, Array] = field(default_factory=dict)
    """Tensors without elements, kept where everything is."""
    outage: StorageUnavailable | None = None
    """The storage did not answer, so that nothing is known of the file."""
    block: Block | None = None
    """The files that it was summarised with, which then has what was measured, and its place among them."""
    at: int = 0


@dataclass(slots=True)
class StepSummary:
    """A step and the summaries of its files, in the order of its files."""

    step: Step
    files: list[FileSummary]
