"""Reads and writes the few parts of the protobuf wire format that event files use.

Source:
    protobuf encoding, "Protocol Buffers: Encoding"; field numbers are in the modules that use this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import FormatError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
_MOST_VARINT_BYTES = 10
"""A varint holds 64 bits, 7 in each byte. Source: protobuf encoding, "Base 128 Varints"."""

MOST_PACKED = 1 << 22
"""Bytes of packed numbers; ours, each takes 40 while they are decoded. Large tensors are saved as raw content."""


class Field(NamedTuple):
    """One field as it stands in the data; the positions are absolute."""

    number: int
    wire: int
    start: int
    """Where its content begins: after the tag, and after the length where there is one."""
    stop: int
    value: int
    """The number of a VARINT field as unsigned 64 bits; 0 for the other kinds."""


def fields(data: bytes | memoryview, start: int, stop: int, where: str) -> Iterator[Field]:
    """The fields of the message that lies between `start` and `stop`, in the order written.

    Raises:
        FormatError: the bytes are not a protobuf message.
    """
    at = start
    while at < stop:
        tag = data[at]
        # Nearly all tags and lengths have one byte; a call for each would take half of the time.
        if tag < 0x80:
            at += 1
        else:
            tag, at = varint(data, at, stop, where)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise FormatError(where, f"protobuf field number {number} at byte {at}", "1 to 536870911 would be right")
        begin, value = at, 0
        if wire == VARINT:
            value, at = varint(data, at, stop, where)
        elif wire == BYTES:
            size, begin = varint(data, at, stop, where)
            at = begin + size
        elif wire in _FIXED_SIZES:
            at += _FIXED_SIZES[wire]
        else:
            raise FormatError(where, f"protobuf wire type {wire} at byte {at}", "0, 1, 2 or 5 would be right")
        if at > stop:
            raise FormatError(where, f"field {number} ends at byte {at}", f"its message ends at byte {stop}")
        yield Field(number, wire, begin, at, value)


def varint(data: bytes | memoryview, at: int, stop: int, where: str) -> tuple[int, int]:
    """The unsigned number at `at` and the position after it."""
    value = shift = 0
    last = min(stop, at + _MOST_VARINT_BYTES)
    begin = at
    while at < last:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, at
        shift += 7
    raise FormatError(
        where, f"the number at byte {begin} does not end", "at most 64 bits within its message would be right"
    )


def latest(data: bytes | memoryview, start: int, stop: int, kinds: Mapping[int, int], where: str) -> dict[int, Field]:
    """The wanted fields of a message by number, the last one where a field is repeated.

    What is wanted is in `kinds`: field number -> wire type that it must have.
    """
    found = {}
    for item in fields(data, start, stop, where):
        if item.number in kinds:
            found[item.number] = expect(item, kinds[item.number], where)
    return found


def expect(field: Field, wire: int, where: str) -> Field:
    """The field itself, when it is of the kind that its number demands."""
    if field.wire != wire:
        raise FormatError(where, f"field {field.number} has wire type {field.wire}", f"wire type {wire} would be right")
    return field


def joined(data: bytes | memoryview, items: Iterable[Field], wire: int, where: str) -> bytes:
    """The values of a repeated number field one behind the other, whether they were packed or not."""
    packed = (item if item.wire == BYTES else expect(item, wire, where) for item in items)
    return b"".join(bytes(data[item.start : item.stop]) for item in packed)


def varints(content: bytes, where: str) -> NDArray[np.uint64]:
    """Packed numbers, decoded at once; bits above the 64th are dropped, as protobuf does."""
    if len(content) > MOST_PACKED:
        raise FormatError(where, f"packed numbers take {len(content)} bytes", f"at most {MOST_PACKED} would be right")
    raw = np.frombuffer(content, np.uint8)
    if not raw.size:
        return np.empty(0, np.uint64)
    ends = np.flatnonzero(raw < 0x80)
    widths = np.diff(ends, prepend=-1)
    if raw[-1] >= 0x80 or widths.max() > _MOST_VARINT_BYTES:
        raise FormatError(
            where, "a packed number does not end", f"at most {_MOST_VARINT_BYTES} bytes each would be right"
        )
    starts = ends - widths + 1
    values = np.zeros(ends.size, np.uint64)
    for place in range(int(widths.max())):
        longer = widths > place
        digits = (raw[starts[longer] + place] & np.uint8(0x7F)).astype(np.uint64)
        values[longer] |= digits << np.uint64(7 * place)
    return values


def signed(value: int) -> int:
    """An int64 from the unsigned number that stands for it."""
    return value - (1 << 64) if value >= 1 << 63 else value


def text(data: bytes | memoryview, where: str, what: str) -> str:
    """UTF-8 as a string, where nothing else is right."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(where, f"{what} is not UTF-8: {bytes(data[:40])!r}", "UTF-8 text would be right") from error


def encode_text(value: str, where: str, what: str) -> bytes:
    """A string as UTF-8."""
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FormatError(
            where, f"{what} is no text: {value[:40]!r}", "text without lone surrogates would be right"
        ) from error


@lru_cache(4096)
def encode_varint(value: int) -> bytes:
    """A number of at most 64 bits; negative ones take 10 bytes, as int64 does."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    """A VARINT field; nothing for 0, as proto3 does."""
    return encode_varint(number << 3 | VARINT) + encode_varint(value) if value else b""


def bytes_field(number: int, content: bytes) -> bytes:
    """A BYTES field: also for messages and texts."""
    return bytes_header(number, len(content)) + content


def bytes_header(number: int, size: int) -> bytes:
    """What stands before a content of this size in a BYTES field."""
    return encode_varint(number << 3 | BYTES) + encode_varint(size)
