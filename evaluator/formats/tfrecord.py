"""Cuts event files into records and frames payloads as records.

Source:
    saved format of smdebug 1.0.34, section 4 (core/tfrecord/record_writer.py); bytes in tests/data/trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import google_crc32c

from evaluator.errors import FormatError, Truncated

CONSTANT_FOOTER = (0x062DC0B3).to_bytes(4, "little")
"""What stands after a payload instead of its CRC: the masked CRC of the ASCII text 0x12345678.

Source: core/tfrecord/record_writer.py:32,64-70 (`write_checksum=False`).
"""

HEADER_SIZE = 12
"""Payload length (8 bytes) and the masked CRC of these 8 bytes (4). Source: TFRecord framing."""

FOOTER_SIZE = 4

_MASK_DELTA = 0xA282EAD8  # Source: TFRecord framing, as TensorFlow's crc32c::Mask


def masked_crc(data: bytes) -> int:
    """CRC-32C of the data, rotated and shifted as TFRecord stores it."""
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def frame(payload: bytes, *, true_checksum: bool = False) -> bytes:
    """The payload as one record; the reference reader takes only records with the constant footer."""
    footer = masked_crc(payload).to_bytes(4, "little") if true_checksum else CONSTANT_FOOTER
    return b"".join((header(len(payload)), payload, footer))


@lru_cache(4096)
def header(size: int) -> bytes:
    """What stands before a payload of this size; those of one tensor are equally large at nearly every step."""
    written = size.to_bytes(8, "little")
    return written + masked_crc(written).to_bytes(4, "little")


def read_record(data: bytes | memoryview, start: int = 0, length: int | None = None, where: str = "") -> memoryview:
    """The payload of the record that begins at `start`, without a copy.

    The `length` is what the index file says about the whole record, where it is known.

    Raises:
        Truncated: the data end before the record does.
        FormatError: there is no such record here: a bad checksum, or another length than the index says.
    """
    view = memoryview(data)
    place = f"{where or 'record'} at byte {start}"
    if start < 0:
        raise FormatError(place, "the record begins before the file", "a position of 0 or more would be right")
    size = record_size(bytes(view[start : start + HEADER_SIZE]), where, start, length)
    stop = start + size - FOOTER_SIZE
    footer = bytes(view[stop : stop + FOOTER_SIZE])
    if len(footer) < FOOTER_SIZE:
        raise Truncated(place, f"{len(view) - start} bytes are left", f"the record has {size}")
    payload = view[start + HEADER_SIZE : stop]
    if footer != CONSTANT_FOOTER:
        _check_footer(footer, payload, place)
    return payload


def record_size(header: bytes, where: str = "", start: int = 0, length: int | None = None) -> int:
    """How many bytes a record has, by its header, before the rest of it is read.

    Raises:
        Truncated: the header is not whole.
        FormatError: its checksum is wrong, or it says another length than the index file.
    """
    place = f"{where or 'record'} at byte {start}"
    if len(header) < HEADER_SIZE:
        raise Truncated(place, f"{len(header)} bytes are left", f"a record header has {HEADER_SIZE}")
    expected = masked_crc(header[:8])
    if int.from_bytes(header[8:], "little") != expected:
        what = f"the checksum of the header is 0x{header[8:][::-1].hex()}"
        raise FormatError(place, what, f"it should be 0x{expected:08x}")
    size = HEADER_SIZE + int.from_bytes(header[:8], "little") + FOOTER_SIZE
    if length is not None and length != size:
        raise FormatError(place, f"the record has {size} bytes", f"the index file says {length}")
    return size


def records(data: bytes | memoryview, where: str = "") -> Iterator[tuple[int, memoryview]]:
    """The start and the payload of each record, in file order.

    Raises:
        Truncated: after all whole records, when the rest is too short for one.
        FormatError: after all records before one that is damaged.
    """
    start = 0
    while start < len(data):
        payload = read_record(data, start, None, where)
        yield start, payload
        start += HEADER_SIZE + len(payload) + FOOTER_SIZE


def _check_footer(footer: bytes, payload: memoryview, place: str) -> None:
    """Refuse a footer that is not the checksum of the payload."""
    expected = masked_crc(bytes(payload))
    if int.from_bytes(footer, "little") != expected:
        right = f"it should be 0x{expected:08x}, or the constant 0x{CONSTANT_FOOTER[::-1].hex()}"
        raise FormatError(place, f"the checksum of the payload is 0x{footer[::-1].hex()}", right)
