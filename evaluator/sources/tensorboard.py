"""Source: a folder of TensorBoard event files (`events.out.tfevents.*`), or one such file.

Scalars in both encodings, and tensors of no plugin. Files at the root give names as they were logged; a folder beside
them whose name says which data it is for (`train`, `validation`, `eval`, `test_2`, ...) gives names that begin with it
(`validation/loss`), and its mode. Other folders are other runs.

Source:
    tensorboard 2.21, backend/event_processing: order of files, purge at a session's start.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from evaluator.errors import FormatError, StorageError
from evaluator.formats.tfevents import (
    SCALARS,
    LoggedEvent,
    LoggedValue,
    Record,
    RecordCutter,
    array_of,
    parse_event,
)
from evaluator.formats.tfrecord import HEADER_SIZE
from evaluator.modes import Mode
from evaluator.scalar_names import Naming, mode_said
from evaluator.segments import Array
from evaluator.sources._log_source import LARGEST_STEP, LogSource, Skipped, counted, note_missing
from evaluator.sources._log_values import LogValues, Stored
from evaluator.sources._tail import Tail
from evaluator.storage.base import Entry, Store

EVENT_FILE = "events.out.tfevents."
TWICE = "_vs_iterations"
"""How tags end under which Keras logs every evaluation a second time, at the number of iterations. Beside epochs they
would make epochs come late. Source: keras 3.12, callbacks/tensorboard.py, on_test_end."""
MOST_FOLDERS = 50
"""Folders that are looked into for other runs."""


class _EventFile:
    """One event file, and what of it could not be used."""

    def __init__(self, key: str) -> None:
        self.tail = Tail(key)
        self.cutter = RecordCutter()
        self.began = math.inf
        """The wall time of its first event."""
        self.newest = -1
        """The highest step in it."""
        self.damaged = Skipped()
        self.others: Counter[str] = Counter()
        self.twice: Counter[str] = Counter()


class _Writer(NamedTuple):
    """Which file logs a tag, and up to where."""

    key: str
    wall_time: float
    step: int


class _Run:
    """The files of one folder, which log the same things one after the other."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.mode: Mode | None = mode_said(folder) if folder else None
        self.files: dict[str, _EventFile] = {}
        self.plugins: dict[str, str] = {}
        self.writers: dict[str, _Writer] = {}
        """Tag -> the file that logs it now."""

    def name(self, tag: str) -> str:
        return f"{self.folder}/{tag}" if self.folder else tag


