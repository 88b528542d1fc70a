"""What a section of the report consists of, before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluator.segments import Floats


@dataclass(frozen=True)
class Bars:
    """Named numbers, as bars; many or long names lie down."""

    title: str
    names: Sequence[str]
    values: Floats
    name_axis: str
    value_axis: str
    lying: bool = False


@dataclass(frozen=True)
class Histogram:
    """How many values lie between each two edges."""

    title: str
    edges: Floats
    counts: Floats
    value_axis: str
    count_axis: str
    marked: float | None = None
    """Where a line is drawn across."""


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    name: str
    across: Floats
    up: Floats


@dataclass(frozen=True)
class Lines:
    """Several lines over one axis."""

    title: str
    lines: Sequence[Line]
    across_axis: str
    up_axis: str
    square: bool = False
    """Both axes go from 0 to 1, with the diagonal drawn."""
    shares: bool = False
    """The numbers lie between 0 and 1."""


@dataclass(frozen=True)
class Grid:
    """Counts of labels (down) by predictions (across)."""

    title: str
    names: Sequence[str]
    counts: Floats


Chart = Bars | Histogram | Lines | Grid


@dataclass(frozen=True)
class Table:
    """Texts in rows; the first column names the row."""

    name: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """One section of the report; `missing` says why it has nothing to show."""

    anchor: str
    title: str
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = field(default=())
    missing: str | None = None
