"""Comparing a saved value with its partner: an earlier one, one beside it, another worker's, another run's."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from evaluator.engine.alike import Block
from evaluator.engine.counterparts import counterpart
from evaluator.engine.kept import Comparison, Kept, OnDemand, value_positions
from evaluator.engine.summaries import Chosen, FileSummary, chosen
from evaluator.errors import StorageError
from evaluator.file_plan import SeriesPart
from evaluator.formats.key_names import natural_key
from evaluator.needs import Beside, OtherTrial, OtherWorker, Previous, Tensor
from evaluator.segments import Array
from evaluator.series import Series
from evaluator.sources.base import Layout, Source, StepFile

OtherValues = Callable[[str, int, str, Layout, Sequence[str]], Mapping[str, Array] | None]
"""(path of the other trial, step, worker, layout here, names) -> values there, or None when that step is not there."""


@dataclass(slots=True)
class _Held:
    """An earlier file whose values are compared with later ones; read again when memory did not allow keeping them."""

    file: StepFile
    names: frozenset[str]
    kept: Kept | None


class Partners:
    """Finds the partner of each value, and compares."""

    def __init__(self, source: Source, memory_budget: int, other_values: OtherValues) -> None:
        """Use at most half of the memory budget for earlier values."""
        self._source = source
        self._budget = memory_budget // 2
        self._other_values = other_values
        self._held: dict[tuple[Series, str], list[_Held]] = {}
        self.read_again = 0
        """How many files were read again because their values had not been kept."""
        self.skipped: dict[Series, str] = {}
        """Why a series could not be compared at the present step (another trial lacks it, say)."""

    def compare(self, part: SeriesPart, summary: FileSummary, beside: Sequence[FileSummary]) -> Chosen | None:
        """Compare the tensors of one file that feed a series; `beside` are all files of the step.

        A function that raises is noted in the summary's failures, a partner that cannot be read in its problems.
        """
        partner = part.series.key.partner
        if isinstance(partner, OtherWorker) and len(beside) == 1:
            return None
        if isinstance(partner, OtherTrial) and not partner.path:
            self.skipped[part.series] = "no other trial was given"
            return None
        if summary.block is not None and self._follows(part, summary, summary.block):
            found = summary.block.compared(part, summary.at)
            if found is not None:
                return found
        whole = Comparison(part.series.key.measure, len(summary.plan.layout.names))
        try:
            self._compare(part, summary, beside, whole)
        except (StorageError, MemoryError) as error:
            self.skipped[part.series] = "a value to compare with could not be read"
            why = str(error) or "does not fit in memory"
            summary.problems.update(dict.fromkeys(part.positions.tolist(), f"to be compared: {why}"))
        except Exception:  # noqa: BLE001 - a rule's own function may raise anything; only that rule ends
            summary.failures[part.series.key.measure] = traceback.format_exc()
        for name in whole.reshaped:
            part.series.without_value.setdefault("its shape differs from its partner's", set()).add(name)
        return chosen(whole.values, whole.present, part.positions)

    def remember(self, part: SeriesPart, summary: FileSummary) -> None:
        """Keep the file's values as the earlier ones of later files, where the series wants that."""
        partner = part.series.key.partner
        if not isinstance(partner, Previous):
            return
        held = self._held.setdefault((part.series, summary.file.worker), [])
        names = part.name_set
        if partner.within is None:
            if len(held) == 1 and held[0].names <= names:
                held.clear()
            for older in held:
                older.names -= names
            held[:] = [older for older in held if older.names]
        else:
            oldest = summary.file.step - partner.within
            held[:] = [older for older in held if older.file.step >= oldest]
        held.append(_Held(summary.file, names, summary.kept))
        self._keep_within_budget()

    def forget(self) -> None:
        """All steps come anew."""
        self._held.clear()

    def retain(self, series: Sequence[Series]) -> None:
        """Let go of the values that no rule needs any more."""
        wanted = set(series)
        self._held = {key: held for key, held in self._held.items() if key[0] in wanted}

    def _follows(self, part: SeriesPart, summary: FileSummary, block: Block) -> bool:
        """Whether all values are to be compared with those of the file before in the block."""
        partner = part.series.key.partner
        if not summary.at or not isinstance(partner, Previous):
            return False
        held = self._held.get((part.series, summary.file.worker), [])
        if partner.within is not None:
            oldest = summary.file.step - partner.within
            held = [older for older in held if older.file.step >= oldest]
        return len(held) == 1 and held[0].kept is block.held_of[summary.at - 1] and held[0].names == part.name_set

    def _compare(
        self, part: SeriesPart, summary: FileSummary, beside: Sequence[FileSummary], whole: Comparison
    ) -> None:
        partner = part.series.key.partner
        kept = summary.kept
        if kept is None:
            return
        if isinstance(partner, Previous):
            self._with_earlier(part, summary, kept, partner, whole)
        elif isinstance(partner, Beside):
            named = dict(zip(part.names, part.partners, strict=True))
            self._one_by_one(part, summary, kept, lambda name: kept.value(named[name] or ""), whole)
        elif isinstance(partner, OtherWorker):
            self._with_worker(part, summary, kept, beside, whole)
        elif isinstance(partner, OtherTrial):
            file = summary.file
            values = partial(self._other_values, partner.path, file.step, file.worker, kept.layout)
            one_by_one = isinstance(kept, OnDemand)
            others_there = values([] if one_by_one else part.names)
            if others_there is None:
                self.skipped[part.series] = "the other trial lacks the step"
            else:
                there = (lambda name: (values([name]) or {}).get(name)) if one_by_one else others_there.get
                self._one_by_one(part, summary, kept, there, whole)

    def _with_earlier(
        self, part: SeriesPart, summary: FileSummary, kept: Kept, partner: Previous, whole: Comparison
    ) -> None:
        held = self._held.get((part.series, summary.file.worker), [])
        if partner.within is not None:
            held = [older for older in held if older.file.step >= summary.file.step - partner.within]
        # The last value is in the newest file that has the tensor, the oldest one within reach in the oldest.
        ordered = held if partner.within is not None else held[::-1]
        left = set(part.names)
        for older in ordered:
            names = left & older.names
            if not names:
                continue
            earlier = self._values(older, part, summary)
            if len(names) == len(part.names) and whole.all_of(kept, earlier, part.positions):
                return
            self._one_by_one(part, summary, kept, partial(_among, names, earlier), whole)
            if isinstance(earlier, OnDemand):
                self._lost(part, summary, earlier.unread)
            left -= names

    def _with_worker(
        self, part: SeriesPart, summary: FileSummary, kept: Kept, beside: Sequence[FileSummary], whole: Comparison
    ) -> None:
        mine = natural_key(summary.file.worker)
        before = [one for one in beside if natural_key(one.file.worker) < mine and one.file.mode is summary.file.mode]
        before.sort(key=lambda one: natural_key(one.file.worker))
        others = [other.kept for other in before if other.kept is not None]
        if others and not whole.all_of(kept, others[0], part.positions):
            self._one_by_one(part, summary, kept, partial(_first, others, kept.layout), whole)

    @staticmethod
    def _one_by_one(
        part: SeriesPart, summary: FileSummary, kept: Kept, other: Callable[[str], Array | None], whole: Comparison
    ) -> None:
        file = summary.file
        for name, position in zip(part.names, part.positions.tolist(), strict=True):
            partner = other(name)
            value = None if partner is None else kept.value(name)
            if partner is not None and value is not None:
                whole.one(position, value, partner, Tensor(name, file.worker, file.mode, file.step))

    def _values(self, older: _Held, part: SeriesPart, summary: FileSummary) -> Kept:
        """The earlier values, read again when they were not kept."""
        if older.kept is not None:
            return older.kept
        self.read_again += 1
        layout = older.file.layout
        positions = np.array(sorted(value_positions(layout, part.names).values()), np.int64)
        if self._source.size_of(older.file, [positions]) > self._budget // 2:
            return OnDemand(self._source, older.file, part.names)
        values = self._source.read(older.file, [positions])
        self._lost(part, summary, {layout.names[position]: why for position, why in values.problems.items()})
        return Kept(layout, [(found, segments) for _, found, segments in values.joined], values.texts)

    def _lost(self, part: SeriesPart, summary: FileSummary, problems: Mapping[str, str]) -> None:
        """Note which earlier values could not be read again; the ones of this step lack their partner."""
        if problems:
            self.skipped[part.series] = "an earlier value could not be read again"
            at = dict(zip(part.names, part.positions.tolist(), strict=True))
            summary.problems.update((at[name], f"earlier value: {why}") for name, why in problems.items() if name in at)

    def _keep_within_budget(self) -> None:
        """Drop values, not the knowledge of where they are, from the largest on, until the rest fits."""
        everything = {id(older.kept): older for held in self._held.values() for older in held if older.kept is not None}
        total = sum(older.kept.size for older in everything.values() if older.kept is not None)
        if total <= self._budget:
            return
        for older in sorted(everything.values(), key=lambda one: -(one.kept.size if one.kept else 0)):
            if total <= self._budget:
                return
            dropped = older.kept
            total -= dropped.size if dropped else 0
            for held in self._held.values():
                for one in held:
                    if one.kept is dropped:
                        one.kept = None


def _among(names: Collection[str], kept: Kept, name: str) -> Array | None:
    """The value of one of these names."""
    return kept.value(name) if name in names else None


def _first(kept: Sequence[Kept], mine: Layout, name: str) -> Array | None:
    """The value that the first one has, under this name or else under one that only wrappers make another."""
    found = next((value for one in kept if (value := one.value(name)) is not None), None)
    if found is not None:
        return found
    named = ((one, counterpart(name, mine, one.layout)) for one in kept)
    return next((value for one, other in named if other and (value := one.value(other)) is not None), None)
