"""Reading tensors out of event files: as few requests and as few bytes as possible, and never many bytes at once."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import FormatError, KeyMissing, KeyRefused, StorageError, Truncated
from evaluator.formats.tfrecord import HEADER_SIZE, record_size
from evaluator.sources.base import AlikeValues, FileValues, Layout, Positions
from evaluator.sources.event_templates import MOST_BEYOND, Chunk, Templates, Wanted
from evaluator.storage.base import Store

SPLIT_GAP = 2**20
"""Bytes that no rule needs are read over when fewer lie between two tensors: one request costs more than they do."""
AT_ONCE = 2**24
"""Bytes read with one request, gaps included, unless one record has more: then it is looked at before it is read."""
MOST_BYTES = 2**31
"""No record can be longer: a protobuf message has less than 2 GiB, and a false length must not fill the memory.

Source: protobuf's encoding guide, "Size limits".
"""
READINGS = 64
ONLY_SHAPE = "only its shape was saved"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where the entries of a layout lie: one record of an event file each (shape entries have none)."""

    key: str
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """A range of bytes to be read at once, and what is wanted of it."""

    first: int
    last: int
    inside: Positions
    """The positions whose records are in it."""
    wanted: Wanted

    @classmethod
    def of(
        cls, layout: Layout, place: Place, first: int, last: int, inside: Positions, groups: Sequence[Positions]
    ) -> _Stretch:
        """Where the wanted records lie within the range."""
        parts = groups if len(inside) == sum(map(len, groups)) else [group[np.isin(group, inside)] for group in groups]
        # the rest can only be let go when what is wanted is copied
        mostly_wanted = 2 * int(place.lengths[inside].sum()) > last - first
        return cls(first, last, inside, Wanted.of(layout, place.starts - first, place.lengths, parts, mostly_wanted))


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """What to read of files with the same entries at the same places.

    It holds what it is found by (`asked`), so that no other array can get the same identity.
    """

    asked: tuple[object, ...]
    shapes: dict[int, str]
    """Position -> why there is no value."""
    wanted: Positions
    large: Positions
    """Those whose records are looked at before they are read."""
    stretches: list[_Stretch]
    size: int

    @classmethod
    def of(cls, layout: Layout, place: Place, groups: Sequence[Positions]) -> _Reading:
        """Work it out."""
        wanted = np.concatenate([*groups, np.empty(0, np.int64)]).astype(np.int64, copy=False)
        shaped = wanted >= len(place.starts)
        shapes = dict.fromkeys(wanted[shaped].tolist(), ONLY_SHAPE)
        wanted = wanted[~shaped]
        lengths = place.lengths[wanted]
        # the sum of many lengths that cannot be true would not fit a number of 64 bits
        size = int(np.minimum(lengths, MOST_BYTES).sum())
        stretches = list(_stretches(layout, place, wanted, groups))
        asked = (layout, place.starts, place.lengths, *groups)
        return cls(asked, shapes, wanted, wanted[lengths > AT_ONCE], stretches, size)


