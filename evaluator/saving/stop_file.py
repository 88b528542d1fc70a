"""The file `STOP` directly in a trial's folder: whoever writes it asks the training to end, with no need of a service.

Its content does not matter.
It is obeyed whoever wrote it and whenever; a run that shall go on in the same folder removes it first.

Workers that compute together must all end after the same step, or those that go on wait for the others.
So the first worker, when it sees the file, chooses a step that lies some seconds ahead and writes it into `STOP.step`;
all end there. That needs one folder that all workers see.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from evaluator.clock import Clock
from evaluator.saving.files import publish, remove

STOP = "STOP"
AGREED = "STOP.step"

EVERY = 1.0
"""Seconds between two looks; ours, a look costs some microseconds on a disk and milliseconds on a network."""

AHEAD = 10.0
"""Seconds until the step on which several workers agree; ours, above the looks and the delays of network disks."""

LEAST_STEPS = 3
"""Steps until then at the least."""


class StopFile:
    """Whether a run was asked to stop."""

    def __init__(self, folder: Path, clock: Clock, *, first: bool = True, alone: bool = True) -> None:
        """Nothing is looked at yet.

        Args:
            folder: the trial's.
            clock: for the pauses between looks.
            first: whether this is the worker that chooses the step.
            alone: whether there is no other worker.
        """
        self._folder = folder
        self._path = str(folder / STOP)
        self._clock = clock
        self._first = first
        self._alone = alone
        self._seen = False
        self._looked_at: float | None = None
        self._began: tuple[int, float] | None = None
        self._agreed: int | None = None

    def found(self, *, now: bool = False) -> bool:
        """Whether the file is there; looks at most every second, or `now`. What was seen once stays seen."""
        if not self._seen:
            at = self._clock.monotonic()
            if now or self._looked_at is None or at - self._looked_at >= EVERY:
                self._looked_at = at
                self._seen = os.path.exists(self._path)  # noqa: PTH110 - beside a training; pathlib takes several times as long
        return self._seen

    def due(self, step: int) -> bool:
        """Whether the run ends after this step; called at every step, it says the same to all workers."""
        if self._alone:
            return self.found()
        if self._began is None:
            self._began = (step, self._clock.monotonic())
            if self._first:
                # what an earlier run agreed on
                remove(self._folder, AGREED)
        if not self.found():
            return False
        if self._agreed is None:
            self._agreed = self._choose(step) if self._first else self._read()
        return self._agreed is not None and step >= self._agreed

    def _choose(self, step: int) -> int:
        began, at = self._began or (step, 0.0)
        seconds = self._clock.monotonic() - at
        per_second = (step - began) / seconds if seconds > 0 else 0.0
        chosen = step + max(LEAST_STEPS, math.ceil(AHEAD * per_second))
        publish(self._folder, AGREED, f"{chosen}\n".encode())
        return chosen

    def _read(self) -> int | None:
        try:
            return int((self._folder / AGREED).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None  # not written yet
