"""Encodes and decodes the payload of one record: a tensor with its name, step, mode and time.

Source:
    saved format of smdebug 1.0.34, section 5 (field numbers, order of fields, golden record).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import FormatError
from evaluator.formats import tensor, tensor_encoding, wire
from evaluator.formats.tfrecord import HEADER_SIZE, read_record
from evaluator.modes import Mode

WALL_TIME, STEP, SUMMARY = 1, 2, 5
"""Field numbers of Event; its other fields are not in event files of trials."""

TAG, SIMPLE_VALUE, TENSOR, METADATA = 1, 2, 8, 9
"""Field numbers of Summary.Value; VALUE is its number in Summary."""

VALUE = PLUGIN_DATA = 1

_EVENT_KINDS = {WALL_TIME: wire.FIXED64, STEP: wire.VARINT, SUMMARY: wire.BYTES}
_VALUE_KINDS = {TAG: wire.BYTES, SIMPLE_VALUE: wire.FIXED32, TENSOR: wire.BYTES, METADATA: wire.BYTES}
_PLUGIN_KINDS = {1: wire.BYTES, 2: wire.BYTES}  # plugin_name and content

_WHOLE = re.compile(rb"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One saved tensor, as its record tells it."""

    name: str
    step: int
    wall_time: float
    values: NDArray[Any]
    mode: Mode | None
    """None when the record does not tell; the index file has the last word anyway."""
    mode_step: int | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the values of one record lie in an event file, and what tells that another record is laid out alike.

    A well-formed record of the same length whose bytes equal ours on the `fixed` spans has the same name, type,
    shape and place of content. The spans leave out only the values of wall time and step.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    content_start: int
    content_length: int
    wall_time: float
    fixed: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Parts:
    """The parts of an Event that matter, found but not decoded."""

    wall_time: wire.Field | None
    step: wire.Field | None
    tag: wire.Field | None
    tensor: wire.Field | None
    simple: wire.Field | None
    metadata: wire.Field | None


def encode_event(name: str, values: object, *, step: int, mode: Mode, mode_step: int, wall_time: float) -> bytes:
    """The payload of one record, byte for byte as the reference writes it."""
    return b"".join(encode_parts(name, values, step=step, mode=mode, mode_step=mode_step, wall_time=wall_time))


def encode_parts(
    name: str, values: object, *, step: int, mode: Mode, mode_step: int, wall_time: float
) -> tuple[bytes, bytes | memoryview, bytes]:
    """The payload in three parts, of which the second is the memory of the values where that can be.

    So a tensor is not copied before it is written.
    """
    where = f"tensor {name!r}"
    if not name:
        raise FormatError(where, "a tensor needs a name", "any text would be right")
    if not 0 <= step < 1 << 63:
        raise FormatError(where, f"step {step} cannot be saved", "0 to 2**63 - 1 would be right")
    tag = wire.encode_text(name, where, "the name")
    head, content = tensor_encoding.encode_parts(values, name, where)
    metadata = encode_metadata(int(mode), mode_step)
    size = len(head) + memoryview(content).nbytes
    return encode_moment(wall_time, step) + _opening(tag, size, len(metadata)) + head, content, metadata


@lru_cache(16)
def encode_moment(wall_time: float, step: int) -> bytes:
    """The fields with time and step, which all tensors of a step have."""
    # proto3 leaves out a number that is 0.
    time = struct.pack("<Bd", WALL_TIME << 3 | wire.FIXED64, wall_time) if wall_time else b""
    return time + wire.number_field(STEP, step)


@lru_cache(tensor_encoding.MOST_REMEMBERED)
def _opening(name: bytes, size: int, size_of_metadata: int) -> bytes:
    """What stands between the step and a tensor of this size: name and lengths, the same at nearly every step."""
    inner = wire.bytes_field(TAG, name) + wire.bytes_header(TENSOR, size)
    value = len(inner) + size + size_of_metadata
    outer = wire.bytes_header(VALUE, value)
    return wire.bytes_header(SUMMARY, len(outer) + value) + outer + inner


@lru_cache(64)
def encode_metadata(mode: int, mode_step: int) -> bytes:
    """The field with mode and mode step, which all tensors of a step have."""
    plugins = ((b"mode_step", mode_step), (b"mode", mode))
    content = b"".join(
        wire.bytes_field(PLUGIN_DATA, wire.bytes_field(1, plugin) + wire.bytes_field(2, b"%d" % number))
        for plugin, number in plugins
    )
    return wire.bytes_field(METADATA, content)


