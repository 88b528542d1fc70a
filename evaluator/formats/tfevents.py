"""Event files of TensorBoard: cut into records while they grow, and the values that one event holds.

Source:
    TensorFlow's event.proto, summary.proto (field numbers) and record_writer.cc (framing, as in trials of smdebug, but
    with true checksums); tensorboard's plugins/scalar/metadata.py (plugin "scalars").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import FormatError
from evaluator.formats import tensor, wire
from evaluator.formats.tfrecord import FOOTER_SIZE, HEADER_SIZE, masked_crc, record_size

WALL_TIME, STEP, SUMMARY, SESSION_LOG = 1, 2, 5, 7
"""Field numbers of Event."""

TAG, SIMPLE_VALUE, TENSOR, METADATA = 1, 2, 8, 9
"""Field numbers of Summary.Value."""

OTHER_KINDS = {3: "histograms", 4: "images", 5: "histograms", 6: "audio"}
"""Fields of Summary.Value with what is no tensor -> the plugin that shows it."""

START = 1
"""SessionLog.status of a session that begins: what was logged at its step or later is void."""

SCALARS = "scalars"

MOST_RECORD = 64 * 2**20
"""Larger records are not read; ours."""

_EVENT_KINDS = {WALL_TIME: wire.FIXED64, STEP: wire.VARINT, SUMMARY: wire.BYTES, SESSION_LOG: wire.BYTES}
_BYTES = {1: wire.BYTES}
_STATUS = {1: wire.VARINT}
_VALUE_KINDS = {TAG: wire.BYTES, SIMPLE_VALUE: wire.FIXED32, TENSOR: wire.BYTES, METADATA: wire.BYTES}


class Record(NamedTuple):
    """One record: where it begins, how long it is with its frame, and what it holds or why that cannot be used."""

    start: int
    length: int
    payload: bytes
    problem: str = ""


@dataclass(frozen=True, slots=True)
class LoggedValue:
    """One value of an event.

    Args:
        number: the value itself, where it is one number.
        plugin: what it is for, as far as this record says; later records of a tag need not repeat it.
        tensor: where an array lies in the payload.
        kind: "scalar", "tensor", "text", or the plugin of what is no tensor.
        size: bytes of the array.
    """

    tag: str
    plugin: str
    kind: str
    number: float | None = None
    tensor: tuple[int, int] | None = None
    size: int = 0


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One event: whether a session begins with it, and its values."""

    step: int
    wall_time: float
    starts: bool
    values: tuple[LoggedValue, ...]


class RecordCutter:
    """Cuts the bytes of a growing file into records.

    A record with a wrong checksum of its content is passed on with the problem, and the next one follows. After a wrong
    header nobody knows where the next one begins, so `stuck` says where the readable part ends.
    """

    def __init__(self) -> None:
        """At the beginning of the file."""
        self.at = 0
        """Where the next record begins."""
        self.stuck = ""
        """Why nothing behind `at` can be read."""
        self._pending = bytearray()
        self._skip = 0

    def feed(self, piece: bytes) -> Iterator[Record]:
        """The records that are whole with these bytes, which follow those before."""
        if self._skip:
            passed = min(self._skip, len(piece))
            self._skip -= passed
            piece = piece[passed:]
        self._pending += piece
        begin = 0
        while not self.stuck and len(self._pending) - begin >= HEADER_SIZE:
            try:
                size = record_size(bytes(self._pending[begin : begin + HEADER_SIZE]), "", self.at)
            except FormatError as error:
                self.stuck = f"{error.mistake.what}; {error.mistake.would_be_right}; nothing behind it is read"
                break
            if size > MOST_RECORD:
                yield Record(self.at, size, b"", f"has {size} bytes; at most {MOST_RECORD} are read")
                left = len(self._pending) - begin
                self._skip, begin = max(0, size - left), begin + min(size, left)
                self.at += size
                continue
            if len(self._pending) - begin < size:
                break
            payload = bytes(self._pending[begin + HEADER_SIZE : begin + size - FOOTER_SIZE])
            footer = int.from_bytes(self._pending[begin + size - FOOTER_SIZE : begin + size], "little")
            right = masked_crc(payload)
            wrong = f"the checksum of the payload is 0x{footer:08x}; it should be 0x{right:08x}"
            yield Record(self.at, size, payload, wrong if footer != right else "")
            self.at += size
            begin += size
        if self.stuck:
            self._pending.clear()
        else:
            del self._pending[:begin]

    def resume(self, header: bytes) -> bool:
        """Whether a header lies at `at` by now: a network folder can show zeros where bytes are on their way."""
        try:
            record_size(header)
        except FormatError:
            return False
        self.stuck = ""
        return True


