"""Cutting tensors out of the bytes of an event file: many with one array operation where files are laid out alike.

Consecutive event files of a worker mostly differ in nothing but the numbers themselves. What was found out about one
file (where which content lies) is kept as a template; a later file is only compared with it, byte for byte at the
places that decide, and then cut along the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import FormatError, Truncated
from evaluator.formats.event import decode_event
from evaluator.formats.tfrecord import read_record
from evaluator.segments import Array, Segments
from evaluator.sources.base import FileValues, Layout, Positions, join
from evaluator.sources.event_records import Records, named
from evaluator.sources.pieces import Pieces

JOIN_BELOW = 2**16
"""Tensors of more bytes stay where they were read; copying them together would cost more than it saves."""
TEMPLATES = 64
MOST_BEYOND = 2**25
"""Bytes that the tensors of one read may take beyond EXPANSION times their records: a record of 50 bytes can stand for
a tensor of millions of equal values, and a file holds many records."""
EXPANSION = 8
"""Times its record that a decoded tensor may always take: a byte of a packed number becomes eight."""


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """The records that are wanted of a range of bytes, and where they lie in it."""

    starts: NDArray[np.int64]
    """Per position of the layout, where its record begins, relative to the first byte of the range."""
    lengths: NDArray[np.int64]
    parts: Sequence[Positions]
    """Per group the wanted positions whose records are in the range."""
    mostly: bool
    """Whether little is read over; if not, what is wanted is copied so that the rest can be let go."""
    key: tuple[object, ...]
    """The same for all ranges in which the same is wanted at the same places."""

    @classmethod
    def of(
        cls, layout: Layout, starts: NDArray[np.int64], lengths: NDArray[np.int64],
        parts: Sequence[Positions], mostly: bool,
    ) -> Wanted:  # fmt: skip
        """Note what is wanted."""
        inside = np.concatenate(parts)
        key = (layout, *map(_key, (starts[inside], lengths[inside], *parts)))
        return cls(starts, lengths, parts, mostly, key)


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Bytes of an event file, and the records that are wanted of them."""

    key: str
    data: bytes
    wanted: Wanted
    room: int = MOST_BEYOND
    """What is left of the bytes that decoded tensors may take beyond their records."""

    def record(self, position: int) -> tuple[int, int]:
        """Where a record lies: its start and its length."""
        return int(self.wanted.starts[position]), int(self.wanted.lengths[position])


