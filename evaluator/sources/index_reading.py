"""Reading index files: the entries of consecutive ones are mostly the same text, which is then parsed once."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.errors import FormatError
from evaluator.formats.index_file import IndexFile, parse_head, parse_index
from evaluator.modes import Mode

_ENTRIES = b'"tensor_payload"'
_NO_ENTRIES = b'"tensor_payload": []}'
MOST_REMEMBERED = 2**24
"""Bytes of former texts that are kept, of all workers together."""


@dataclass(frozen=True, slots=True)
class _Former:
    """The text of an index file from its entries on, and what it said."""

    text: bytes
    index: IndexFile


class IndexReader:
    """Parses index files; those with the entries of a former one get the very arrays and names of that one.

    So whoever looks at an array or a tuple by its identity knows that nothing in it has changed.
    """

    def __init__(self) -> None:
        """No file was read yet."""
        self._former: dict[tuple[str, int], _Former] = {}
        self._remembered = 0

    def parse(self, data: bytes, worker: str, where: str) -> IndexFile:
        """The content of a worker's index file.

        Raises:
            Truncated, FormatError: as `parse_index`.
        """
        begin = data.find(_ENTRIES)
        key = worker, len(data) - begin
        former = self._former.get(key)
        head = _head(data, begin, where) if begin >= 0 else None
        if former is not None and head is not None and data.endswith(former.text):
            same = former.index
            return IndexFile(*head, same.names, same.starts, same.lengths, same.shapes)
        index = parse_index(data, where)
        if head is not None and _stands_alone(data, begin):
            self._remember(key, _Former(data[begin:], index))
        return index

    def _remember(self, key: tuple[str, int], former: _Former) -> None:
        known = self._former.get(key)
        self._remembered += len(former.text) - (len(known.text) if known is not None else 0)
        if self._remembered > MOST_REMEMBERED:
            self._former.clear()
            self._remembered = len(former.text)
        if self._remembered <= MOST_REMEMBERED:
            self._former[key] = former


def _head(data: bytes, begin: int, where: str) -> tuple[Mode, int, str] | None:
    """What stands before the entries; None where they are not a member of the outermost object, or it is not enough."""
    try:
        return parse_head(data[:begin] + _NO_ENTRIES, where)
    except FormatError:
        return None


def _stands_alone(data: bytes, begin: int) -> bool:
    """Whether nothing behind the beginning of the entries can say something else of what stands before them."""
    return data.find(b'"meta"', begin) < 0 and data.find(b"\\", begin) < 0
