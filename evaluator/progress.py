"""How far each worker of a run is, and for how long nothing has come from it."""

from __future__ import annotations

import math

import numpy as np

from evaluator.formats.key_names import natural_key
from evaluator.window import Column, ProgressView


class ProgressTracker:
    """Keeps a few numbers per worker.

    Times are those of the store while following, and those that the training script wrote into its files when a run is
    read afterwards: a copied folder has lost the former.
    """

    def __init__(self) -> None:
        """No worker seen yet."""
        self._last_step: dict[str, int] = {}
        self._steps: dict[str, int] = {}
        self._newest: dict[str, float] = {}
        self._gap: dict[str, float] = {}
        self.ended = False

    def wrote(self, worker: str, step: int, at: float | None) -> None:
        """A worker wrote a file for a step at this time (None: nobody knows when)."""
        self._steps[worker] = self._steps.get(worker, 0) + (step != self._last_step.get(worker))
        self._last_step[worker] = step
        if at is None:
            return
        before = self._newest.get(worker)
        self._gap[worker] = math.nan if before is None else at - before
        self._newest[worker] = at

    def view(self, now: float | None = None) -> ProgressView:
        """The numbers as conditions get them; `now` is by default the newest time of any worker."""
        workers = sorted(self._last_step, key=natural_key)
        latest = max(self._newest.values(), default=0.0) if now is None else now
        return ProgressView(
            columns=[Column("", worker) for worker in workers],
            last_step=np.array([self._last_step[worker] for worker in workers], np.int64),
            steps=np.array([self._steps[worker] for worker in workers], np.int64),
            silent=np.array([max(0.0, latest - self._newest.get(worker, latest)) for worker in workers], np.float64),
            gap=np.array([self._gap.get(worker, math.nan) for worker in workers], np.float64),
            ended=self.ended,
        )
