"""How single records of event files are laid out: where the numbers are, and which bytes say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluator.errors import FormatError
from evaluator.formats.event import Place, locate
from evaluator.formats.reduction_names import parse_saved_name
from evaluator.formats.tfrecord import CONSTANT_FOOTER
from evaluator.sources.base import VALUE, Layout

RECORDS = 2**14
"""Records that are remembered."""


@dataclass(frozen=True, slots=True)
class Record:
    """Where the plain numbers of a record lie, relative to its first byte, and the bytes that say so."""

    length: int
    fixed: tuple[tuple[int, int], ...]
    expected: bytes
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    content: int
    size: int

    @classmethod
    def of(cls, found: Place, data: bytes, start: int, length: int) -> Record:
        """Note what was found out about a record."""
        footer = (length - len(CONSTANT_FOOTER), length)
        fixed = (*((first - start, last - start) for first, last in found.fixed), footer)
        expected = _laid(data, start, fixed)
        return cls(length, fixed, expected, found.dtype, found.shape, found.content_start - start, found.content_length)

    def fits(self, data: bytes, start: int, length: int) -> bool:
        """Whether a record is laid out in the same way."""
        return length == self.length and _laid(data, start, self.fixed) == self.expected


class Records:
    """What was found out about the entries of layouts: the next record of an entry is mostly laid out as the last."""

    def __init__(self) -> None:
        """No record was looked at yet."""
        self._known: dict[tuple[Layout, int], Record] = {}

    def find(self, layout: Layout, position: int, data: bytes, start: int, length: int) -> Record | None:
        """How a record is laid out; None for anything that has to be decoded with care."""
        known = self._known.get((layout, position))
        if known is not None and known.fits(data, start, length):
            return known
        found = _plain(layout, position, data, start, length)
        if found is None:
            return None
        if len(self._known) >= RECORDS:
            self._known.clear()
        record = self._known[layout, position] = Record.of(found, data, start, length)
        return record


def named(layout: Layout, position: int, saved: str) -> bool:
    """Whether a record's own name is the one its index entry promised."""
    name, reduction = parse_saved_name(saved)
    return name == layout.names[position] and (reduction or VALUE) == layout.kinds[position]


def _plain(layout: Layout, position: int, data: bytes, start: int, length: int) -> Place | None:
    """Where the plain numbers of a record lie; None for anything that has to be decoded with care."""
    try:
        found = locate(data, start, length)
    except FormatError:
        return None
    end = start + length
    constant = data[end - len(CONSTANT_FOOTER) : end] == CONSTANT_FOOTER
    return found if found is not None and constant and named(layout, position, found.name) else None


def _laid(data: bytes, start: int, spans: Sequence[tuple[int, int]]) -> bytes:
    return b"".join(data[start + first : start + last] for first, last in spans)
