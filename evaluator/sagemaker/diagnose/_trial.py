"""What a saved run tells of its workers, read once; values are read of each worker's last step only."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from evaluator.clock import Clock
from evaluator.formats.key_names import natural_key
from evaluator.needs import Selection
from evaluator.progress import ProgressTracker
from evaluator.sources.base import SHAPE, Layout, Positions, Source, StepFile
from evaluator.trial.completeness import Waits
from evaluator.trial.opening import open_run
from evaluator.trial.trial import Trial
from evaluator.window import ProgressView

PIECE = 64 * 2**20
"""Bytes that are read at once, unless one tensor has more."""
TIMES = 1000
"""Times between steps of which the middle one is taken: the last ones."""
MOST_TENSORS = 5
"""Tensors that are named of a worker."""
_PARAMETERS = Selection(collections=("weights", "biases", "gradients"))


@dataclass
class TrialFacts:
    """A saved run.

    Args:
        ended: whether it has its end marker.
        expected: how many workers save, by the collection files.
        workers: those that saved a step.
        progress: how far each is.
        parameters: the names of weights, biases and gradients.
        first_step_at: when the first step was saved; newest_at: when the last one was.
        seconds: per step, the middle one of the first worker's.
        not_finite: worker -> the first tensors of its last step that hold NaN or an infinity.
        last_step: worker -> the last step that it saved.
        unreadable: step files and tensors that could not be read, and why.
    """

    path: str
    ended: bool
    expected: int | None
    workers: list[str]
    steps: int
    progress: ProgressView
    parameters: list[str]
    first_step_at: float | None
    newest_at: float | None
    seconds: float | None
    not_finite: dict[str, list[str]] = field(default_factory=dict)
    last_step: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


def read_trial(path: str, clock: Clock) -> TrialFacts:
    """Read a run from its first step to its last.

    Raises:
        InputError: there is none under the path.
    """
    source = open_run(path, clock)
    trial = Trial(source, clock, Waits(0, 0), following=False)
    tracker = ProgressTracker()
    last: dict[str, StepFile] = {}
    pace = _Pace()
    began: float | None = None
    newest: float | None = None
    steps = 0
    for step in trial.finish():
        trial.judged(step)
        steps += 1
        for file in step.files:
            at = source.wall_time(file)
            at = file.modified if at is None else at
            began = at if began is None else min(began, at)
            newest = at if newest is None else max(newest, at)
            tracker.wrote(file.worker, file.step, at, file.mode)
            pace.saw(file.worker, file.step, at)
            last[file.worker] = file
    tracker.ended, tracker.complete, tracker.expected = True, trial.end_marked(), trial.expected_workers
    facts = TrialFacts(
        path, tracker.complete, trial.expected_workers, sorted(last, key=natural_key), steps, tracker.view(),
        trial.names.selected(_PARAMETERS), began, newest, pace.seconds, unreadable=dict(trial.problems),
    )  # fmt: skip
    for worker in facts.workers:
        facts.last_step[worker] = last[worker].step
        found = list(_not_finite(source, last[worker], facts.unreadable))
        if found:
            facts.not_finite[worker] = found[:MOST_TENSORS]
    return facts


class _Pace:
    """The seconds per step of the first worker that saved."""

    def __init__(self) -> None:
        self._worker: str | None = None
        self._before: tuple[int, float] | None = None
        self._times: deque[float] = deque(maxlen=TIMES)

    def saw(self, worker: str, step: int, at: float) -> None:
        self._worker = self._worker or worker
        if worker != self._worker:
            return
        if self._before is not None and step > self._before[0]:
            self._times.append((at - self._before[1]) / (step - self._before[0]))
        self._before = (step, at)

    @property
    def seconds(self) -> float | None:
        found = statistics.median(self._times) if self._times else 0.0
        return found if found > 0 else None


def _not_finite(source: Source, file: StepFile, unreadable: dict[str, str]) -> Iterator[str]:
    """The tensors of a file with NaN or an infinity in them, in the order in which they were saved."""
    layout = file.layout
    for positions in _pieces(source, file):
        values = source.read(file, [positions])
        unreadable.update((layout.names[at], why) for at, why in values.problems.items())
        bad = []
        for _, places, segments in values.joined:
            if segments.flat.dtype.kind in "fc":
                starts = segments.starts
                finite = np.logical_and.reduceat(np.isfinite(segments.flat), starts)
                bad += places[~finite].tolist()
        yield from (layout.names[at] for at in sorted(bad))


def _pieces(source: Source, file: StepFile) -> Iterator[Positions]:
    """The values of a file, so many at a time that memory does not grow with it."""
    held: list[int] = []
    size = 0
    for at in _values(file.layout):
        one = source.size_of(file, [np.array([at], np.int64)])
        if held and size + one > PIECE:
            yield np.array(held, np.int64)
            held, size = [], 0
        held.append(at)
        size += one
    if held:
        yield np.array(held, np.int64)


def _values(layout: Layout) -> list[int]:
    return [at for at, kind in enumerate(layout.kinds) if kind != SHAPE]