def parse_event(payload: bytes, where: str) -> LoggedEvent:
    """What an event holds; its arrays are only located. Raises FormatError."""
    event = wire.latest(payload, 0, len(payload), _EVENT_KINDS, where)
    step = wire.signed(event[STEP].value) if STEP in event else 0
    wall_time = float(struct.unpack_from("<d", payload, event[WALL_TIME].start)[0]) if WALL_TIME in event else 0.0
    session = event.get(SESSION_LOG)
    status = wire.latest(payload, session.start, session.stop, _STATUS, where).get(1) if session is not None else None
    summary = event.get(SUMMARY)
    items = wire.fields(payload, summary.start, summary.stop, where) if summary is not None else ()
    values = tuple(_value(payload, wire.expect(item, wire.BYTES, where), where) for item in items if item.number == 1)
    return LoggedEvent(step, wall_time, status is not None and status.value == START, values)


def array_of(payload: bytes, number: int, where: str) -> NDArray[Any]:
    """The array of one value of an event. Raises FormatError."""
    found = parse_event(payload, where).values[number].tensor
    if found is None:
        raise FormatError(where, "holds no array", "one is there when the record was read first")
    return tensor.decode(payload, tensor.parse(payload, *found, where), where)


def _value(payload: bytes, item: wire.Field, where: str) -> LoggedValue:
    found = wire.latest(payload, item.start, item.stop, _VALUE_KINDS, where)
    tag = found.get(TAG)
    if tag is None or tag.start == tag.stop:
        raise FormatError(where, "a value has no tag", "it should be the name of what is logged")
    name = wire.text(payload[tag.start : tag.stop], where, "the tag")
    plugin = _plugin(payload, found.get(METADATA), where)
    simple, stored = found.get(SIMPLE_VALUE), found.get(TENSOR)
    if simple is not None:
        return LoggedValue(name, plugin, "scalar", float(struct.unpack_from("<f", payload, simple.start)[0]))
    if stored is not None:
        return _tensor_value(payload, stored, name, plugin, where)
    others = (OTHER_KINDS.get(one.number) for one in wire.fields(payload, item.start, item.stop, where))
    return LoggedValue(name, plugin, next((one for one in others if one is not None), "nothing"))


def _tensor_value(payload: bytes, stored: wire.Field, name: str, plugin: str, where: str) -> LoggedValue:
    place = f"{where}: {name!r}"
    parsed = tensor.parse(payload, stored.start, stored.stop, place)
    if parsed.code in tensor.TEXT_CODES:
        return LoggedValue(name, plugin, plugin or "text")
    count = parsed.size(place)
    if count == 1:
        value = tensor.decode(payload, parsed, place).reshape(())
        if value.dtype.kind != "c":
            return LoggedValue(name, plugin, "scalar", float(value), (stored.start, stored.stop), value.nbytes)
    size = count * np.dtype(tensor.DTYPES[parsed.code]).itemsize
    return LoggedValue(name, plugin, "tensor", None, (stored.start, stored.stop), size)


def _plugin(payload: bytes, metadata: wire.Field | None, where: str) -> str:
    if metadata is None:
        return ""
    data = wire.latest(payload, metadata.start, metadata.stop, _BYTES, where).get(1)
    name = wire.latest(payload, data.start, data.stop, _BYTES, where).get(1) if data is not None else None
    return "" if name is None else wire.text(payload[name.start : name.stop], where, "the plugin's name")
