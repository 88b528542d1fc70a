"""Plan: the union of what all rules need, worked out once per layout: what to read of a file, what to compute of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from evaluator.modes import Mode
from evaluator.needs import Beside, Measure, Previous, Selection
from evaluator.series import Codes, Indices, Series
from evaluator.sources.base import SHAPE, VALUE, Layout, Positions
from evaluator.trial.names import NameBook

EVALUATION_PREFIXES = ("validation-", "eval-", "test-")


def value_mode(name: str, file_mode: Mode, layout: Layout, *, only_global: bool) -> Mode:
    """The mode of one value, which its name can tell better than its file.

    XGBoost saves everything in mode GLOBAL and Keras saves `val_loss` beside `loss` in one file at the end of an epoch;
    there the name decides.
    """
    if file_mode is Mode.GLOBAL and only_global:
        if name.startswith("train-"):
            return Mode.TRAIN
        if name.startswith(EVALUATION_PREFIXES):
            return Mode.EVAL
    elif file_mode is not Mode.GLOBAL:
        if name.startswith("val_") and name[4:] in layout.at:
            return Mode.EVAL
        if f"val_{name}" in layout.at:
            return Mode.TRAIN
    return file_mode


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
    seated: set[str] = field(default_factory=set)
    """The workers whose tensors have their columns in all series."""

    def __post_init__(self) -> None:
        """What is asked at every file is worked out once."""
        self.reads = [*(group.positions for group in self.groups), self.reductions]
        self.with_earlier = [part for part in self.parts if isinstance(part.series.key.partner, Previous)]
        self.keeps = any(group.keep for group in self.groups)


class Plan:
    """What all rules need of a run; changes when a rule ends or collections change."""

    def __init__(self, names: NameBook) -> None:
        """Nothing is needed yet."""
        self.series: dict[tuple[object, ...], Series] = {}
        self._names = names
        self._whole = False
        self._files: dict[tuple[int, Mode, bool, int], tuple[Layout, FilePlan]] = {}

    def use(self, series: Iterable[Series], *, whole: bool = False) -> None:
        """Need exactly these series from now on, and with `whole` every value of every file."""
        self.series = {(one.key,): one for one in series}
        self._whole = whole
        self._files.clear()

    def of(self, layout: Layout, mode: Mode, *, only_global: bool) -> FilePlan:
        """The plan for a file with this layout and mode."""
        key = (id(layout), mode, only_global, self._names.version)
        found = self._files.get(key)
        if found is None:
            if len(self._files) >= 256:
                self._files.clear()
            # The layout is kept so that its id cannot become another's.
            found = self._files[key] = (layout, self._make(layout, mode, only_global))
        return found[1]

    def _make(self, layout: Layout, mode: Mode, only_global: bool) -> FilePlan:
        modes = {name: value_mode(name, mode, layout, only_global=only_global) for name in layout.at}
        wanted: dict[int, set[Measure]] = defaultdict(set)
        kept: set[int] = set()
        derived: dict[tuple[Measure, tuple[str, ...]], list[str]] = defaultdict(list)
        parts = []
        for series in self.series.values():
            chosen = self._choose(series, layout, modes, wanted, kept, derived)
            if chosen is not None:
                parts.append(chosen)
        if self._whole:
            kept.update(at for at, kind in enumerate(layout.kinds) if kind != SHAPE)
        by_work: dict[tuple[frozenset[Measure], bool], list[int]] = defaultdict(list)
        for position in sorted({*wanted, *kept}):
            by_work[frozenset(wanted.get(position, ())), position in kept].append(position)
        groups = [
            Group(np.array(positions, np.int64), tuple(measures), keep)
            for (measures, keep), positions in by_work.items()
        ]
        from_reductions = [
            FromReductions(
                measure,
                np.array([layout.at[name][kinds[0]] for name in tensors], np.int64),
                {kind: np.array([layout.at[name][kind] for name in tensors], np.int64) for kind in kinds},
            )
            for (measure, kinds), tensors in derived.items()
        ]
        entries = sorted({int(p) for one in from_reductions for column in one.entries.values() for p in column})
        return FilePlan(layout, groups, np.array(entries, np.int64), from_reductions, parts, self._whole)

    def _choose(
        self,
        series: Series,
        layout: Layout,
        modes: Mapping[str, Mode],
        wanted: dict[int, set[Measure]],
        kept: set[int],
        derived: dict[tuple[Measure, tuple[str, ...]], list[str]],
    ) -> SeriesPart | None:
        """Which entries feed a series; adds what has to be read and computed for it."""
        key = series.key
        names, positions = [], []
        for name, kinds in layout.at.items():
            if not (key.modes is None or modes[name] in key.modes) or not self._names.selects(key.selection, name):
                continue
            saved = tuple(kind for kind in key.measure.reductions if kind in kinds)
            if key.partner is None and saved and (len(key.measure.reductions) == 1 or VALUE not in kinds):
                derived[key.measure, saved].append(name)
                position = kinds[saved[0]]
            elif VALUE in kinds:
                position = kinds[VALUE]
                if key.partner is None:
                    wanted[position].add(key.measure)
                else:
                    kept.add(position)
            else:
                _lacks_value(series, name, kinds)
                continue
            names.append(name)
            positions.append(position)
        partners: tuple[str | None, ...] = ()
        if isinstance(key.partner, Beside):
            partners = self._beside(key.partner.selection, names, layout, kept)
        if not names:
            return None
        codes = np.array([modes[name] for name in names], np.int8)
        return SeriesPart(series, np.array(positions, np.int64), tuple(names), codes, partners)

    def _beside(self, selection: Selection, names: list[str], layout: Layout, kept: set[int]) -> tuple[str | None, ...]:
        """The partner of each tensor: the n-th of the one selection, by name, goes with the n-th of the other."""
        others = sorted(
            name for name, kinds in layout.at.items() if VALUE in kinds and self._names.selects(selection, name)
        )
        kept.update(layout.at[name][VALUE] for name in others)
        by_name = dict(zip(sorted(names), others, strict=False))
        return tuple(by_name.get(name) for name in names)


def _as_slice(indices: Indices) -> Indices | slice:
    """The same indices, in the form that is quicker to use."""
    first, count = int(indices[0]), len(indices)
    return slice(first, first + count) if np.array_equal(indices, np.arange(first, first + count)) else indices


def _lacks_value(series: Series, name: str, kinds: Mapping[str, int]) -> None:
    """Remember why a selected tensor gives the series nothing."""
    reductions = [kind for kind in kinds if kind not in {"shape", VALUE}]
    why = f"only reductions {', '.join(reductions)} were saved" if reductions else "only shapes were saved"
    names = series.without_value.setdefault(why, set())
    if len(names) < 100:
        names.add(name)
