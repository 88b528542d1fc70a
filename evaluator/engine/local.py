"""The local engine: reads and summarises step files in this process, ahead of the loop where that pays."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evaluator.engine.kept import Kept
from evaluator.needs import Measure, Tensor
from evaluator.plan import FilePlan, Group
from evaluator.segments import Array, Floats, Segments
from evaluator.sources.base import FileValues, Positions, Source, StepFile
from evaluator.trial.trial import Step

AHEAD = 8
"""Steps that are read before the loop asks for them."""


@dataclass(slots=True)
class Measured:
    """One measure of the tensors of one file, by the position of their entries in the layout."""

    values: Floats
    present: NDArray[np.bool_]

    @classmethod
    def room(cls, measure: Measure, entries: int) -> Measured:
        """Nothing measured yet."""
        width = () if measure.width == 1 else (measure.width,)
        return cls(np.full((entries, *width), np.nan), np.zeros(entries, np.bool_))


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


@dataclass(slots=True)
class StepSummary:
    """A step and the summaries of its files, in the order of its files."""

    step: Step
    files: list[FileSummary]


Planner = Callable[[StepFile], FilePlan]


class LocalEngine:
    """Summarises steps in order; larger ones in a small pool, ahead of the loop."""

    def __init__(self, source: Source, memory_budget: int, workers: int = 2, inline_below: int = 2**18) -> None:
        """Use at most half of the memory budget for reading ahead."""
        self._source = source
        self._budget = memory_budget // 2
        self._inline_below = inline_below if source.store.is_local else 0
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="summarise")

    def ahead(self, steps: Iterable[Step], plan_of: Planner) -> Iterator[StepSummary]:
        """The summaries of the steps, in their order."""
        waiting: deque[tuple[Step, list[Future[FileSummary] | FileSummary], int]] = deque()
        in_flight = 0
        for step in steps:
            plans = [(file, plan_of(file)) for file in step.files]
            size = sum(self._source.size_of(file, plan.reads) for file, plan in plans)
            while waiting and (len(waiting) >= AHEAD or in_flight + size > self._budget):
                done = waiting.popleft()
                in_flight -= done[2]
                yield self._collect(done[0], done[1])
            if size < self._inline_below and not waiting:
                # A thread would cost more than such a small step itself.
                yield StepSummary(step, [summarise(self._source, file, plan) for file, plan in plans])
                continue
            tasks: list[Future[FileSummary] | FileSummary] = [
                self._pool.submit(summarise, self._source, file, plan) for file, plan in plans
            ]
            waiting.append((step, tasks, size))
            in_flight += size
        for step, tasks, _ in waiting:
            yield self._collect(step, tasks)

    def again(self, summary: StepSummary) -> StepSummary:
        """Read a step once more, because something of it was not there yet."""
        files = [summarise(self._source, one.file, one.plan) for one in summary.files]
        return StepSummary(summary.step, files)

    def close(self) -> None:
        """Stop the pool; what it is doing is finished, what waits is dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    @staticmethod
    def _collect(step: Step, tasks: list[Future[FileSummary] | FileSummary]) -> StepSummary:
        return StepSummary(step, [task.result() if isinstance(task, Future) else task for task in tasks])


def summarise(source: Source, file: StepFile, plan: FilePlan) -> FileSummary:
    """Read what the plan asks of one file and compute the measures of single tensors."""
    summary = FileSummary(file, plan)
    reads = plan.reads
    if not any(len(positions) for positions in reads):
        return summary
    values = source.read(file, reads)
    summary.problems = values.problems
    summary.wall_time = values.wall_time
    scalars = np.full(len(plan.layout.names), np.nan)
    there = np.zeros(len(plan.layout.names), np.bool_)
    kept: list[tuple[Positions, Segments]] = []
    with np.errstate(all="ignore"):
        for number, positions, segments in values.joined:
            if number == len(plan.groups):
                scalars[positions] = segments.real[segments.starts]
                there[positions] = True
                continue
            group = plan.groups[number]
            if group.keep:
                kept.append((positions, segments))
            for measure in group.measures:
                _measure(summary, measure, positions, segments)
        for group in plan.groups:
            _measure_texts(summary, group, values)
        _derive(summary, scalars, there)
    if any(group.keep for group in plan.groups):
        summary.kept = Kept(plan.layout, kept, values.texts)
    return summary


def _measure(summary: FileSummary, measure: Measure, positions: Positions, segments: Segments) -> None:
    """Compute one measure of joined tensors."""
    if segments.flat.dtype.kind not in measure.kinds or measure in summary.failures:
        return
    try:
        if measure.each:
            results = np.array(
                [
                    measure.of_one(values, _tensor(summary, position))
                    for position, values in zip(positions.tolist(), segments.tensors(), strict=True)
                ],
                dtype=np.float64,
            )
        else:
            results = measure(segments)
        _put(summary, measure, positions, results)
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
        result = measure.of_one(array, _tensor(summary, position))
        _put(summary, measure, np.array([position], np.int64), np.asarray([result], np.float64))
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


def _put(summary: FileSummary, measure: Measure, positions: Positions, results: Floats) -> None:
    room = summary.measured.get(measure)
    if room is None:
        room = summary.measured[measure] = Measured.room(measure, len(summary.plan.layout.names))
    room.values[positions] = results
    room.present[positions] = True


def _tensor(summary: FileSummary, position: int) -> Tensor:
    file = summary.file
    return Tensor(summary.plan.layout.names[position], file.worker, file.mode, file.step)
