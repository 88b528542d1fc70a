"""Plan: the union of what all rules need, worked out once per layout: what to read of a file, what to compute of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from evaluator.file_plan import FilePlan, FromReductions, Group, SeriesPart
from evaluator.modes import Mode
from evaluator.needs import Beside, Measure, Selection
from evaluator.series import Series
from evaluator.sources.base import SHAPE, VALUE, Layout
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
class _Choice:
    """What one series is fed with of files with one layout and mode."""

    part: SeriesPart | None
    wanted: list[int] = field(default_factory=list)
    """Entries of which the series' measure is computed."""
    kept: list[int] = field(default_factory=list)
    derived: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    """Tensors of which it is got from saved reductions, with the names of these."""


_Key = tuple[int, Mode, bool, int]
"""Layout, mode of the file, whether only GLOBAL was seen, version of the names."""


class Plan:
    """What all rules need of a run; changes when a rule ends or collections change."""

    def __init__(self, names: NameBook) -> None:
        """Nothing is needed yet."""
        self.series: dict[tuple[object, ...], Series] = {}
        self._names = names
        self._whole = False
        self._generation = 0
        self._files: dict[_Key, tuple[Layout, FilePlan]] = {}
        self._choices: dict[_Key, tuple[Layout, dict[Series, _Choice]]] = {}
        """What was chosen for each series stands when other series are needed no more."""

    def use(self, series: Iterable[Series], *, whole: bool = False) -> None:
        """Need exactly these series from now on, and with `whole` every value of every file."""
        self.series = {(one.key,): one for one in series}
        self._whole = whole
        self._files.clear()
        self._generation += 1

    def of(self, layout: Layout, mode: Mode, *, only_global: bool) -> FilePlan:
        """The plan for a file with this layout and mode."""
        return self._of((id(layout), mode, only_global, self._names.version), layout)

    def renewed(self, plan: FilePlan) -> FilePlan:
        """The same one, or where rules have ended since it was made, the one that would be made now."""
        made_for = cast("tuple[int, _Key]", plan.made_for)
        return plan if made_for[0] == self._generation else self._of(made_for[1], plan.layout)

    def _of(self, key: _Key, layout: Layout) -> FilePlan:
        found = self._files.get(key)
        if found is None:
            if len(self._files) >= 256:
                self._files.clear()
            # The layout is kept so that its id cannot become another's.
            found = self._files[key] = (layout, self._make(layout, self._chosen(key, layout)))
            found[1].made_for = self._generation, key
        return found[1]

    def _chosen(self, key: _Key, layout: Layout) -> list[_Choice]:
        """What each series that is needed now is fed with."""
        if key not in self._choices and len(self._choices) >= 256:
            self._choices.clear()
        _, choices = self._choices.setdefault(key, (layout, {}))
        missing = [series for series in self.series.values() if series not in choices]
        if missing:
            _, mode, only_global, _ = key
            modes = {name: value_mode(name, mode, layout, only_global=only_global) for name in layout.at}
            choices.update((series, self._choose(series, layout, modes)) for series in missing)
        return [choices[series] for series in self.series.values()]

    def _make(self, layout: Layout, choices: Sequence[_Choice]) -> FilePlan:
        wanted: dict[int, set[Measure]] = defaultdict(set)
        kept: set[int] = set()
        derived: dict[tuple[Measure, tuple[str, ...]], list[str]] = defaultdict(list)
        parts = []
        for choice in choices:
            if choice.part is None:
                continue
            parts.append(choice.part)
            kept.update(choice.kept)
            measure = choice.part.series.key.measure
            for position in choice.wanted:
                wanted[position].add(measure)
            for saved, name in choice.derived:
                derived[measure, saved].append(name)
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

    def _choose(self, series: Series, layout: Layout, modes: Mapping[str, Mode]) -> _Choice:
        """Which entries feed a series, and what has to be read and computed for it."""
        key = series.key
        choice = _Choice(None)
        names, positions = [], []
        selects = self._names.chooser(key.selection)
        for name, kinds in layout.at.items():
            if not (key.modes is None or modes[name] in key.modes) or not selects(name):
                continue
            saved = tuple(kind for kind in key.measure.reductions if kind in kinds)
            if key.partner is None and saved and (len(key.measure.reductions) == 1 or VALUE not in kinds):
                choice.derived.append((saved, name))
                position = kinds[saved[0]]
            elif VALUE in kinds:
                position = kinds[VALUE]
                (choice.wanted if key.partner is None else choice.kept).append(position)
            else:
                _lacks_value(series, name, kinds)
                continue
            names.append(name)
            positions.append(position)
        partners: tuple[str | None, ...] = ()
        if isinstance(key.partner, Beside):
            partners = self._beside(key.partner.selection, names, layout, choice.kept)
        if names:
            codes = np.array([modes[name] for name in names], np.int8)
            choice.part = SeriesPart(series, np.array(positions, np.int64), tuple(names), codes, partners)
        return choice

    def _beside(
        self, selection: Selection, names: list[str], layout: Layout, kept: list[int]
    ) -> tuple[str | None, ...]:
        """The partner of each tensor: the n-th of the one selection, by name, goes with the n-th of the other."""
        selects = self._names.chooser(selection)
        others = sorted(name for name, kinds in layout.at.items() if VALUE in kinds and selects(name))
        kept.extend(layout.at[name][VALUE] for name in others)
        by_name = dict(zip(sorted(names), others, strict=False))
        return tuple(by_name.get(name) for name in names)


def _lacks_value(series: Series, name: str, kinds: Mapping[str, int]) -> None:
    """Remember why a selected tensor gives the series nothing."""
    reductions = [kind for kind in kinds if kind not in {"shape", VALUE}]
    why = f"only reductions {', '.join(reductions)} were saved" if reductions else "only shapes were saved"
    names = series.without_value.setdefault(why, set())
    if len(names) < 100:
        names.add(name)
