"""Reading tensors out of event files: as few requests and as few bytes as possible, and never many bytes at once."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import FormatError, KeyMissing, KeyRefused, Truncated
from evaluator.formats.tfrecord import HEADER_SIZE, record_size
from evaluator.sources.base import FileValues, Layout, Positions
from evaluator.sources.event_templates import MOST_BEYOND, Chunk, Templates
from evaluator.storage.base import Store

SPLIT_GAP = 2**20
"""Bytes that no rule needs are read over when fewer lie between two tensors: one request costs more than they do."""
AT_ONCE = 2**24
"""Bytes read with one request, gaps included, unless one record has more: then it is looked at before it is read."""
MOST_BYTES = 2**31
"""No record can be longer: a protobuf message has less than 2 GiB, and a false length must not fill the memory.

Source: protobuf's encoding guide, "Size limits".
"""
ONLY_SHAPE = "only its shape was saved"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where the entries of a layout lie: one record of an event file each (shape entries have none)."""

    key: str
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """A range of bytes to be read at once, and the positions whose records are in it."""

    first: int
    last: int
    inside: Positions


class EventReader:
    """Reads tensors of step files whose bytes lie in event files."""

    def __init__(self, store: Store) -> None:
        """Nothing is known of any file yet."""
        self._store = store
        self._templates = Templates()

    def read(self, layout: Layout, place: Place, groups: Sequence[Positions]) -> FileValues:
        """The values at these positions of the layout."""
        values = FileValues()
        wanted = np.concatenate([*groups, np.empty(0, np.int64)]).astype(np.int64, copy=False)
        shapes = wanted >= len(place.starts)
        values.problems.update(dict.fromkeys(wanted[shapes].tolist(), ONLY_SHAPE))
        wanted = wanted[~shapes]
        large = place.lengths[wanted] > AT_ONCE
        if large.any():
            doubted = self._doubted(layout, place, wanted[large])
            values.problems.update(doubted)
            wanted = wanted[~np.isin(wanted, list(doubted))]
        asked = sum(map(len, groups))
        room = MOST_BEYOND
        for stretch in _stretches(place, wanted):
            inside = stretch.inside
            parts = groups if len(inside) == asked else [group[np.isin(group, inside)] for group in groups]
            try:
                room = self._read_stretch(layout, place, parts, stretch, values, room)
            except (KeyMissing, KeyRefused) as error:
                values.problems.update(dict.fromkeys(inside.tolist(), str(error)))
            except MemoryError:
                # the other tensors may be smaller
                what = f"{stretch.last - stretch.first} bytes from byte {stretch.first} on do not fit in memory"
                values.problems.update(dict.fromkeys(inside.tolist(), f"{place.key}: {what}"))
        return values

    def wall_time(self, place: Place) -> float | None:
        """When the first record was written, by the writer's clock."""
        try:
            return _wall_time(self._store.read_range(place.key, int(place.starts[0]), 21))
        except (KeyMissing, KeyRefused, IndexError):
            return None

    def _read_stretch(
        self, layout: Layout, place: Place, parts: Sequence[Positions], stretch: _Stretch, values: FileValues, room: int
    ) -> int:
        """Read one stretch of the file and take what is wanted out of it; what is left of the room for it."""
        size = stretch.last - stretch.first
        data = self._store.read_range(place.key, stretch.first, size)
        if values.wall_time is None:
            values.wall_time = _wall_time(data)
        mostly_wanted = 2 * int(place.lengths[stretch.inside].sum()) > size
        chunk = Chunk(place.key, data, place.starts - stretch.first, place.lengths, parts, mostly_wanted, room)
        return self._templates.cut(layout, chunk, values)

    def _doubted(self, layout: Layout, place: Place, positions: Positions) -> dict[int, str]:
        """Of large records, those that cannot be what the index file says, by their header and the file's size."""
        doubted: dict[int, str] = {}
        size: int | None = None
        for position in positions.tolist():
            start, length = int(place.starts[position]), int(place.lengths[position])
            where = f"{place.key}: {layout.names[position]!r}"
            try:
                if length >= MOST_BYTES:
                    raise FormatError(where, f"is said to take {length} bytes", f"a record has less than {MOST_BYTES}")
                if size is None:
                    entry = self._store.stat(place.key)
                    size = 0 if entry is None else entry.size
                header = self._store.read_range(place.key, start, HEADER_SIZE)
                if start + length > size:
                    raise Truncated(where, f"ends {start + length - size} bytes early", "the file is cut off")
                record_size(header, where, start, length)
            except (FormatError, KeyMissing, KeyRefused) as error:
                doubted[position] = str(error)
        return doubted


def _stretches(place: Place, wanted: Positions) -> Iterator[_Stretch]:
    """The byte ranges to read: as few as possible without reading over large gaps, and none too large."""
    if not len(wanted):
        return
    starts = place.starts[wanted]
    ends = starts + place.lengths[wanted]
    first, last = int(starts.min()), int(ends.max())
    if last - first <= SPLIT_GAP:
        yield _Stretch(first, last, wanted)
        return
    order = np.argsort(starts, kind="stable")
    reach = np.maximum.accumulate(ends[order])
    gaps = starts[order][1:] - reach[:-1]
    cuts = np.flatnonzero(gaps >= SPLIT_GAP) + 1
    for part in np.split(order, cuts):
        first, last = int(starts[part].min()), int(ends[part].max())
        if last - first <= AT_ONCE:
            yield _Stretch(first, last, wanted[np.sort(part)])
            continue
        begin, last = 0, int(ends[part[0]])
        for number in range(1, len(part) + 1):
            further = int(ends[part[number]]) if number < len(part) else math.inf
            if max(further, last) - int(starts[part[begin]]) > AT_ONCE:
                yield _Stretch(int(starts[part[begin]]), last, wanted[np.sort(part[begin:number])])
                begin, last = number, 0
            if number < len(part):
                last = max(last, int(further))


def _wall_time(data: bytes) -> float | None:
    """The first field of the first record, when it is the wall time (field 1, eight bytes), as every writer has it."""
    if len(data) < 21 or data[12] != 0x09:
        return None
    seconds = float(struct.unpack_from("<d", data, 13)[0])
    return seconds if math.isfinite(seconds) else None