def decode_event(payload: bytes | memoryview, where: str = "", most: int | None = None) -> Event | None:
    """The tensor in a payload, or None where there is none (a file version, a graph, a histogram, ...).

    Raises:
        FormatError: it is damaged, or has more elements than the `most` that the caller has room for.
    """
    where = where or "event"
    parts = _parse(payload, 0, len(payload), where)
    if parts is None:
        return None
    name, place = _name(payload, parts, where)
    if parts.tensor is not None:
        stored = tensor.parse(payload, parts.tensor.start, parts.tensor.stop, place)
        if most is not None and stored.size(place) > most:
            raise FormatError(
                place, f"has {stored.size(place)} elements in {len(payload)} bytes", f"there is room for {most}"
            )
        values = tensor.decode(payload, stored, place)
    elif parts.simple is not None:
        values = np.frombuffer(payload[parts.simple.start : parts.simple.stop], "<f4").reshape(())
    else:
        return None
    step = wire.signed(parts.step.value) if parts.step is not None else 0
    mode, mode_step = _modes(payload, parts.metadata, place)
    return Event(name, step, _wall_time(payload, parts), values, mode, mode_step)


def locate(data: bytes, start: int, length: int, where: str = "") -> Place | None:
    """Where the record at `start` has its values, for reading many records alike without decoding each.

    Returns:
        None when the values are not plain raw content behind their description (text, single values, bfloat16,
        bool, empty); then `decode_event` is the way.

    Raises:
        FormatError: as `read_record` and `decode_event` do, but mode and mode step are not looked at.
    """
    where = where or "event"
    payload = read_record(data, start, length, where)
    begin = start + HEADER_SIZE
    parts = _parse(data, begin, begin + len(payload), where)
    if parts is None or parts.tensor is None or parts.tag is None:
        return None
    name, place = _name(data, parts, where)
    stored = tensor.parse(data, parts.tensor.start, parts.tensor.stop, place)
    stored.size(place)
    dtype, content = stored.raw, stored.content_start
    if dtype is None or max(parts.tag.stop, stored.header_stop) > content:
        return None
    size = stored.content_stop - content
    fixed = _fixed(start, content, parts)
    return Place(name, dtype, stored.shape, content, size, _wall_time(data, parts), fixed)


def _fixed(start: int, content: int, parts: _Parts) -> tuple[tuple[int, int], ...]:
    """What is left of the bytes from `start` to `content` without the values of wall time and step.

    A step of another width moves the tag of the summary, which is within a span, so it is noticed.
    """
    free = sorted((item.start, item.stop) for item in (parts.wall_time, parts.step) if item is not None)
    spans = []
    at = start
    for begin, end in free:
        if begin < content:
            spans.append((at, begin))
            at = end
    return (*spans, (at, content))


def _parse(data: bytes | memoryview, start: int, stop: int, where: str) -> _Parts | None:
    """The parts of the Event between `start` and `stop`; None when it has no summary with a value."""
    event = wire.latest(data, start, stop, _EVENT_KINDS, where)
    summary = event.get(SUMMARY)
    value = None
    for item in wire.fields(data, summary.start, summary.stop, where) if summary is not None else ():
        if item.number == VALUE and value is not None:
            raise FormatError(where, "the record has more than one value", "one value in each record would be right")
        if item.number == VALUE:
            value = wire.expect(item, wire.BYTES, where)
    if value is None:
        return None
    inner = wire.latest(data, value.start, value.stop, _VALUE_KINDS, where)
    head = event.get(WALL_TIME), event.get(STEP), inner.get(TAG)
    return _Parts(*head, inner.get(TENSOR), inner.get(SIMPLE_VALUE), inner.get(METADATA))


def _name(data: bytes | memoryview, parts: _Parts, where: str) -> tuple[str, str]:
    """The name of the tensor, and the text that names it in errors."""
    if parts.tag is None or parts.tag.start == parts.tag.stop:
        raise FormatError(where, "the value has no tag", "it should be the name of the tensor")
    name = wire.text(data[parts.tag.start : parts.tag.stop], where, "the tag")
    return name, f"{where}: tensor {name!r}"


def _wall_time(data: bytes | memoryview, parts: _Parts) -> float:
    """When the record was written, in seconds since the epoch."""
    if parts.wall_time is None:
        return 0.0
    (seconds,) = struct.unpack_from("<d", data, parts.wall_time.start)
    return float(seconds)


def _modes(data: bytes | memoryview, metadata: wire.Field | None, where: str) -> tuple[Mode | None, int | None]:
    """Mode and mode step of the record, each None where it is missing or no number."""
    found: dict[bytes, bytes] = {}
    for plugin in wire.fields(data, metadata.start, metadata.stop, where) if metadata is not None else ():
        if plugin.number != PLUGIN_DATA:
            continue
        start = wire.expect(plugin, wire.BYTES, where).start
        texts = wire.latest(data, start, plugin.stop, _PLUGIN_KINDS, where)
        if len(texts) == len(_PLUGIN_KINDS):
            name, content = (bytes(data[texts[number].start : texts[number].stop]) for number in _PLUGIN_KINDS)
            found[name] = content
    numbers = {name: int(text) for name, text in found.items() if _WHOLE.fullmatch(text)}
    mode = numbers.get(b"mode")
    return Mode(mode) if mode in set(Mode) else None, numbers.get(b"mode_step")
