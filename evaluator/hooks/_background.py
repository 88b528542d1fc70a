"""A thread that writes, so that the training need not wait for the disk."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from evaluator.saving.failures import Failures

WAITING = 2
"""Steps that may wait to be written; each holds what was copied of a step in memory. Ours."""

PATIENCE = 60.0
"""Seconds that the training waits for a disk that does not keep up, before a step is lost; ours."""


class Background:
    """Does what it is given, one after the other, in a thread of its own."""

    def __init__(self, failures: Failures, *, waiting: int = WAITING, patience: float = PATIENCE) -> None:
        """The thread starts with the first work."""
        self._failures = failures
        self._patience = patience
        # This kind of queue hands over in less time than the one with a limit, so the limit is a second one, of tokens.
        self._work: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(waiting):
            self._room.put(None)
        self._thread: threading.Thread | None = None

    def put(self, work: Callable[[], object]) -> None:
        """Have it done soon; where the thread does not keep up, wait for it, but not for ever."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="saving a trial", daemon=True)
            self._thread.start()
        try:
            self._room.get(timeout=self._patience)
            self._work.put(work)
        except queue.Empty:
            what = f"the disk did not keep up for {self._patience:g} s"
            self._failures.note("a step was not saved", TimeoutError(what))

    def finish(self) -> bool:
        """Wait until all is done; whether it was, within the patience."""
        if self._thread is None:
            return True
        try:
            self._room.get(timeout=self._patience)
        except queue.Empty:
            return False
        self._work.put(None)
        self._thread.join(self._patience)
        done = not self._thread.is_alive()
        self._thread = None
        return done

    def _run(self) -> None:
        while True:
            work = self._work.get()
            self._room.put(None)
            if work is None:
                return
            with self._failures.guard("a step was not saved"):
                work()
            del work  # what a step holds must not stay in memory until the next one
