"""A run that a test saves file by file, into a store whose files get the test's time.

`TrialWriter` writes into folders, with the machine's time; this makes the same bytes without a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from evaluator.formats.collection_file import SavedCollection, encode_collections
from evaluator.formats.event import encode_event
from evaluator.formats.index_file import IndexFile, encode_index
from evaluator.formats.key_names import END_MARKER, collections_key, event_key, index_key
from evaluator.formats.tfrecord import frame
from evaluator.modes import Mode
from evaluator.storage.base import Store
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock

Files = dict[str, bytes]


class ScriptedClock(FakeClock):
    """A fake clock that lets something happen at certain times, in the waits of others."""

    def __init__(self, limit: float = 100_000.0) -> None:
        super().__init__()
        self._limit = limit
        self._script: list[tuple[float, int, Callable[[], object]]] = []

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Do this once the clock shows so many seconds since the start."""
        self._script.append((seconds, len(self._script), action))
        self._script.sort(key=lambda item: item[:2])

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        assert self.monotonic() < self._limit, "waited for ever"
        assert len(self.waits) < 50_000, "waited for ever in small steps"
        end = self.monotonic() + seconds
        while self._script and self._script[0][0] <= end and not self._woken:
            at, _, action = self._script.pop(0)
            self.advance(max(0.0, at - self.monotonic()))
            action()
        if not self._woken:
            self.advance(max(0.0, end - self.monotonic()))
        return self._woken


class SavedRun:
    """The files of a run, put into a memory store at the moment the test wants them there."""

    def __init__(self, clock: FakeClock, num_workers: int = 1) -> None:
        self.clock = clock
        self.num_workers = num_workers
        self.store: Store = MemoryStore(clock=clock)

    def files(
        self,
        step: int,
        worker: str = "worker_0",
        values: Mapping[str, Any] | None = None,
        *,
        mode: Mode = Mode.GLOBAL,
        mode_step: int | None = None,
        true_checksum: bool = False,
    ) -> Files:
        """The event file and the index file of a step, not in the store yet."""
        named = {"loss": np.float32(step)} if values is None else values
        within = step if mode_step is None else mode_step
        how: dict[str, Any] = {"step": step, "mode": mode, "mode_step": within, "wall_time": self.clock.now()}
        records = [
            frame(encode_event(name, value, **how), true_checksum=true_checksum) for name, value in named.items()
        ]
        lengths = np.array([len(record) for record in records], np.int64)
        event = event_key(step, worker)
        index = IndexFile(mode, within, event, tuple(named), np.cumsum(lengths) - lengths, lengths, ())
        return {event: b"".join(records), index_key(step, worker): encode_index(index)}

    def put(self, files: Files) -> None:
        """Put files into the store, as of now."""
        for key, data in files.items():
            self.store.write(key, data)

    def save(self, step: int, *workers: str, values: Mapping[str, Any] | None = None, **how: Any) -> None:
        """Save a step of one worker or several."""
        for worker in workers or ("worker_0",):
            self.put(self.files(step, worker, values, **how))

    def announce(self, *workers: str, **collections: Iterable[str] | SavedCollection) -> None:
        """Write the collections file of one worker or several."""
        saved = {
            name: given if isinstance(given, SavedCollection) else SavedCollection(name, (), tuple(given))
            for name, given in collections.items()
        }
        for worker in workers or ("worker_0",):
            self.put({collections_key(worker): encode_collections(saved, self.num_workers)})

    def end(self) -> None:
        """Write the end marker."""
        self.store.write(END_MARKER, b"")
