"""Reading tensors out of event files: as few bytes as possible, and many tensors with one array operation.

Consecutive event files of a worker mostly differ in nothing but the numbers themselves. What was found out about one
file (where which content lies) is kept as a template; a later file is only compared with it, byte for byte at the
places that decide, and then cut along the same lines.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import FormatError, KeyMissing, KeyRefused, Truncated
from evaluator.formats.event import Place as Located
from evaluator.formats.event import decode_event, locate
from evaluator.formats.reduction_names import parse_saved_name
from evaluator.formats.tfrecord import CONSTANT_FOOTER, read_record
from evaluator.segments import Array, Segments
from evaluator.sources.base import VALUE, FileValues, Layout, Positions, join
from evaluator.storage.base import Store

SPLIT_GAP = 2**20
"""Bytes that no rule needs are read over when fewer lie between two tensors: one request costs more than they do."""
JOIN_BELOW = 2**16
"""Tensors of more bytes stay where they were read; copying them together would cost more than it saves."""
TEMPLATES = 64
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


@dataclass(frozen=True, slots=True)
class _Cut:
    """Tensors of one group and type: where their contents lie relative to the first byte read."""

    group: int
    positions: Positions
    dtype: np.dtype[np.generic]
    spans: list[tuple[int, int]]
    counts: NDArray[np.int64]
    shapes: list[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Template:
    """What must be equal in a file (`checked` places hold `expected`) for it to be cut along `cuts`."""

    reach: int
    """How many bytes it takes to check."""
    checked: NDArray[np.int64]
    expected: NDArray[np.uint8]
    cuts: list[_Cut]
    odd: list[Positions]
    """Per group what is not plain numbers between constant footers and is decoded one by one."""


class EventReader:
    """Reads tensors of step files whose bytes lie in event files."""

    def __init__(self, store: Store) -> None:
        """No template is known yet."""
        self._store = store
        self._templates: dict[tuple[object, ...], _Template] = {}

    def read(self, layout: Layout, place: Place, groups: Sequence[Positions]) -> FileValues:
        """The values at these positions of the layout."""
        values = FileValues()
        wanted = np.concatenate([*groups, np.empty(0, np.int64)]).astype(np.int64, copy=False)
        shapes = wanted >= len(place.starts)
        values.problems.update(dict.fromkeys(wanted[shapes].tolist(), ONLY_SHAPE))
        wanted = wanted[~shapes]
        long = place.lengths[wanted] >= MOST_BYTES
        for position in wanted[long].tolist():
            what = f"{layout.names[position]!r} is said to take {place.lengths[position]} bytes"
            values.problems[position] = f"{place.key}: {what}; a record has less than {MOST_BYTES}"
        wanted = wanted[~long]
        if len(wanted):
            asked = sum(map(len, groups))
            for stretch in _stretches(place, wanted):
                inside = stretch.inside
                parts = groups if len(inside) == asked else [group[np.isin(group, inside)] for group in groups]
                self._read_stretch(layout, place, parts, stretch, values)
        return values

    def wall_time(self, place: Place) -> float | None:
        """When the first record was written, by the writer's clock."""
        try:
            return _wall_time(self._store.read_range(place.key, int(place.starts[0]), 21))
        except (KeyMissing, KeyRefused, IndexError):
            return None

    def _read_stretch(
        self, layout: Layout, place: Place, parts: Sequence[Positions], stretch: _Stretch, values: FileValues
    ) -> None:
        """Read one stretch of the file and take what is wanted out of it."""
        first, inside = stretch.first, stretch.inside
        try:
            data = self._store.read_range(place.key, first, stretch.last - first)
        except (KeyMissing, KeyRefused) as error:
            values.problems.update(dict.fromkeys(inside.tolist(), str(error)))
            return
        if values.wall_time is None:
            values.wall_time = _wall_time(data)
        where = _key(place.starts[inside] - first) + _key(place.lengths[inside])
        key = (layout, where, *map(_key, parts))
        template = self._templates.get(key)
        fits = template is not None and _fits(template, data)
        if template is None or not fits:
            template = self._learn(layout, place, parts, data, first)
        _cut(template, data, values)
        sound = _decode_each(layout, place, template.odd, data, first, values)
        # What was learned from a damaged file would make its sound successors slow.
        if sound and not fits:
            if len(self._templates) >= TEMPLATES:
                self._templates.clear()
            self._templates[key] = template

    def _learn(self, layout: Layout, place: Place, parts: Sequence[Positions], data: bytes, first: int) -> _Template:
        """Find out how a file is laid out."""
        checked: list[range] = []
        bundles: dict[tuple[int, str, int], list[tuple[int, int, int, tuple[int, ...]]]] = {}
        odd: list[list[int]] = [[] for _ in parts]
        for number, part in enumerate(parts):
            for position in part.tolist():
                start, length = int(place.starts[position]) - first, int(place.lengths[position])
                found = _plain(layout, position, data, start, length)
                if found is None:
                    odd[number].append(position)
                    continue
                checked += [range(*span) for span in found.fixed]
                checked.append(range(start + length - len(CONSTANT_FOOTER), start + length))
                alone = 0 if found.content_length < JOIN_BELOW else position + 1
                stop = found.content_start + found.content_length
                bundle = bundles.setdefault((number, found.dtype.str, alone), [])
                bundle.append((position, found.content_start, stop, found.shape))
        places = np.concatenate([*(np.arange(span.start, span.stop) for span in checked), np.empty(0, np.int64)])
        places = places.astype(np.int64, copy=False)
        expected = np.frombuffer(data, np.uint8)[places]
        cuts = [
            _Cut(
                group,
                np.array([position for position, *_ in bundle], np.int64),
                np.dtype(dtype),
                [(start, stop) for _, start, stop, _ in bundle],
                np.array([(stop - start) // np.dtype(dtype).itemsize for _, start, stop, _ in bundle], np.int64),
                [shape for *_, shape in bundle],
            )
            for (group, dtype, _), bundle in bundles.items()
        ]
        reach = int(places.max(initial=-1)) + 1
        return _Template(reach, places, expected, cuts, [np.array(positions, np.int64) for positions in odd])


def _fits(template: _Template, data: bytes) -> bool:
    """Whether a file can be cut along the template."""
    if len(data) < template.reach:
        return False
    return bool((np.frombuffer(data, np.uint8)[template.checked] == template.expected).all())


def _cut(template: _Template, data: bytes, values: FileValues) -> None:
    view = memoryview(data)
    for cut in template.cuts:
        if len(cut.spans) == 1:
            start, stop = cut.spans[0]
            flat = np.frombuffer(view[start:stop], cut.dtype)
        else:
            flat = np.frombuffer(b"".join([view[start:stop] for start, stop in cut.spans]), cut.dtype)
        values.joined.append((cut.group, cut.positions, Segments(flat, cut.counts, cut.shapes)))


def _decode_each(
    layout: Layout, place: Place, parts: Sequence[Positions], data: bytes, first: int, values: FileValues
) -> bool:
    """The slow way, one tensor after the other, for text, unusual encodings and damaged records.

    Returns:
        Whether all could be read.
    """
    arrays: dict[int, Array] = {}
    sound = True
    for position in np.concatenate(parts).tolist():
        start, length = int(place.starts[position]) - first, int(place.lengths[position])
        where = f"{place.key}: {layout.names[position]!r}"
        try:
            if start + length > len(data):
                raise Truncated(where, f"ends {start + length - len(data)} bytes early", "the file is cut off")
            event = decode_event(read_record(data, start, length, where), where)
            if event is None or not _named(layout, position, event.name):
                found = "no tensor" if event is None else repr(event.name)
                raise FormatError(where, f"the record holds {found}", "the file was replaced after it was indexed")
        except FormatError as error:
            values.problems[position] = str(error)
            sound = False
        else:
            arrays[position] = event.values
    join(arrays, parts, values)
    return sound


def _plain(layout: Layout, position: int, data: bytes, start: int, length: int) -> Located | None:
    """Where the plain numbers of a record lie; None for anything that has to be decoded with care."""
    try:
        found = locate(data, start, length)
    except FormatError:
        return None
    end = start + length
    constant = data[end - len(CONSTANT_FOOTER) : end] == CONSTANT_FOOTER
    return found if found is not None and constant and _named(layout, position, found.name) else None


def _named(layout: Layout, position: int, saved: str) -> bool:
    """Whether a record's own name is the one its index entry promised."""
    name, reduction = parse_saved_name(saved)
    return name == layout.names[position] and (reduction or VALUE) == layout.kinds[position]


def _stretches(place: Place, wanted: Positions) -> list[_Stretch]:
    """The byte ranges to read: as few as possible without reading over large gaps."""
    starts = place.starts[wanted]
    ends = starts + place.lengths[wanted]
    order = np.argsort(starts, kind="stable")
    reach = np.maximum.accumulate(ends[order])
    gaps = starts[order][1:] - reach[:-1]
    cuts = np.flatnonzero(gaps >= SPLIT_GAP) + 1
    return [
        _Stretch(int(starts[part].min()), int(ends[part].max()), wanted[np.sort(part)])
        for part in np.split(order, cuts)
    ]


def _key(numbers: NDArray[np.int64]) -> bytes:
    return np.ascontiguousarray(numbers).tobytes()


def _wall_time(data: bytes) -> float | None:
    """The first field of the first record, when it is the wall time (field 1, eight bytes), as every writer has it."""
    if len(data) < 21 or data[12] != 0x09:
        return None
    seconds = float(struct.unpack_from("<d", data, 13)[0])
    return seconds if math.isfinite(seconds) else None
