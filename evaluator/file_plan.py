"""What to read of files with one layout and mode, and what to do with it; made by the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from evaluator.needs import Measure, Previous
from evaluator.series import Codes, Indices, Series
from evaluator.sources.base import Layout, Positions


@dataclass(slots=True)
class Group:
    """Value entries that the same things are computed of, read and joined together."""

    positions: Positions
    measures: tuple[Measure, ...]
    keep: bool
    """Whether the values themselves are needed afterwards, to be compared with others."""


@dataclass(slots=True)
class FromReductions:
    """A measure got from saved reductions: per tensor the entries of those that are there."""

    measure: Measure
    anchors: Positions
    """Where the result is put: one entry per tensor."""
    entries: Mapping[str, Positions]


@dataclass(slots=True)
class SeriesPart:
    """Which entries of a file feed a series, in which modes, and for which tensors."""

    series: Series
    positions: Positions
    names: tuple[str, ...]
    codes: Codes
    partners: tuple[str | None, ...] = ()
    """For a partner beside: the partner's name of each tensor."""
    columns: dict[str, Indices | slice] = field(default_factory=dict)
    """Worker -> column indices, as a slice where they follow one another; filled when the worker is first seen."""
    name_set: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """The same names, to be compared with others."""
        self.name_set = frozenset(self.names)

    def columns_of(self, worker: str) -> Indices | slice:
        """The columns of this worker's tensors in the series."""
        found = self.columns.get(worker)
        if found is None:
            indices = np.array([self.series.column(name, worker) for name in self.names], np.int64)
            found = self.columns[worker] = _as_slice(indices)
        return found


@dataclass(slots=True)
class FilePlan:
    """What to read of every file with one layout and mode, and what to do with it."""

    layout: Layout
    groups: list[Group]
    reductions: Positions
    from_reductions: list[FromReductions]
    parts: list[SeriesPart]
    whole: bool = False
    """Whether everything in the file is read and kept, for rules that do not say what they need."""
    reads: list[Positions] = field(init=False)
    """The groups as the source takes them, saved reductions last."""
    with_earlier: list[SeriesPart] = field(init=False)
    """The parts whose values are compared with earlier ones."""
    keeps: bool = field(init=False)
    """Whether values are needed after they were measured."""
    keeps_several: bool = field(init=False)
    """Whether more than the last ones are needed of a tensor."""
    made_for: object = None
    """What the plan of the job knows it by."""
    results: int = field(init=False)
    """Bytes that the results of all measures take."""
    seated: set[str] = field(default_factory=set)
    """The workers whose tensors have their columns in all series."""

    def __post_init__(self) -> None:
        """What is asked at every file is worked out once."""
        self.reads = [*(group.positions for group in self.groups), self.reductions]
        self.with_earlier = [part for part in self.parts if isinstance(part.series.key.partner, Previous)]
        self.keeps = any(group.keep for group in self.groups)
        partners = [part.series.key.partner for part in self.with_earlier]
        self.keeps_several = any(isinstance(one, Previous) and one.within is not None for one in partners)
        measures = {measure for group in self.groups for measure in group.measures}
        measures.update(derived.measure for derived in self.from_reductions)
        self.results = 8 * len(self.layout.names) * sum(measure.width for measure in measures)


def _as_slice(indices: Indices) -> Indices | slice:
    """The same indices, in the form that is quicker to use."""
    first, count = int(indices[0]), len(indices)
    return slice(first, first + count) if np.array_equal(indices, np.arange(first, first + count)) else indices
