"""Writes event files as TensorBoard's writers do, for tests."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from evaluator.formats import wire
from evaluator.formats.tensor_encoding import encode
from evaluator.formats.tfrecord import frame

FIRST = 1_700_000_000.0
"""The wall time of the first event."""


def number(at: int, value: float) -> bytes:
    return struct.pack("<Bd", at << 3 | wire.FIXED64, value)


def value(tag: str, content: bytes, plugin: str = "") -> bytes:
    """A Summary.Value with its content (a field of it)."""
    data = wire.bytes_field(1, wire.bytes_field(1, plugin.encode()))
    metadata = wire.bytes_field(9, data) if plugin else b""
    return wire.bytes_field(1, wire.bytes_field(1, tag.encode()) + content + metadata)


def simple(tag: str, amount: float, plugin: str = "") -> bytes:
    """A scalar in its first encoding."""
    return value(tag, struct.pack("<Bf", 2 << 3 | wire.FIXED32, amount), plugin)


def stored(tag: str, values: object, plugin: str = "") -> bytes:
    """A value as a tensor with raw content."""
    return value(tag, wire.bytes_field(8, encode(values, tag, tag)), plugin)


def typed(tag: str, dtype: int, at: int, content: bytes, plugin: str = "scalars") -> bytes:
    """A scalar as a tensor with the field of its type: `content` is the packed field `at`."""
    return value(tag, wire.bytes_field(8, wire.number_field(1, dtype) + wire.bytes_field(at, content)), plugin)


def event(step: int, *values: bytes, wall_time: float | None = None, more: bytes = b"") -> bytes:
    """One event as a record."""
    time = number(1, FIRST + step if wall_time is None else wall_time)
    summary = wire.bytes_field(5, b"".join(values)) if values else b""
    return frame(time + wire.number_field(2, step) + summary + more, true_checksum=True)


def version(wall_time: float = FIRST) -> bytes:
    """The first record of a file."""
    return frame(number(1, wall_time) + wire.bytes_field(3, b"brain.Event:2"), true_checksum=True)


def session_start(step: int, wall_time: float | None = None) -> bytes:
    """A session that begins at a step."""
    return event(step, wall_time=wall_time, more=wire.bytes_field(7, wire.number_field(1, 1)))


def scalars(tag: str, values: Sequence[float], first: int = 0) -> bytes:
    """One event per value."""
    return b"".join(event(first + at, simple(tag, one)) for at, one in enumerate(values))
