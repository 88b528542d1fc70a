"""The local engine: reads and summarises step files in this process, ahead of the loop where that pays."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from evaluator.engine.alike import summarise_alike
from evaluator.engine.measuring import summarise
from evaluator.engine.summaries import FileSummary, StepSummary
from evaluator.errors import StorageUnavailable
from evaluator.file_plan import FilePlan
from evaluator.sources.base import Positions, Source, StepFile
from evaluator.trial.trial import Step

AHEAD = 8
"""Steps that are read before the loop asks for them."""
LOT_STEPS = 32
LOT_BYTES = 2**22
"""Small steps are summarised together up to so many, and so many bytes of them."""
LEAST_PIECE = 2**20
"""Smaller pieces would cost more requests than they save memory."""

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
        lot = _Lot()
        failures: list[StorageUnavailable] = []
        for step in _until_one(steps, failures):
            work = self._work([(file, plan_of(file)) for file in step.files])
            size = sum(self._held(one) for one in work)
            while waiting and (len(waiting) >= AHEAD or in_flight + size > self._budget):
                done = waiting.popleft()
                in_flight -= done[2]
                yield self._collect(done[0], done[1])
            small = not waiting and sum(one.size for one in work) < self._inline_below
            if lot.steps and not (small and lot.takes(work, self._piece)):
                yield from self._together(lot)
                lot = lot.next()
            if not small:
                waiting.append((step, [self._pool.submit(self._summarise, one) for one in work], size))
                in_flight += size
                continue
            # a thread would cost more than such a small step itself
            lot.add(step, work)
            if len(lot.steps) >= lot.most:
                yield from self._together(lot)
                lot = lot.next()
        yield from self._together(lot)
        while waiting:
            yield self._collect(*waiting.popleft()[:2])
        if failures:
            raise failures[0]

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

    def _together(self, lot: _Lot) -> Iterator[StepSummary]:
        """The summaries of small steps."""
        together = [self._alike(files) for files in zip(*lot.work, strict=True)]
        for at, (step, work) in enumerate(zip(lot.steps, lot.work, strict=True)):
            # the others take care, each in its turn
            yield StepSummary(
                step,
                [
                    found[at] if at < len(found) else self._summarise(one)
                    for found, one in zip(together, work, strict=True)
                ],
            )

    def _alike(self, work: Sequence[_Work]) -> list[FileSummary]:
        """The summaries of the leading ones of files with one plan: as many as are laid out alike."""
        files, plan = [one.file for one in work], work[0].plan
        if len(files) == 1:
            return []
        found = summarise_alike(self._source, files, plan)
        if len(found) < len(files):
            # this one may be the first that is laid out as the following ones are, or else the only one that is not
            found.append(self._summarise(work[len(found)]))
        return found + (summarise_alike(self._source, files[len(found) :], plan) if len(found) < len(files) else [])

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


def _until_one(steps: Iterable[Step], failures: list[StorageUnavailable]) -> Iterator[Step]:
    """The steps until the storage does not answer, which is told once those that were taken are summarised."""
    try:
        yield from steps
    except StorageUnavailable as error:
        failures.append(error)


@dataclass(slots=True)
class _Work:
    """A file to be summarised."""

    file: StepFile
    plan: FilePlan
    size: int
    hold: bool = True
    """Whether the values that are needed afterwards are held in memory."""


@dataclass(slots=True)
class _Lot:
    """Small steps that are summarised together, each with as many files, of which the same is needed."""

    most: int = 1
    """So many steps: a rule that ends early has not caused much more than it needed to be read."""
    steps: list[Step] = field(default_factory=list)
    work: list[list[_Work]] = field(default_factory=list)
    size: int = 0

    def takes(self, work: Sequence[_Work], most: int) -> bool:
        """Whether one more step is of the same kind, and there is room for it."""
        alike = [(id(one.plan), one.file.worker) for one in work] == [
            (id(one.plan), one.file.worker) for one in self.work[0]
        ]
        return alike and self.size + _size(work) <= min(most, LOT_BYTES)

    def add(self, step: Step, work: list[_Work]) -> None:
        """Take one more step."""
        self.steps.append(step)
        self.work.append(work)
        self.size += _size(work)

    def next(self) -> _Lot:
        """An empty one, for twice as many steps."""
        return _Lot(min(2 * len(self.steps), LOT_STEPS))


def _size(work: Sequence[_Work]) -> int:
    """What is read of the files of a step, and what is computed of it."""
    return sum(one.size + one.plan.results for one in work)
