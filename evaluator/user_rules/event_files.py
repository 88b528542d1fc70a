"""Single event files, read and written as rule files' own tests and fixtures do.

Source:
    smdebug-api.md, section 8; saved-format.md, section 11.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np

from evaluator.clock import Clock
from evaluator.errors import FormatError, StorageError
from evaluator.formats.event import decode_event, encode_event
from evaluator.formats.index_file import IndexFile, encode_index
from evaluator.formats.key_names import event_key, index_key
from evaluator.formats.tfrecord import frame, records
from evaluator.modes import Mode
from evaluator.segments import Array
from evaluator.storage import open_store
from evaluator.user_rules.core_utils import make_numpy_array, match_inc
from evaluator.user_rules.exceptions import SMDebugRuntimeError
from evaluator.user_rules.modes import ModeKeys
from evaluator.user_rules.surroundings import surroundings


class FileReader:
    """Reads the tensors of one event file."""

    def __init__(self, fname: str, wtype: str = "tfevent") -> None:
        """Nothing is read yet; `wtype` has no meaning."""
        del wtype
        self._fname = fname

    def __enter__(self) -> Self:
        """The reader itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def read_tensors(self, check: str = "minimal") -> Iterator[tuple[str, int, Array, ModeKeys, int]]:
        """Name, global step, value, mode and mode step of each tensor in the file; `check` has no meaning.

        Raises:
            SMDebugRuntimeError: the file is missing, cut or damaged.
        """
        del check
        for name, step, values, mode, mode_step, _ in self._events():
            yield name, step, values, mode, mode_step

    def read_events(self, check: str = "minimal", regex_list: list[str] | None = None) -> list[dict[str, Any]]:
        """Time, step, name and value of each tensor, or of those whose names match; `check` has no meaning."""
        del check
        return [
            {"timestamp": time, "step": step, "name": name, "value": values}
            for name, step, values, _, _, time in self._events()
            if not regex_list or match_inc(name, regex_list)
        ]

    def _events(self) -> Iterator[tuple[str, int, Array, ModeKeys, int, float]]:
        folder, _, name = self._fname.rpartition("/")
        try:
            data = open_store(folder or ("/" if self._fname.startswith("/") else ".")).read(name)
            for _, payload in records(data, self._fname):
                event = decode_event(payload, self._fname)
                if event is not None:
                    mode = ModeKeys.GLOBAL if event.mode is None else ModeKeys(int(event.mode))
                    within = event.step if event.mode_step is None else event.mode_step
                    yield event.name, event.step, event.values, mode, within, event.wall_time
        except (FormatError, StorageError) as error:
            raise SMDebugRuntimeError(str(error)) from error


class FileWriter:
    """Writes what one worker saves at one step, when it is closed."""

    def __init__(
        self,
        trial_dir: str,
        worker: str,
        step: int = 0,
        wtype: str = "events",
        mode: ModeKeys = ModeKeys.GLOBAL,
        max_queue: int = 10,
        flush_secs: int = 120,
        verbose: bool = False,
        write_checksum: bool = False,
    ) -> None:
        """Nothing is written yet; what has to do with queues and TensorBoard has no meaning."""
        del wtype, max_queue, flush_secs, verbose
        self._trial_dir = trial_dir
        self._worker = worker
        self._step = step
        self._mode = mode
        self._checksum = write_checksum
        self._records: list[bytes] = []
        self._indexed: list[tuple[str, int, int]] = []
        self._shapes: list[tuple[str, str, tuple[int, ...]]] = []
        self._saved_as: tuple[ModeKeys, int] | None = None
        self._clock: Clock = surroundings().clock

    def __enter__(self) -> Self:
        """The writer itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Write the files."""
        self.close()

    def write_tensor(
        self,
        tdata: object,
        tname: str,
        write_index: bool = True,
        mode: ModeKeys = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        timestamp: float | None = None,
    ) -> None:
        """Add a tensor; without an index entry only `FileReader` finds it."""
        within = self._step if mode_step is None else mode_step
        when = self._clock.now() if timestamp is None else timestamp
        how: dict[str, Any] = {"step": self._step, "mode": Mode(mode.value), "mode_step": within, "wall_time": when}
        record = frame(encode_event(tname, make_numpy_array(tdata), **how), true_checksum=self._checksum)
        if write_index:
            self._saved_as = self._saved_as or (mode, within)
            self._indexed.append((tname, sum(map(len, self._records)), len(record)))
        self._records.append(record)

    def write_shape(
        self,
        name: str,
        shape: tuple[int, ...],
        mode: ModeKeys = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        original_name: str | None = None,
    ) -> None:
        """Add the shape of a tensor."""
        self._saved_as = self._saved_as or (mode, self._step if mode_step is None else mode_step)
        self._shapes.append((name, original_name or name, tuple(shape)))

    def flush(self) -> None:
        """Nothing: the files are written as a whole."""

    def close(self) -> None:
        """Write the event file and then the index file, which tells readers that the other one is there."""
        store = open_store(self._trial_dir)
        key = event_key(self._step, self._worker)
        if self._records:
            store.write(key, b"".join(self._records))
        if self._saved_as is None:
            return
        mode, mode_step = self._saved_as
        names = tuple(name for name, _, _ in self._indexed)
        places = np.array([(start, length) for _, start, length in self._indexed], np.int64).reshape(-1, 2)
        event = key if self._indexed else None
        index = IndexFile(Mode(mode.value), mode_step, event, names, places[:, 0], places[:, 1], tuple(self._shapes))
        store.write(index_key(self._step, self._worker), encode_index(index))

    def name(self) -> str:
        """The path of the event file."""
        return f"{self._trial_dir.rstrip('/')}/{event_key(self._step, self._worker)}"
