"""Measuring: reads what the plan asks of one file, and computes the measures of its tensors."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluator.engine.kept import Kept, OnDemand
from evaluator.engine.summaries import FileSummary, Measured
from evaluator.errors import StorageUnavailable
from evaluator.file_plan import FilePlan, Group
from evaluator.needs import Measure, Tensor
from evaluator.segments import Array, Floats, Segments
from evaluator.sources.base import FileValues, Positions, Source, StepFile

NO_ROOM = "does not fit in memory"


def summarise(
    source: Source, file: StepFile, plan: FilePlan, pieces: Iterable[Sequence[Positions]], *, hold: bool = True
) -> FileSummary:
    """Read what the plan asks of one file, piece by piece, and compute the measures of single tensors."""
    summary = FileSummary(file, plan)
    if not any(len(positions) for positions in plan.reads):
        return summary
    work = _Summarising(summary, hold=hold)
    with np.errstate(all="ignore"):
        for reads in pieces:
            try:
                # handed on at once, so that nothing of it is left when the next piece is read
                work.take(source.read(file, reads))
            except StorageUnavailable as error:
                summary.outage = error
                return summary
            except MemoryError:
                for positions in reads:
                    summary.problems.update(dict.fromkeys(positions.tolist(), NO_ROOM))
        _derive(summary, work.scalars, work.there)
    if any(group.keep for group in plan.groups):
        names = [plan.layout.names[at] for group in plan.groups if group.keep for at in group.positions.tolist()]
        summary.kept = Kept(plan.layout, work.kept, work.texts) if hold else OnDemand(source, file, names)
    return summary


def results_of(measure: Measure, segments: Segments, tensor: Callable[[int], Tensor]) -> Array:
    """One result per joined tensor; `tensor` tells which one is at a place."""
    if not measure.each:
        return measure(segments)
    results = measure.room(len(segments))
    for at, values in enumerate(segments.tensors()):
        # where it lies in memory must not decide how its elements are summed up
        results[at] = measure.of_one(values if values.flags.aligned else values.copy(), tensor(at))
    return results


class _Summarising:
    """What is gathered of one file."""

    def __init__(self, summary: FileSummary, *, hold: bool) -> None:
        entries = len(summary.plan.layout.names)
        self.scalars = np.full(entries, np.nan)
        self.there = np.zeros(entries, np.bool_)
        self.kept: list[tuple[Positions, Segments]] = []
        self.texts: dict[int, Array] = {}
        self._summary = summary
        self._hold = hold

    def take(self, values: FileValues) -> None:
        """Measure what was read."""
        summary, groups = self._summary, self._summary.plan.groups
        summary.problems.update(values.problems)
        if summary.wall_time is None:
            summary.wall_time = values.wall_time
        for number, positions, segments in values.joined:
            if number == len(groups):
                self.scalars[positions] = segments.real[segments.starts]
                self.there[positions] = True
                continue
            group = groups[number]
            if group.keep and self._hold:
                self.kept.append((positions, segments))
            for measure in group.measures:
                _measure(summary, measure, positions, segments)
        for group in groups:
            _measure_texts(summary, group, values)
        if self._hold:
            self.texts.update(values.texts)
            if summary.plan.whole:
                summary.empty.update(values.empty)


def _measure(summary: FileSummary, measure: Measure, positions: Positions, segments: Segments) -> None:
    """Compute one measure of joined tensors."""
    if segments.flat.dtype.kind not in measure.kinds or measure in summary.failures:
        return
    try:
        results = results_of(measure, segments, lambda at: _tensor(summary, int(positions[at])))
        _put(summary, measure, positions, results)
    except MemoryError:
        # the file is too large, which is not the rule's fault
        summary.problems.update(dict.fromkeys(positions.tolist(), NO_ROOM))
    except Exception:  # noqa: BLE001 - a rule's own function may raise anything; only that rule ends
        summary.failures[measure] = traceback.format_exc()


def _measure_texts(summary: FileSummary, group: Group, values: FileValues) -> None:
    """Compute the measures that are meant for text."""
    for measure in group.measures:
        if "U" not in measure.kinds:
            continue
        for position in group.positions.tolist():
            text = values.texts.get(position)
            if text is not None:
                _measure_one(summary, measure, position, text)


def _measure_one(summary: FileSummary, measure: Measure, position: int, array: Array) -> None:
    try:
        results = measure.room(1)
        results[0] = measure.of_one(array, _tensor(summary, position))
        _put(summary, measure, np.array([position], np.int64), results)
    except Exception:  # noqa: BLE001 - as above
        summary.failures[measure] = traceback.format_exc()


def _derive(summary: FileSummary, scalars: Floats, there: NDArray[np.bool_]) -> None:
    """Get measures from saved reductions."""
    for derived in summary.plan.from_reductions:
        measure = derived.measure
        readable = np.logical_and.reduce([there[entries] for entries in derived.entries.values()])
        if measure.from_reductions is None or not readable.any():
            continue
        saved = {kind: scalars[entries[readable]] for kind, entries in derived.entries.items()}
        try:
            _put(summary, measure, derived.anchors[readable], measure.from_reductions(saved))
        except Exception:  # noqa: BLE001 - as above
            summary.failures[measure] = traceback.format_exc()


def _put(summary: FileSummary, measure: Measure, positions: Positions, results: Array) -> None:
    room = summary.measured.get(measure)
    if room is None:
        room = summary.measured[measure] = Measured.room(measure, len(summary.plan.layout.names))
    room.values[positions] = results
    room.present[positions] = True


def _tensor(summary: FileSummary, position: int) -> Tensor:
    file = summary.file
    return Tensor(summary.plan.layout.names[position], file.worker, file.mode, file.step)
