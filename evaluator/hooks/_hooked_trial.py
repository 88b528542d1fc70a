"""The trial that a hook writes: steps are counted, written in the background, and closed when the script ends."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator.clock import Clock, SystemClock
from evaluator.formats.key_names import END_MARKER
from evaluator.hooks._background import Background
from evaluator.modes import Mode
from evaluator.safe_writer import SafeWriter
from evaluator.saving.environment import rank_and_size
from evaluator.saving.failures import Failures
from evaluator.saving.files import remove
from evaluator.saving.stop_file import StopFile
from evaluator.scalar_names import kind_of
from evaluator.writer import CollectionSpec


class HookedTrial:
    """What all hooks share. It never raises: what goes wrong is one warning and a count."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        rank_of: tuple[int, int] | None = None,
        workers: str = "all",
        keep_steps: int | None = None,
        keep_bytes: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Nothing is written yet.

        Args:
            folder: the trial's.
            rank_of: the number of this worker and how many there are; by default as launchers set it.
            workers: "all", or "one": then only the first of them saves.
            keep_steps: as of TrialWriter.
            keep_bytes: as of TrialWriter.
            clock: the machine's by default.
        """
        self.failures = Failures()
        self._looking = self.failures.guard("the file STOP was not looked for")
        self.rank, size = rank_and_size() if rank_of is None else rank_of
        self.saves = self.rank == 0 or workers != "one"
        self._clock = SystemClock() if clock is None else clock
        self._process = os.getpid()
        self._steps = 0
        self._mode_steps = dict.fromkeys(Mode, 0)
        self._background = Background(self.failures)
        self._stop = StopFile(Path(folder), self._clock, first=self.rank == 0, alone=size == 1)
        self._writer = SafeWriter(
            folder,
            failures=self.failures,
            worker=f"worker_{self.rank}",
            num_workers=size if workers != "one" else 1,
            keep_steps=keep_steps,
            keep_bytes=keep_bytes,
            clock=self._clock,
        )
        self._folder = Path(folder)
        self.open()

    def open(self) -> None:
        """Begin, or go on after `close`: what an earlier run left as its end is no end any more."""
        self._closed = False
        if self.rank == 0:
            remove(self._folder, END_MARKER)
        atexit.register(self._at_exit)

    def count(self, mode: Mode) -> tuple[int, int]:
        """The next step, and the next step of this mode."""
        step, mode_step = self._steps, self._mode_steps[mode]
        self._steps += 1
        self._mode_steps[mode] += 1
        return step, mode_step

    def save(
        self,
        step: int,
        values: Mapping[str, Any],
        *,
        mode: Mode,
        mode_step: int,
        reductions: Mapping[str, Mapping[str, Any]] | None = None,
        collections: Mapping[str, CollectionSpec] | None = None,
    ) -> None:
        """Have a step written; the values must not be changed any more."""
        # A process that was forked off (to load data, say) has no thread, and is no worker.
        if not self.saves or self._closed or os.getpid() != self._process:
            return
        now = self._clock.now()

        def write() -> None:
            self._writer.collect(collections or {})
            self._writer.save(step, values, mode=mode, mode_step=mode_step, reductions=reductions, wall_time=now)

        self._background.put(write)

    def should_stop(self, step: int) -> bool:
        """Whether the run was asked to end with this step."""
        with self._looking:
            return self._stop.due(step)
        return False

    def close(self, *, end: bool = True) -> None:
        """Write what still waits, and mark the run as ended; more than once does no harm."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        if not self._background.finish():
            self.failures.note("the last steps were not saved", TimeoutError("the disk did not keep up"))
        # Readers wait a while after the marker for workers that are slower than the first.
        if self.saves:
            self._writer.close(end=end and self.rank == 0)

    def _at_exit(self) -> None:
        # Set by the interpreter when an exception that nobody caught ended the script: such a run has not ended well.
        self.close(end=getattr(sys, "last_value", None) is None)


def by_kind(names: Mapping[str, Any]) -> dict[str, list[str]]:
    """Collections of scalars by what their names say: losses, metrics, learning rates."""
    found: dict[str, list[str]] = {}
    for name in names:
        kind = kind_of(name)
        if kind is not None:
            found.setdefault(kind, []).append(name)
            if kind.endswith("_metrics"):
                found.setdefault("metrics", []).append(name)
    return found