class EventReader:
    """Reads tensors of step files whose bytes lie in event files."""

    def __init__(self, store: Store) -> None:
        """Nothing is known of any file yet."""
        self._store = store
        self._templates = Templates()
        self._readings: dict[tuple[int, ...], _Reading] = {}

    def read(self, layout: Layout, place: Place, groups: Sequence[Positions]) -> FileValues:
        """The values at these positions of the layout."""
        reading = self._reading(layout, place, groups)
        values = FileValues()
        values.problems.update(reading.shapes)
        stretches: Iterable[_Stretch] = reading.stretches
        if len(reading.large):
            doubted = self._doubted(layout, place, reading.large)
            values.problems.update(doubted)
            if doubted:
                wanted = reading.wanted[~np.isin(reading.wanted, list(doubted))]
                stretches = _stretches(layout, place, wanted, groups)
        room = MOST_BEYOND
        for stretch in stretches:
            inside = stretch.inside
            try:
                room = self._read_stretch(layout, place, stretch, values, room)
            except (KeyMissing, KeyRefused) as error:
                values.problems.update(dict.fromkeys(inside.tolist(), str(error)))
            except MemoryError:
                # the other tensors may be smaller
                what = f"{stretch.last - stretch.first} bytes from byte {stretch.first} on do not fit in memory"
                values.problems.update(dict.fromkeys(inside.tolist(), f"{place.key}: {what}"))
        return values

    def read_alike(self, layout: Layout, places: Sequence[Place], groups: Sequence[Positions]) -> AlikeValues:
        """The values of the leading files that can be cut along lines that are known already."""
        alike = AlikeValues()
        if not places:
            return alike
        starts, lengths = places[0].starts, places[0].lengths
        reading = self._reading(layout, places[0], groups)
        if reading.shapes or len(reading.large) or len(reading.stretches) != 1:
            return alike
        (stretch,) = reading.stretches
        cutting = self._templates.cutting(stretch.wanted, len(places))
        if cutting is None:
            return alike
        for place in places:
            if place.starts is not starts or place.lengths is not lengths:
                break
            try:
                data = self._store.read_range(place.key, stretch.first, stretch.last - stretch.first)
            except (StorageError, MemoryError):
                break  # who reads it alone is told why
            if not cutting.take(data):
                break
            alike.wall_times.append(_wall_time(data))
        alike.joined = cutting.joined()
        return alike

    def size_of(self, layout: Layout, place: Place, groups: Sequence[Positions]) -> int:
        """The length of the records at these positions; what is said to be longer than any can be is not read."""
        return self._reading(layout, place, groups).size

    def wall_time(self, place: Place) -> float | None:
        """When the first record was written, by the writer's clock."""
        try:
            return _wall_time(self._store.read_range(place.key, int(place.starts[0]), 21))
        except (KeyMissing, KeyRefused, IndexError):
            return None

    def _reading(self, layout: Layout, place: Place, groups: Sequence[Positions]) -> _Reading:
        """What to read; worked out once for files whose index entries are those of a former one, unchanged."""
        arrays = (place.starts, place.lengths, *groups)
        key = (id(layout), *map(id, arrays))
        found = self._readings.get(key)
        if found is None:
            if len(self._readings) >= READINGS:
                self._readings.clear()
            found = self._readings[key] = _Reading.of(layout, place, groups)
        return found

    def _read_stretch(self, layout: Layout, place: Place, stretch: _Stretch, values: FileValues, room: int) -> int:
        """Read one stretch of the file and take what is wanted out of it; what is left of the room for it."""
        data = self._store.read_range(place.key, stretch.first, stretch.last - stretch.first)
        if values.wall_time is None:
            values.wall_time = _wall_time(data)
        return self._templates.cut(layout, Chunk(place.key, data, stretch.wanted, room), values)

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


def _stretches(layout: Layout, place: Place, wanted: Positions, groups: Sequence[Positions]) -> Iterator[_Stretch]:
    """What to read of a file, in its order."""
    for first, last, inside in _ranges(place, wanted):
        yield _Stretch.of(layout, place, first, last, inside, groups)


def _ranges(place: Place, wanted: Positions) -> Iterator[tuple[int, int, Positions]]:
    """The byte ranges to read: as few as possible without reading over large gaps, and none too large."""
    if not len(wanted):
        return
    starts = place.starts[wanted]
    ends = starts + place.lengths[wanted]
    first, last = int(starts.min()), int(ends.max())
    if last - first <= SPLIT_GAP:
        yield first, last, wanted
        return
    order = np.argsort(starts, kind="stable")
    reach = np.maximum.accumulate(ends[order])
    gaps = starts[order][1:] - reach[:-1]
    cuts = np.flatnonzero(gaps >= SPLIT_GAP) + 1
    for part in np.split(order, cuts):
        first, last = int(starts[part].min()), int(ends[part].max())
        if last - first <= AT_ONCE:
            yield first, last, wanted[np.sort(part)]
            continue
        begin, last = 0, int(ends[part[0]])
        for number in range(1, len(part) + 1):
            further = int(ends[part[number]]) if number < len(part) else math.inf
            if max(further, last) - int(starts[part[begin]]) > AT_ONCE:
                yield int(starts[part[begin]]), last, wanted[np.sort(part[begin:number])]
                begin, last = number, 0
            if number < len(part):
                last = max(last, int(further))


def _wall_time(data: bytes) -> float | None:
    """The first field of the first record, when it is the wall time (field 1, eight bytes), as every writer has it."""
    if len(data) < 21 or data[12] != 0x09:
        return None
    seconds = float(struct.unpack_from("<d", data, 13)[0])
    return seconds if math.isfinite(seconds) else None
