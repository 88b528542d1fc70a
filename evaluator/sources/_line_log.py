"""What tables that are written line by line share: one file that grows, of which whole lines are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from evaluator.errors import StorageError
from evaluator.scalar_names import Naming
from evaluator.sources._log_source import LogSource, Skipped
from evaluator.sources._log_values import LogValues
from evaluator.sources._rows import Row, RowProblem, RowReader
from evaluator.sources._tail import Tail
from evaluator.storage._one_file import OneFile
from evaluator.storage.base import Entry, Store

LONGEST_LINE = 2**20
"""Longer lines are not read; ours."""
SNIFFED = 2**16
"""Bytes at the start of a file that tell what it is."""
MOST_FILES = 50
"""Files of a folder that are looked into, to find the one that is a log."""


class LineLog(LogSource):
    """A table in one file; subclasses say what a line is."""

    suffixes: ClassVar[tuple[str, ...]]
    rank: ClassVar[int] = 3

    def __init__(self, store: Store, naming: Naming | None = None) -> None:
        """Nothing is read yet."""
        super().__init__(store, naming)
        self._key: str | None = None
        self._tail: Tail | None = None
        self._start_over()

    @classmethod
    @abstractmethod
    def is_one(cls, head: Sequence[str]) -> bool:
        """Whether a file that begins with these whole lines is such a table."""

    @abstractmethod
    def row(self, line: str) -> Row | None:
        """What a line says; None where it says nothing, as a header. Raises RowProblem."""

    def unfinished_row(self, line: str) -> Row | None:
        """What a last line without its end says, where it is whole without doubt."""
        del line
        return None

    @classmethod
    def detect(cls, store: Store) -> bool:
        """Whether exactly one file at the root is such a table."""
        return len(cls.tables(store)) == 1

    @classmethod
    def runs_beside(cls, store: Store) -> Sequence[str]:
        """Such tables, if there are several."""
        found = cls.tables(store)
        return found if len(found) > 1 else ()

    @classmethod
    def tables(cls, store: Store) -> list[str]:
        """The files at the root that are such tables."""
        if isinstance(store, OneFile):
            entries = store.list()
        else:
            entries = [entry for entry in store.files() if entry.key.lower().endswith(cls.suffixes)][:MOST_FILES]
        return [entry.key for entry in entries if cls.is_one(_head(store, entry))]

    def look(self) -> None:
        """Read the lines that were added."""
        if self._key is None:
            self._key = next(iter(self.tables(self.store)), None)
        entry = None if self._key is None else self.store.stat(self._key)
        if entry is None:
            return
        try:
            tail = self._tail
            if tail is not None and tail.replaced(self.store, entry):
                self._start_over()
                self.values = LogValues(self.values)
                tail = None
            if tail is None:
                tail = self._tail = Tail(entry.key, rewritten=True)
            if tail.news(entry):
                self.modified = max(self.modified, entry.modified)
                self._read_on(tail, entry)
            self.problems = self._found_problems(entry.key)
        except StorageError as error:
            # it may be there again at the next look
            self.problems = {**self._found_problems(entry.key), "log": error.without(entry.key)}

    def _start_over(self) -> None:
        self._tail = None
        self._rest = b""
        self._too_long = False
        self._line = 0
        self._waits = False
        self._skipped = Skipped()
        self.rows = RowReader()

    def _read_on(self, tail: Tail, entry: Entry) -> None:
        for _, piece in tail.pieces(self.store, entry):
            *lines, self._rest = (self._rest + piece).split(b"\n")
            for line in lines:
                self._line += 1
                if self._too_long:
                    self._too_long = False
                elif len(line) > LONGEST_LINE:
                    self._skipped.add(f"line {self._line}", f"has {len(line)} bytes; at most {LONGEST_LINE} are read")
                else:
                    self._take(line)
            if len(self._rest) > LONGEST_LINE:
                if not self._too_long:
                    self._skipped.add(f"line {self._line + 1}", f"has more than {LONGEST_LINE} bytes")
                self._rest, self._too_long = b"", True
        self._waits = bool(self._rest.strip())
        if self._waits:
            try:
                row = self.unfinished_row(self._rest.decode())
            except (UnicodeDecodeError, RowProblem):
                return
            if row is not None:
                # when its end comes, the same values are put again, which changes nothing
                self._waits = False
                self._put(row)

    def _take(self, line: bytes) -> None:
        try:
            text = line.decode("utf-8-sig" if self._line == 1 else "utf-8").rstrip("\r")
            row = self.row(text) if text.strip() else None
            if row is not None:
                self._put(row)
        except UnicodeDecodeError:
            self._skipped.add(f"line {self._line}", "is not UTF-8")
        except RowProblem as problem:
            self._skipped.add(f"line {self._line}", str(problem))

    def _put(self, row: Row) -> None:
        for name, value in row.values:
            self.put(row.step, name, value, row.mode)

    def _found_problems(self, key: str) -> dict[str, str]:
        found = {}
        if self._skipped.count:
            found[key] = self._skipped.text("line")
        if self._waits:
            found[f"{key} (last line)"] = "has no newline, so it may not be whole; not used yet"
        if self.rows.text:
            columns = ", ".join(repr(name)[:60] for name in list(self.rows.text)[:10])
            more = f" and {len(self.rows.text) - 10} more" if len(self.rows.text) > 10 else ""
            found[f"{key} (columns)"] = f"what is no number is not used: {columns}{more}"
        return found


def _head(store: Store, entry: Entry) -> list[str]:
    """The lines that a file begins with, the last one only where the file ends there."""
    try:
        data = store.read_range(entry.key, 0, SNIFFED)
    except StorageError:
        return []
    lines = list(_texts(data.split(b"\n")))
    return lines if len(data) >= entry.size else lines[:-1]


def _texts(lines: Sequence[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield line.decode("utf-8-sig" if number == 0 else "utf-8", "replace").rstrip("\r")
