"""The Dask engine: the steps of a run summarised by workers, in order, and by the job itself where they cannot."""

from __future__ import annotations

import uuid
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evaluator.engine.distributed.connection import Workers
from evaluator.engine.distributed.shipping import Lot, Shipping, lot_of
from evaluator.engine.distributed.tasks import Answer, Reading
from evaluator.engine.local import LocalEngine, Planner
from evaluator.engine.summaries import FileSummary, StepSummary
from evaluator.sources.base import Source
from evaluator.trial.trial import Step

ONLY_HERE = "it is a log, which the job has in memory"
NOBODY = "no worker was there"
UNREADABLE = "a worker could not read or compute all of it"


class DaskEngine:
    """Summarises steps in order like the local engine, which does what no worker can do.

    A worker reads with the same plan and the same code as the local engine, and of what it says only what is whole is
    taken. So the numbers are the same, and a tensor that cannot be read, a measure that raises, a storage that does not
    answer are found and told by the job itself.
    """

    def __init__(self, source: Source, memory_budget: int, workers: Workers) -> None:
        """Use at most half of the memory budget for values of steps ahead of the loop."""
        self._source = source
        self._workers = workers
        self._budget = memory_budget // 2
        self._local = LocalEngine(source, memory_budget)
        reading = Reading(uuid.uuid4().hex, _everywhere(source.store.uri), source.name, memory_budget)
        self._shipping = Shipping(reading, workers.dumps)
        # one thread: reading here is the exception
        self._here = ThreadPoolExecutor(1, thread_name_prefix="summarise-here")
        self._read_here: Counter[str] = Counter()

    @property
    def notes(self) -> list[str]:
        """How many steps the job read itself, and why."""
        return [
            f"dask: {count} {'step was' if count == 1 else 'steps were'} read by the job itself: {why}"
            for why, count in self._read_here.items()
        ]

    def ahead(self, steps: Iterable[Step], plan_of: Planner) -> Iterator[StepSummary]:
        """The summaries of the steps, in their order."""
        waiting: deque[Lot] = deque()
        try:
            for lot in self._lots(steps, plan_of):
                while waiting and not self._has_room(waiting, lot):
                    yield from self._collect(waiting.popleft())
                self._begin(lot)
                waiting.append(lot)
            while waiting:
                yield from self._collect(waiting.popleft())
        finally:
            for lot in waiting:
                self._forget(lot)

    def again(self, summary: StepSummary) -> StepSummary:
        """Read a step once more, here, because something of it was not there yet."""
        return self._here.submit(self._local.again, summary).result()

    def close(self) -> None:
        """Stop what is read here; the connection is left to whom it belongs."""
        self._here.shutdown(wait=True, cancel_futures=True)
        self._local.close()

    def _lots(self, steps: Iterable[Step], plan_of: Planner) -> Iterator[Lot]:
        """The steps in portions that are worth a task each."""
        lot = Lot()
        for step in steps:
            one = lot_of(self._source, StepSummary(step, [FileSummary(file, plan_of(file)) for file in step.files]))
            if self._source.is_log:
                one.reason = ONLY_HERE
            if not lot.takes(one):
                yield lot
                lot = Lot()
            lot.add(one)
            if lot.full:
                yield lot
                lot = Lot()
        if lot.steps:
            yield lot

    def _has_room(self, waiting: deque[Lot], lot: Lot) -> bool:
        held = sum(one.held for one in waiting) + lot.held
        return len(waiting) < max(self._workers.room, 1) and held <= self._budget

    def _begin(self, lot: Lot) -> None:
        """Hand it out, or read it here ahead of the loop."""
        if lot.reason is None and self._workers.room:
            lot.task = self._workers.submit(self._shipping.batch(lot))
            return
        why = lot.reason or NOBODY
        for step in lot.steps:
            self._read_here[why] += 1
            lot.here.append(self._here.submit(self._local.again, step))

    def _collect(self, lot: Lot) -> Iterator[StepSummary]:
        """What became of a lot; what no worker did is done now."""
        while lot.here:
            yield lot.here.popleft().result()
        if lot.task is None:
            return
        answer = self._answer(lot)
        if isinstance(answer, str):
            found: list[StepSummary | None] = [None] * len(lot.steps)
            why = answer
        else:
            found, why = self._shipping.summaries(lot, answer), UNREADABLE
        for step, summary in zip(lot.steps, found, strict=True):
            if summary is None:
                self._read_here[why] += 1
            yield self.again(step) if summary is None else summary

    def _answer(self, lot: Lot) -> Answer | str:
        """What a worker says to a lot, after it was sent what it lacks for that; as text, why none says anything."""
        answer = self._workers.answer(lot.task)
        if isinstance(answer, Answer) and answer.lacks:
            lot.task = self._workers.submit(self._shipping.batch(lot, with_plans=True))
            answer = self._workers.answer(lot.task)
        if isinstance(answer, str):
            self._forget(lot)
            return answer
        requests = self._source.store.requests
        for kind, count in answer.requests.items():
            setattr(requests, kind, getattr(requests, kind) + count)
        return answer

    def _forget(self, lot: Lot) -> None:
        """Nobody waits for this lot any more."""
        if lot.task is not None:
            self._workers.drop(lot.task)
        for future in lot.here:
            future.cancel()


def _everywhere(uri: str) -> str:
    """The path as it is from any folder."""
    return uri if "://" in uri else str(Path(uri).absolute())