@dataclass(frozen=True, slots=True)
class _Cut:
    """Tensors of one group and type: where their contents lie relative to the first byte read."""

    group: int
    positions: Positions
    dtype: np.dtype[np.generic]
    contents: Pieces
    counts: NDArray[np.int64]
    shapes: list[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Template:
    """What must be equal in a file (`checked` places hold `expected`) for it to be cut along `cuts`."""

    reach: int
    """How many bytes it takes to check."""
    checked: NDArray[np.int64]
    expected: bytes
    cuts: list[_Cut]
    odd: list[Positions]
    """Per group what is not plain numbers between constant footers and is decoded one by one; empty without any."""


class Templates:
    """What was found out about the files so far."""

    def __init__(self) -> None:
        """No template is known yet."""
        self._known: dict[tuple[object, ...], _Template] = {}
        self._records = Records()

    def cut(self, layout: Layout, chunk: Chunk, values: FileValues) -> int:
        """Take what is wanted out of the bytes; what is left of the chunk's room."""
        template = self._known.get(chunk.wanted.key)
        fits = template is not None and _fits(template, chunk.data)
        if template is None or not fits:
            template = self._learn(layout, chunk)
        _cut(template, chunk, values)
        sound, room = _decode_each(layout, chunk, template.odd, values) if template.odd else (True, chunk.room)
        # What was learned from a damaged file would make its sound successors slow.
        if sound and not fits:
            if len(self._known) >= TEMPLATES:
                self._known.clear()
            self._known[chunk.wanted.key] = template
        return room

    def cutting(self, wanted: Wanted, files: int) -> Cutting | None:
        """What cuts so many files in which the same is wanted; None where nothing is known of such files."""
        template = self._known.get(wanted.key)
        return None if template is None or template.odd else Cutting(template, files)

    def _learn(self, layout: Layout, chunk: Chunk) -> _Template:
        """Find out how a file is laid out."""
        checked: list[range] = []
        bundles: dict[tuple[int, str, tuple[int, int]], list[tuple[int, int, int, tuple[int, ...]]]] = {}
        odd: list[list[int]] = [[] for _ in chunk.wanted.parts]
        for number, part in enumerate(chunk.wanted.parts):
            for position in part.tolist():
                start, length = chunk.record(position)
                record = self._records.find(layout, position, chunk.data, start, length)
                if record is None:
                    odd[number].append(position)
                    continue
                checked += [range(start + first, start + last) for first, last in record.fixed]
                # of one size, so that no number depends on what a tensor happens to be joined with
                bundled = (record.size, 0) if record.size < JOIN_BELOW else (record.size, position + 1)
                begin = start + record.content
                bundle = bundles.setdefault((number, record.dtype.str, bundled), [])
                bundle.append((position, begin, begin + record.size, record.shape))
        places = np.concatenate([*(np.arange(span.start, span.stop) for span in checked), np.empty(0, np.int64)])
        places = places.astype(np.int64, copy=False)
        expected = np.frombuffer(chunk.data, np.uint8)[places].tobytes()
        cuts = [
            _Cut(
                group,
                np.array([position for position, *_ in bundle], np.int64),
                np.dtype(dtype),
                Pieces([(start, stop) for _, start, stop, _ in bundle]),
                np.array([(stop - start) // np.dtype(dtype).itemsize for _, start, stop, _ in bundle], np.int64),
                [shape for *_, shape in bundle],
            )
            for (group, dtype, _), bundle in bundles.items()
        ]
        reach = int(places.max(initial=-1)) + 1
        rest = [np.array(positions, np.int64) for positions in odd] if any(odd) else []
        return _Template(reach, places, expected, cuts, rest)


class Cutting:
    """Cuts files that are laid out alike one after the other, with their values laid end to end."""

    def __init__(self, template: _Template, files: int) -> None:
        """Make room for at most so many files."""
        self._template = template
        self._files = 0
        self._rooms = [np.empty((files, cut.contents.size), np.uint8) for cut in template.cuts]

    def take(self, data: bytes) -> bool:
        """Cut the bytes of one more file, unless it is laid out in another way."""
        if not _fits(self._template, data):
            return False
        for cut, room in zip(self._template.cuts, self._rooms, strict=True):
            cut.contents.lay(data, room[self._files])
        self._files += 1
        return True

    def joined(self) -> list[tuple[int, Positions, Segments]]:
        """Per group, type and size the positions in each file, and the values of all files, file after file."""
        joined = []
        for cut, room in zip(self._template.cuts, self._rooms, strict=True):
            values = room[: self._files]
            values.flags.writeable = False
            counts, shapes = np.tile(cut.counts, self._files), cut.shapes * self._files
            joined.append((cut.group, cut.positions, Segments(values.reshape(-1).view(cut.dtype), counts, shapes)))
        return joined


def _fits(template: _Template, data: bytes) -> bool:
    """Whether a file can be cut along the template."""
    if len(data) < template.reach:
        return False
    return np.frombuffer(data, np.uint8).take(template.checked).tobytes() == template.expected


def _cut(template: _Template, chunk: Chunk, values: FileValues) -> None:
    for cut in template.cuts:
        flat = cut.contents.of(chunk.data, copied=not chunk.wanted.mostly).view(cut.dtype)
        if flat.dtype == np.float64 and not flat.flags.aligned:
            # where they lie in memory, which depends on what else is read, would decide how they are summed up
            flat = flat.copy()
        values.joined.append((cut.group, cut.positions, Segments(flat, cut.counts, cut.shapes)))


def _decode_each(layout: Layout, chunk: Chunk, parts: Sequence[Positions], values: FileValues) -> tuple[bool, int]:
    """The slow way, one tensor after the other, for text, unusual encodings and damaged records.

    Returns:
        Whether all could be read, and what is left of the room.
    """
    arrays: dict[int, Array] = {}
    sound, room = True, chunk.room
    for position in np.concatenate(parts).tolist():
        start, length = chunk.record(position)
        where = f"{chunk.key}: {layout.names[position]!r}"
        try:
            if start + length > len(chunk.data):
                raise Truncated(where, f"ends {start + length - len(chunk.data)} bytes early", "the file is cut off")
            # whatever is computed of them takes eight bytes for each
            most = (room + EXPANSION * length) // 8
            event = decode_event(read_record(chunk.data, start, length, where), where, most)
            if event is None or not named(layout, position, event.name):
                found = "no tensor" if event is None else repr(event.name)
                raise FormatError(where, f"the record holds {found}", "the file was replaced after it was indexed")
            beyond = max(event.values.nbytes, 8 * event.values.size) - EXPANSION * length
            if beyond > room:
                what = f"takes {event.values.nbytes} bytes, its record {length}"
                raise FormatError(where, what, f"there is room for {room}")
            room -= max(0, beyond)
        except FormatError as error:
            values.problems[position] = str(error)
            sound = False
        else:
            arrays[position] = event.values
    join(arrays, parts, values)
    return sound, room


def _key(numbers: NDArray[np.int64]) -> bytes:
    return np.ascontiguousarray(numbers).tobytes()
