"""What the job sends to workers, and how their answers become summaries again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from evaluator.engine.distributed.tasks import Answer, Batch, FileResult, FileTask, Reading, measures_of
from evaluator.engine.kept import Kept
from evaluator.engine.summaries import FileSummary, StepSummary
from evaluator.file_plan import FilePlan
from evaluator.needs import Measure
from evaluator.sources.base import Layout, Positions, Source
from evaluator.sources.event_reading import Place

MOST_STEPS = 64
MOST_BYTES = 2**23
"""Small steps go to a worker together until there are so many of them, or so many bytes: a task costs about as much as
reading 1 MiB, and a larger one would keep others waiting."""
KEPT_RETURNED = 2**20
"""Values of a step that are compared with others come back to the job up to so many bytes; beyond that it reads them
itself, since they would have to go through the scheduler."""
COMPARED = f"a rule compares values of more than {KEPT_RETURNED // 2**20} MiB with others there"
FOR_RULE_FILES = "the rules of files are given all values"
_PLANS = 256


@dataclass(slots=True)
class Lot:
    """Consecutive steps that are dealt with together, and where: one task of a worker, or by the job itself."""

    steps: list[StepSummary] = field(default_factory=list)
    reason: str | None = None
    """Why the job reads them itself; None where a worker does."""
    read: int = 0
    """About how many bytes are read."""
    held: int = 0
    """About how many bytes the job will hold of them."""
    task: Any = None
    """Dask's future of it."""
    here: deque[Future[StepSummary]] = field(default_factory=deque)

    @property
    def full(self) -> bool:
        """Whether it is worth a task; what the job reads itself it need not collect first."""
        return self.reason is not None or len(self.steps) >= MOST_STEPS or self.read >= MOST_BYTES

    def takes(self, other: Lot) -> bool:
        """Whether steps with this reason may be added."""
        return not self.steps or self.reason == other.reason

    def add(self, other: Lot) -> None:
        """Take the steps of another lot, with the same reason, after these."""
        self.steps += other.steps
        self.reason = other.reason
        self.read += other.read
        self.held += other.held


def lot_of(source: Source, step: StepSummary) -> Lot:
    """A step by itself: what is read of it, and who should do it."""
    whole = any(one.plan.whole for one in step.files)
    kept, read = 0, 0
    for one in step.files:
        read += source.size_of(one.file, one.plan.reads)
        kept += source.size_of(one.file, [group.positions for group in one.plan.groups if group.keep])
    if whole:
        return Lot([step], FOR_RULE_FILES, read, kept)
    return Lot([step], COMPARED if kept > KEPT_RETURNED else None, read, kept)


@dataclass(slots=True)
class _Shipped:
    """A plan under its number, as it is sent."""

    plan: FilePlan
    number: int
    pickled: bytes
    measures: list[Measure]
    arrived: bool = False
    """Whether a worker has it; another one that lacks it says so."""


class Shipping:
    """Makes tasks of lots and summaries of answers, for one job."""

    def __init__(self, reading: Reading, dumps: Callable[[object], bytes]) -> None:
        """Nothing was sent yet; `dumps` pickles also functions that have no name of their own."""
        self._reading = reading
        self._dumps = dumps
        self._plans: dict[int, _Shipped] = {}
        self._numbers = 0

    def batch(self, lot: Lot, *, with_plans: bool = False) -> Batch:
        """The task for a lot; plans go along until a worker has them, and to one that said it lacks some."""
        shared: dict[bytes, Positions] = {}
        plans: dict[int, bytes] = {}
        steps = []
        for step in lot.steps:
            files = []
            for one in step.files:
                shipped = self._shipped(one.plan)
                if with_plans or not shipped.arrived:
                    plans[shipped.number] = shipped.pickled
                files.append(_task(one, shipped.number, shared))
            steps.append(files)
        return Batch(self._reading, steps, plans)

    def summaries(self, lot: Lot, answer: Answer) -> list[StepSummary | None]:
        """Per step what a worker made of it; None where it could not do everything."""
        found: list[StepSummary | None] = []
        for step, results in zip(lot.steps, answer.steps, strict=True):
            files = []
            for one, result in zip(step.files, results, strict=True):
                shipped = self._shipped(one.plan)
                shipped.arrived = True
                if result is not None:
                    files.append(_summary(one, shipped.measures, result))
            found.append(StepSummary(step.step, files) if len(files) == len(step.files) else None)
        return found

    def _shipped(self, plan: FilePlan) -> _Shipped:
        """The plan with its number; what feeds which series stays in the job."""
        shipped = self._plans.get(id(plan))
        if shipped is None:
            while len(self._plans) >= _PLANS:
                self._plans.pop(next(iter(self._plans)))
            bare = replace(plan, layout=Layout(plan.layout.names, plan.layout.kinds), parts=[])
            # the plan is held so that its id cannot become another's
            shipped = _Shipped(plan, self._numbers, self._dumps(bare), measures_of(plan))
            self._plans[id(plan)] = shipped
            self._numbers += 1
        return shipped


def _task(one: FileSummary, plan: int, shared: dict[bytes, Positions]) -> FileTask:
    """A file as it is sent; equal arrays of consecutive files become one, which is pickled once."""
    file, place = one.file, one.file.place
    if isinstance(place, Place):
        starts, lengths = (shared.setdefault(numbers.tobytes(), numbers) for numbers in (place.starts, place.lengths))
        place = Place(place.key, starts, lengths)
    return FileTask(plan, file.step, file.worker, file.mode, file.mode_step, file.modified, place)


def _summary(one: FileSummary, measures: Sequence[Measure], result: FileResult) -> FileSummary:
    measured = {measures[number]: found for number, found in result.measured.items()}
    kept = None if result.kept is None else Kept(one.plan.layout, *result.kept)
    return FileSummary(one.file, one.plan, measured, kept, wall_time=result.wall_time)
