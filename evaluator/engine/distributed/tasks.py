"""What a worker does for a job: reads step files from the storage itself, and sends back what was computed of them.

Nothing here imports Dask: a task is a plain function of what it is sent.
"""

from __future__ import annotations

import ctypes
import pickle
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from evaluator import __version__
from evaluator.engine.kept import OnDemand
from evaluator.engine.local import LocalEngine
from evaluator.engine.summaries import FileSummary, Measured, StepSummary
from evaluator.file_plan import FilePlan
from evaluator.modes import Mode
from evaluator.needs import Measure
from evaluator.segments import Array, Segments
from evaluator.sources import source_types
from evaluator.sources.base import Positions, StepFile
from evaluator.storage import open_store
from evaluator.trial.step import Step

JOBS = 4
"""How many jobs a worker remembers the plans and the open storage of."""
PLANS = 256
"""How many plans of a job a worker remembers; a job has one per layout and mode, and anew when a rule ends."""

KEPT_MEMORY = 2**25
"""Arrays of up to so many bytes are taken from memory that is kept; the C library allows no more."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


@dataclass(frozen=True, slots=True)
class Reading:
    """Which run a job reads, and how; a worker opens the storage itself.

    Args:
        job: tells jobs apart.
        uri: of the trial, the same for all machines.
        source: the name of its format.
        memory_budget: of the job: how a file is read in pieces, and so the last digit of a sum, depends on it.
    """

    job: str
    uri: str
    source: str
    memory_budget: int
    version: str = __version__


@dataclass(frozen=True, slots=True)
class FileTask:
    """One step file to be summarised: where it is, and the number of the plan for it."""

    plan: int
    step: int
    worker: str
    mode: Mode
    mode_step: int
    modified: float
    place: object


@dataclass(frozen=True, slots=True)
class Batch:
    """One task: the files of some consecutive steps, and those plans that the worker may not have yet (pickled)."""

    reading: Reading
    steps: Sequence[Sequence[FileTask]]
    plans: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class FileResult:
    """What was computed of one file, measures by their number in the plan; the values only where they were kept."""

    measured: Mapping[int, Measured]
    kept: tuple[Sequence[tuple[Positions, Segments]], Mapping[int, Array]] | None
    wall_time: float | None


@dataclass(slots=True)
class Answer:
    """What a worker says to a batch.

    Args:
        steps: per step and file its result; None for a file of which anything could not be read or computed.
        lacks: the plans that it has not; then nothing was done.
        requests: how often the storage was asked, by kind.
    """

    steps: list[list[FileResult | None]] = field(default_factory=list)
    lacks: tuple[int, ...] = ()
    requests: dict[str, int] = field(default_factory=dict)


def measures_of(plan: FilePlan) -> list[Measure]:
    """The measures of a plan in an order that is the same wherever the plan is."""
    found = [measure for group in plan.groups for measure in group.measures]
    return list(dict.fromkeys([*found, *(one.measure for one in plan.from_reductions)]))


def summarise_batch(batch: Batch) -> Answer:
    """Read and summarise; runs on a worker.

    Raises:
        RuntimeError: the worker has another version of the program than the job.
    """
    if batch.reading.version != __version__:
        what = f"the worker has rule-evaluator {__version__}, the job {batch.reading.version}"
        raise RuntimeError(f"{what}; install the same one")
    here = _Here.of(batch.reading)
    here.learn(batch.plans)
    needed = {file.plan for step in batch.steps for file in step}
    lacks = tuple(sorted(needed - here.plans.keys()))
    return Answer(lacks=lacks) if lacks else here.summarise(batch)


class _Here:
    """What a thread of a worker keeps of one job: the opened trial, and the plans that it was sent."""

    _by_thread: ClassVar[threading.local] = threading.local()

    def __init__(self, reading: Reading) -> None:
        """Open the trial; nothing is read yet."""
        _keep_freed_memory()
        kind = next(one for one in source_types() if one.name == reading.source)
        self._source = kind(open_store(reading.uri))
        self._engine = LocalEngine(self._source, reading.memory_budget)
        self.plans: dict[int, tuple[FilePlan, list[Measure]]] = {}

    @classmethod
    def of(cls, reading: Reading) -> _Here:
        """What this thread has of the job, or a new one in the place of the oldest."""
        known: dict[Reading, _Here] = cls._by_thread.__dict__.setdefault("known", {})
        found = known.get(reading)
        if found is None:
            while len(known) >= JOBS:
                known.pop(next(iter(known))).close()
            found = known[reading] = cls(reading)
        return found

    def close(self) -> None:
        """Forget the job."""
        self._engine.close()

    def learn(self, plans: Mapping[int, bytes]) -> None:
        """Remember plans that came along."""
        for number, pickled in plans.items():
            while len(self.plans) >= PLANS:
                self.plans.pop(next(iter(self.plans)))
            # it comes from the job over the cluster's own connection, as the task itself does
            plan: FilePlan = pickle.loads(pickled)  # noqa: S301
            self.plans[number] = plan, measures_of(plan)

    def summarise(self, batch: Batch) -> Answer:
        """Do what the local engine does with a step, one step after the other."""
        requests = self._source.store.requests
        before = requests.list, requests.get, requests.retries
        answer = Answer()
        for tasks in batch.steps:
            files = [FileSummary(self._file(task), self.plans[task.plan][0]) for task in tasks]
            step = Step(tasks[0].step if tasks else 0, [one.file for one in files])
            done = self._engine.again(StepSummary(step, files))
            answer.steps.append(
                [_result(one, self.plans[task.plan][1]) for one, task in zip(done.files, tasks, strict=True)]
            )
        after = requests.list, requests.get, requests.retries
        asked = [late - early for late, early in zip(after, before, strict=True)]
        answer.requests = dict(zip(("list", "get", "retries"), asked, strict=True))
        return answer

    def _file(self, task: FileTask) -> StepFile:
        layout = self.plans[task.plan][0].layout
        return StepFile(task.step, task.worker, task.mode, task.mode_step, task.modified, layout, task.place)


def _keep_freed_memory() -> None:
    """Let the memory of one piece be used for the next, where the C library can be told so.

    Dask starts workers with MALLOC_TRIM_THRESHOLD_=65536, which gives every larger array back to the system at once:
    the next one then costs a page fault per 4 KiB, together several times as long as reading and summarising.

    Source:
        mallopt(3) of Linux; malloc.h of glibc for the numbers.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, KEPT_MEMORY)
        mallopt(_M_TRIM_THRESHOLD, 2 * KEPT_MEMORY)


def _result(summary: FileSummary, measures: Sequence[Measure]) -> FileResult | None:
    """What is sent back of a file: only what is whole, for the job reads everything else itself to see why."""
    if summary.problems or summary.failures or summary.outage is not None or isinstance(summary.kept, OnDemand):
        return None
    measured = {number: summary.measured[one] for number, one in enumerate(measures) if one in summary.measured}
    kept = None if summary.kept is None else (summary.kept.joined, summary.kept.texts)
    return FileResult(measured, kept, summary.wall_time)
