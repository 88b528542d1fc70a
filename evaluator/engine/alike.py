"""Small step files that are laid out alike, summarised together: one array operation serves all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evaluator.engine.kept import Kept
from evaluator.engine.measuring import results_of
from evaluator.engine.summaries import Chosen, FileSummary
from evaluator.file_plan import FilePlan, SeriesPart
from evaluator.needs import Measure, Tensor
from evaluator.segments import Array, Bools, Segments
from evaluator.series import Series
from evaluator.sources.base import AlikeValues, Positions, Source, StepFile


@dataclass(slots=True, eq=False)
class Block:
    """What was computed of files of one worker that follow one another, all with the same plan.

    Shapes:
        measured, per measure: (files, entries[, width]), and bool (entries,): which entries have it.
    """

    plan: FilePlan
    files: Sequence[StepFile]
    measured: dict[Measure, tuple[Array, Bools]] = field(default_factory=dict)
    kept: list[tuple[Positions, Segments]] = field(default_factory=list)
    """The values that are compared with others, of all files."""
    held_of: list[Kept | None] = field(default_factory=list)
    """The same, of each file."""
    _chosen: dict[Series, Chosen | None] = field(default_factory=dict)
    """What a series gets of all files, or all but the first."""

    def row(self, part: SeriesPart, at: int) -> Chosen | None:
        """What a series gets of one file; None where it has no value."""
        if part.series not in self._chosen:
            self._chosen[part.series] = _of_part(self.measured.get(part.series.key.measure), part)
        found = self._chosen[part.series]
        return None if found is None else (found[0][at], found[1])

    def compared(self, part: SeriesPart, at: int) -> Chosen | None:
        """The same, compared with the file before, of which there must be one; None where it takes a closer look."""
        if part.series not in self._chosen:
            try:
                self._chosen[part.series] = _of_part(self._compare(part), part)
            except Exception:  # noqa: BLE001 - who compares them one by one finds which one raises
                self._chosen[part.series] = None
        found = self._chosen[part.series]
        return None if found is None else (found[0][at - 1], found[1])

    def _compare(self, part: SeriesPart) -> tuple[Array, Bools] | None:
        measure = part.series.key.measure
        if measure.each:
            return None
        entries = len(self.plan.layout.names)
        values, there = measure.room(len(self.files) - 1, entries), np.zeros(entries, np.bool_)
        for positions, segments in self.kept:
            if segments.flat.dtype.kind in measure.kinds and np.isin(positions, part.positions).any():
                count, size = len(positions), len(segments.flat) // len(self.files)
                now = Segments(segments.flat[size:], segments.counts[count:], segments.shapes[count:])
                before = Segments(segments.flat[:-size], segments.counts[count:], segments.shapes[count:])
                _put(values, positions, measure(now, before))
                there[positions] = True
        return values, there


def summarise_alike(source: Source, files: Sequence[StepFile], plan: FilePlan) -> list[FileSummary]:
    """Summaries of the leading files, as far as they are laid out like one that was read before; the rest needs care.

    The numbers are those of the files summarised one by one.
    """
    if not any(len(positions) for positions in plan.reads):
        return []
    values = source.read_alike(files, plan.reads)
    if not len(values):
        return []
    block = Block(plan, files[: len(values)])
    try:
        _fill(block, values)
    except Exception:  # noqa: BLE001 - who measures them one by one finds which one raises
        return []
    return [_summary(block, at, values) for at in range(len(values))]


def _fill(block: Block, values: AlikeValues) -> None:
    """Compute all measures."""
    plan, files = block.plan, block.files
    entries = len(plan.layout.names)
    scalars, there = np.full((len(files), entries), np.nan), np.zeros(entries, np.bool_)
    with np.errstate(all="ignore"):
        for number, positions, segments in values.joined:
            if number == len(plan.groups):
                _put(scalars, positions, segments.real[segments.starts])
                there[positions] = True
                continue
            group = plan.groups[number]
            if group.keep:
                block.kept.append((positions, segments))
            for measure in group.measures:
                if segments.flat.dtype.kind in measure.kinds:
                    _note(block, measure, positions, results_of(measure, segments, _Tensors(block, positions)))
        for derived in plan.from_reductions:
            measure = derived.measure
            readable = np.logical_and.reduce([there[entries] for entries in derived.entries.values()])
            if measure.from_reductions is not None and readable.any():
                saved = {kind: scalars[:, entries[readable]].ravel() for kind, entries in derived.entries.items()}
                _note(block, measure, derived.anchors[readable], measure.from_reductions(saved))


@dataclass(slots=True)
class _Tensors:
    """Which tensor each of the joined ones is."""

    block: Block
    positions: Positions

    def __call__(self, at: int) -> Tensor:
        file = self.block.files[at // len(self.positions)]
        name = self.block.plan.layout.names[int(self.positions[at % len(self.positions)])]
        return Tensor(name, file.worker, file.mode, file.step)


def _note(block: Block, measure: Measure, positions: Positions, results: Array) -> None:
    found = block.measured.get(measure)
    if found is None:
        entries = len(block.plan.layout.names)
        found = block.measured[measure] = measure.room(len(block.files), entries), np.zeros(entries, np.bool_)
    _put(found[0], positions, results)
    found[1][positions] = True


def _put(values: Array, positions: Positions, results: Array) -> None:
    expected = (len(values) * len(positions), *values.shape[2:])
    if np.shape(results) != expected:
        raise ValueError(f"results of shape {np.shape(results)}; expected {expected}")
    values[:, positions] = results.reshape(len(values), len(positions), *values.shape[2:])


def _of_part(found: tuple[Array, Bools] | None, part: SeriesPart) -> Chosen | None:
    """What belongs to a series, of all files."""
    if found is None:
        return None
    there = found[1][part.positions]
    if not there.any():
        return None
    return found[0][:, part.positions], None if there.all() else there


def _summary(block: Block, at: int, values: AlikeValues) -> FileSummary:
    """One file of a block."""
    summary = FileSummary(block.files[at], block.plan, wall_time=values.wall_times[at], block=block, at=at)
    if block.plan.keeps:
        # what stays after the block must not hold all of it in memory
        alone = at == len(block.files) - 1 or block.plan.keeps_several
        kept = [(positions, _part(segments, at, len(block.files), alone)) for positions, segments in block.kept]
        summary.kept = Kept(block.plan.layout, kept, {})
    block.held_of.append(summary.kept)
    return summary


def _part(segments: Segments, at: int, files: int, alone: bool) -> Segments:
    """The tensors of one of the files."""
    count, size = len(segments.counts) // files, len(segments.flat) // files
    flat = segments.flat[at * size : (at + 1) * size]
    return Segments(flat.copy() if alone else flat, segments.counts[:count], segments.shapes[:count])
