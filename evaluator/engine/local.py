"""The local engine: reads and summarises step files in this process, ahead of the loop where that pays."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evaluator.engine.kept import Kept, OnDemand
from evaluator.errors import StorageUnavailable
from evaluator.needs import Measure, Tensor
from evaluator.plan import FilePlan, Group
from evaluator.segments import Array, Floats, Segments
from evaluator.sources.base import FileValues, Positions, Source, StepFile
from evaluator.trial.trial import Step

AHEAD = 8
"""Steps that are read before the loop asks for them."""
LEAST_PIECE = 2**20
"""Smaller pieces would cost more requests than they save memory."""
NO_ROOM = "does not fit in memory"


@dataclass(slots=True)
class Measured:
    """One measure of the tensors of one file, by the position of their entries in the layout."""

    values: Array
    present: NDArray[np.bool_]

    @classmethod
    def room(cls, measure: Measure, entries: int) -> Measured:
        """Nothing measured yet."""
        return cls(measure.room(entries), np.zeros(entries, np.bool_))


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


@dataclass(slots=True)
class StepSummary:
    """A step and the summaries of its files, in the order of its files."""

    step: Step
    files: list[FileSummary]


Planner = Callable[[StepFile], FilePlan]


class LocalEngine:
    """Summarises steps in order; larger ones in a small pool, ahead of the loop.

    Of one file no more is read at once than a sixteenth of the budget, or one tensor that is larger: it is measured and
    let go before the next piece. What has to be kept of a step to be compared is read again where it does not fit.
    """

    notes: Sequence[str] = ()
    """What a reader of the status has to know of how steps were read."""

    def __init__(self, source: Source, memory_budget: int, workers: int = 2, inline_below: int = 2**18) -> None:
        """Use at most half of the memory budget for reading ahead."""
        self._source = source
        self._budget = memory_budget // 2
        self._piece = max(memory_budget // 16, LEAST_PIECE)
        self._inline_below = inline_below if source.store.is_local else 0
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="summarise")

    def ahead(self, steps: Iterable[Step], plan_of: Planner) -> Iterator[StepSummary]:
        """The summaries of the steps, in their order."""
        waiting: deque[tuple[Step, list[Future[FileSummary]], int]] = deque()
        in_flight = 0
        for step in steps:
            work = self._work([(file, plan_of(file)) for file in step.files])
            size = sum(self._held(one) for one in work)
            while waiting and (len(waiting) >= AHEAD or in_flight + size > self._budget):
                done = waiting.popleft()
                in_flight -= done[2]
                yield self._collect(done[0], done[1])
            if not waiting and sum(one.size for one in work) < self._inline_below:
                # A thread would cost more than such a small step itself.
                yield StepSummary(step, [self._summarise(one) for one in work])
                continue
            waiting.append((step, [self._pool.submit(self._summarise, one) for one in work], size))
            in_flight += size
        while waiting:
            yield self._collect(*waiting.popleft()[:2])

    def again(self, summary: StepSummary) -> StepSummary:
        """Read a step once more, because something of it was not there yet."""
        work = self._work([(one.file, one.plan) for one in summary.files])
        return StepSummary(summary.step, [self._summarise(one) for one in work])

    def close(self) -> None:
        """Stop the pool; what it is doing is finished, what waits is dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _work(self, plans: Sequence[tuple[StepFile, FilePlan]]) -> list[_Work]:
        """What to do for the files of one step, and whether the values to be compared fit in memory together."""
        work = [_Work(file, plan, self._source.size_of(file, plan.reads)) for file, plan in plans]
        if sum(one.size for one in work) > self._budget:
            kept = [[group.positions for group in one.plan.groups if group.keep] for one in work]
            total = sum(self._source.size_of(one.file, groups) for one, groups in zip(work, kept, strict=True))
            for one in work:
                one.hold = total <= self._budget
        return work

    def _held(self, work: _Work) -> int:
        """About how many bytes of a file are in memory at once, and stay there until its step is judged."""
        if work.size <= self._piece:
            return work.size
        kept = [group.positions for group in work.plan.groups if group.keep] if work.hold else []
        return self._piece + self._source.size_of(work.file, kept)

    def _summarise(self, work: _Work) -> FileSummary:
        pieces = [work.plan.reads] if work.size <= self._piece else self._pieces(work)
        return summarise(self._source, work.file, work.plan, pieces, hold=work.hold)

    def _pieces(self, work: _Work) -> Iterator[list[Positions]]:
        """The reads in parts of about a piece each, in the order of the file."""
        reads = work.plan.reads
        part: list[list[int]] = [[] for _ in reads]
        filled = 0
        for position, number in sorted((at, number) for number, group in enumerate(reads) for at in group.tolist()):
            size = self._source.size_of(work.file, [np.array([position], np.int64)])
            if filled and filled + size > self._piece:
                yield [np.array(positions, np.int64) for positions in part]
                part, filled = [[] for _ in reads], 0
            part[number].append(position)
            filled += size
        yield [np.array(positions, np.int64) for positions in part]

    @staticmethod
    def _collect(step: Step, tasks: Sequence[Future[FileSummary]]) -> StepSummary:
        return StepSummary(step, [task.result() for task in tasks])


@dataclass(slots=True)
class _Work:
    """A file to be summarised."""

    file: StepFile
    plan: FilePlan
    size: int
    hold: bool = True
    """Whether the values that are needed afterwards are held in memory."""


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
        if measure.each:
            results = measure.room(len(positions))
            for at, (position, values) in enumerate(zip(positions.tolist(), segments.tensors(), strict=True)):
                results[at] = measure.of_one(values, _tensor(summary, position))
        else:
            results = measure(segments)
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