class TensorBoardLogs(LogSource):
    """One training run as TensorBoard shows it."""

    name = "tensorboard"
    rank: ClassVar[int] = 2

    def __init__(self, store: Store, naming: Naming | None = None) -> None:
        """Nothing is read yet."""
        super().__init__(store, naming)
        self._runs: dict[str, _Run] = {}
        self._others: dict[str, str] | None = None

    @classmethod
    def detect(cls, store: Store) -> bool:
        """Whether there is an event file at the root, or in a folder named after a mode."""
        return any(True for _ in _event_files(store))

    @property
    def open_from(self) -> float:
        """The least of the newest steps of all folders: each writes out its events in its own time."""
        newest = [max(file.newest for file in run.files.values()) for run in self._runs.values() if run.files]
        return min(newest, default=0)

    def look(self) -> None:
        """Read what was added to each file; a file that was replaced makes all of them be read anew."""
        entries = list(_event_files(self.store))
        if any(self._replaced(folder, entry) for folder, entry in entries):
            self._runs.clear()
            self.values = LogValues(self.values)
        if self._others is None:
            self._others = _other_runs(self.store)
        self.problems = dict(self._others)
        for folder, entry in entries:
            run = self._runs.setdefault(folder, _Run(folder))
            file = run.files.setdefault(entry.key, _EventFile(entry.key))
            if file.tail.news(entry):
                self.modified = max(self.modified, entry.modified)
                self._read_on(run, file, entry)
            self._note(run, file)

    def load(self, stored: Stored) -> Array:
        """Read the record again."""
        data = self.store.read_range(stored.key, stored.start, stored.length)
        where = f"{stored.key} at byte {stored.start}"
        records = list(RecordCutter().feed(data))
        if len(records) != 1 or records[0].problem:
            raise FormatError(where, "the record is not what it was", "event files only grow")
        return array_of(records[0].payload, stored.number, where)

    def _replaced(self, folder: str, entry: Entry) -> bool:
        file = self._runs[folder].files.get(entry.key) if folder in self._runs else None
        return file is not None and file.tail.replaced(self.store, entry)

    def _read_on(self, run: _Run, file: _EventFile, entry: Entry) -> None:
        try:
            if file.cutter.stuck:
                if not file.cutter.resume(self.store.read_range(entry.key, file.cutter.at, HEADER_SIZE)):
                    return
                file.tail.offset = file.cutter.at
            for _, piece in file.tail.pieces(self.store, entry):
                for record in file.cutter.feed(piece):
                    self._take_record(run, file, record)
                if file.cutter.stuck:
                    break
        except StorageError as error:
            # one file that cannot be read now must not cost the others
            self.problems = note_missing(self.problems, entry.key, error)

    def _take_record(self, run: _Run, file: _EventFile, record: Record) -> None:
        where = f"{file.tail.key} at byte {record.start}"
        try:
            if record.problem:
                raise FormatError(where, record.problem)
            event = parse_event(record.payload, where)
            if event.values and not 0 <= event.step <= LARGEST_STEP:
                raise FormatError(where, f"has step {event.step}", "steps count from 0")
        except FormatError as error:
            file.damaged.add(f"at byte {record.start}:", error.without(where).removeprefix(f"{where}: "))
            return
        file.began = min(file.began, event.wall_time)
        if event.starts:
            self.values.drop(event.step, [run.name(tag) for tag in run.plugins])
            file.newest = min(file.newest, event.step - 1)
        for number, value in enumerate(event.values):
            self._take_value(run, file, record, event, number, value)

    def _take_value(
        self, run: _Run, file: _EventFile, record: Record, event: LoggedEvent, number: int, value: LoggedValue
    ) -> None:
        plugin = run.plugins.setdefault(value.tag, value.plugin) or value.plugin
        if value.tag.endswith(TWICE):
            file.others["evaluations counted in iterations too"] += 1
            return
        if value.kind not in {"scalar", "tensor"} or plugin not in {"", SCALARS}:
            file.others[plugin or value.kind] += 1
            return
        if not self._is_writer(run, file, event, value.tag):
            file.twice[value.tag] += 1
            return
        file.newest = max(file.newest, event.step)
        held = value.number
        if held is None:
            stored = Stored(file.tail.key, record.start, record.length, number, value.size)
            self.put(event.step, run.name(value.tag), stored, run.mode, event.wall_time)
        else:
            self.put(event.step, run.name(value.tag), held, run.mode, event.wall_time)

    @staticmethod
    def _is_writer(run: _Run, file: _EventFile, event: LoggedEvent, tag: str) -> bool:
        """Whether the value is of the file to go by for its tag: one that goes on takes over, one beside it does not.

        Several processes that write the same tags into one folder would overwrite each other's values step by step; a
        run that was resumed at an earlier step began its file after the last value of the other.
        """
        writer = run.writers.get(tag)
        if writer is None or writer.key == file.tail.key:
            last = (-math.inf, -1) if writer is None else writer[1:]
            now = max(event.wall_time, last[0]), max(event.step, last[1])
        elif event.step > writer.step or file.began >= writer.wall_time:
            now = event.wall_time, event.step
        else:
            return False
        run.writers[tag] = _Writer(file.tail.key, *now)
        return True

    def _note(self, run: _Run, file: _EventFile) -> None:
        """Say what of a file was not used."""
        key = file.tail.key
        if file.damaged.count:
            self.problems[key] = file.damaged.text("record")
        if file.cutter.stuck:
            self.problems[f"{key} at byte {file.cutter.at}"] = file.cutter.stuck
        if file.twice:
            writer = run.writers[next(iter(file.twice))].key
            what = f"{counted(sum(file.twice.values()), 'value')} not used"
            self.problems[f"{key} (twice)"] = f"{what}: {writer} logs the same at the same time"
        if file.others:
            kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(file.others.items()))
            self.problems[f"{key} (other data)"] = f"not used: {kinds}"


def _event_files(store: Store) -> Iterator[tuple[str, Entry]]:
    """The event files of the run, with the folder that each is in: the root first, then by name."""
    for folder in ["", *(one for one in store.folders() if mode_said(one) is not None)]:
        for entry in store.files(folder):
            if EVENT_FILE in entry.key.rpartition("/")[2]:
                yield folder, entry


def _other_runs(store: Store) -> dict[str, str]:
    """The folders beside the run's that hold event files too, with what to do about them; looked for once."""
    folders = [one for one in store.folders() if mode_said(one) is None][:MOST_FOLDERS]
    others = [one for one in folders if any(EVENT_FILE in entry.key for entry in store.files(one))]
    return {f"{one}/": "holds event files of another run, which are not read; name it by itself" for one in others}


SOURCE = TensorBoardLogs
