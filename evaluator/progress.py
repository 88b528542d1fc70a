"""How far each worker of a run is, and for how long nothing has come from it."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from evaluator.formats.key_names import natural_key
from evaluator.modes import Mode
from evaluator.window import Column, ProgressView

PAUSES = 100
"""How many of the last pauses between steps are told."""


class ProgressTracker:
    """Keeps a few numbers per worker.

    Times are those of the store while following, and those that the training script wrote into its files when a run is
    read afterwards: a copied folder has lost the former.
    """

    def __init__(self) -> None:
        """No worker seen yet."""
        self._last_step: dict[str, int] = {}
        self._columns: list[Column] = []
        self._steps: dict[str, int] = {}
        self._newest: dict[str, float] = {}
        self._gap: dict[str, float] = {}
        self._saved: dict[Mode, int] = {}
        """How many steps were saved in a mode, by any worker."""
        self._newest_in: dict[Mode, int] = {}
        self._saved_by_then: dict[str, dict[Mode, int]] = {}
        """Worker -> how many steps had been saved when it saved last, in each mode that it saves in."""
        self._rhythm: dict[str, int] = {}
        self._pauses: deque[float] = deque(maxlen=PAUSES)
        self._paused: tuple[int, float] | None = None
        """The step that is being written, and the newest time before it."""
        self.expected: int | None = None
        self.ended = False
        self.complete = False

    def wrote(self, worker: str, step: int, at: float | None, mode: Mode = Mode.GLOBAL) -> None:
        """A worker wrote a file for a step at this time (None: nobody knows when)."""
        self._count(worker, step, mode)
        self._steps[worker] = self._steps.get(worker, 0) + (step != self._last_step.get(worker))
        self._last_step[worker] = step
        if at is None:
            return
        self._time(step, at)
        before = self._newest.get(worker)
        self._gap[worker] = math.nan if before is None else at - before
        self._newest[worker] = at

    def view(self, now: float | None = None) -> ProgressView:
        """The numbers as conditions get them; `now` is by default the newest time of any worker."""
        if len(self._columns) < len(self._last_step):
            self._columns = [Column("", worker) for worker in sorted(self._last_step, key=natural_key)]
        workers = [column.worker for column in self._columns]
        latest = max(self._newest.values(), default=0.0) if now is None else now
        return ProgressView(
            columns=self._columns,
            last_step=np.array([self._last_step[worker] for worker in workers], np.int64),
            steps=np.array([self._steps[worker] for worker in workers], np.int64),
            silent=np.array([max(0.0, latest - self._newest.get(worker, latest)) for worker in workers], np.float64),
            gap=np.array([self._gap.get(worker, math.nan) for worker in workers], np.float64),
            ended=self.ended,
            complete=self.complete,
            behind=np.array([self._behind(worker) for worker in workers], np.int64),
            rhythm=np.array([self._rhythm.get(worker, 1) for worker in workers], np.int64),
            pauses=np.array(self._pauses, np.float64),
            expected=self.expected,
        )

    def _count(self, worker: str, step: int, mode: Mode) -> None:
        """Count the step for its mode, and what the worker had missed before it."""
        if self._newest_in.get(mode) != step:
            self._newest_in[mode] = step
            self._saved[mode] = self._saved.get(mode, 0) + 1
        seen = self._saved_by_then.setdefault(worker, {})
        if mode in seen:
            self._rhythm[worker] = max(self._rhythm.get(worker, 1), self._saved[mode] - seen[mode])
        seen[mode] = 0
        for own in seen:
            seen[own] = self._saved.get(own, 0)

    def _behind(self, worker: str) -> int:
        seen = self._saved_by_then[worker]
        return max(self._saved[mode] - then for mode, then in seen.items())

    def _time(self, step: int, at: float) -> None:
        """Note for how long nothing had come from any worker when the first file of a step came."""
        if self._paused is None or self._paused[0] != step:
            latest = max(self._newest.values(), default=math.nan)
            self._paused = (step, latest)
            if not math.isnan(latest):
                self._pauses.append(max(0.0, at - latest))
        elif not math.isnan(self._paused[1]):
            self._pauses[-1] = min(self._pauses[-1], max(0.0, at - self._paused[1]))
