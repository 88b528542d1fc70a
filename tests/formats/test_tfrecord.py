"""Records of event files: framing, checksums, cut and damaged bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import FormatError, Truncated
from evaluator.formats.tfrecord import CONSTANT_FOOTER, frame, masked_crc, read_record, records

TRIALS = Path(__file__).parents[1] / "data" / "trials"
EVENT_FILE = (TRIALS / "shapes_only/events/000000000003/000000000003_worker_0.tfevents").read_bytes()


def test_the_masked_checksum_is_that_of_the_golden_record() -> None:
    assert masked_crc(bytes.fromhex("6e00000000000000")) == 0x6433BFC4


def test_the_constant_footer_is_the_masked_checksum_of_a_known_text() -> None:
    assert int.from_bytes(CONSTANT_FOOTER, "little") == masked_crc(b"0x12345678")


@given(st.binary(max_size=200), st.booleans())
def test_a_framed_payload_reads_back_with_either_footer(payload: bytes, true_checksum: bool) -> None:
    assert bytes(read_record(b"xx" + frame(payload, true_checksum=true_checksum), 2, len(payload) + 16)) == payload


def test_records_yields_starts_and_payloads_in_file_order() -> None:
    data = frame(b"one") + frame(b"") + frame(b"three", true_checksum=True)

    found = [(start, bytes(payload)) for start, payload in records(data)]

    assert found == [(0, b"one"), (19, b""), (35, b"three")]


def test_good_records_before_a_cut_tail_are_yielded_first() -> None:
    reading = records(frame(b"one") + frame(b"two") + b"\x05\x00\x00\x00\x00")

    assert [bytes(next(reading)[1]), bytes(next(reading)[1])] == [b"one", b"two"]
    with pytest.raises(Truncated):
        next(reading)


@pytest.mark.parametrize("stop", range(len(EVENT_FILE)))
def test_a_cut_record_is_truncated_not_a_crash(stop: int) -> None:
    with pytest.raises(Truncated):
        read_record(EVENT_FILE[:stop])


@pytest.mark.parametrize("position", [*range(12), -1, -4])
def test_a_flipped_byte_of_header_or_footer_is_refused(position: int) -> None:
    data = bytearray(EVENT_FILE)
    data[position] ^= 0x10

    with pytest.raises(FormatError, match="checksum"):
        read_record(bytes(data))


def test_a_flipped_payload_byte_is_noticed_where_the_checksum_is_true() -> None:
    data = frame(b"payload", true_checksum=True).replace(b"pay", b"pax")

    with pytest.raises(
        FormatError, match=r"somewhere at byte 0: the checksum of the payload is .*, or the constant 0x062dc0b3"
    ):
        read_record(data, where="somewhere")


def test_a_footer_of_zeros_is_refused() -> None:
    with pytest.raises(FormatError, match="checksum of the payload is 0x00000000"):
        read_record(frame(b"payload")[:-4] + bytes(4))


@pytest.mark.parametrize("length", [0, 16, 22, 24, 1 << 60, -1])
def test_another_length_than_the_index_says_is_refused(length: int) -> None:
    with pytest.raises(FormatError, match=f"the record has 23 bytes; the index file says {length}"):
        read_record(frame(b"payload"), 0, length)


@pytest.mark.parametrize("start", [-1, -23])
def test_a_record_does_not_begin_before_the_file(start: int) -> None:
    with pytest.raises(FormatError, match="0 or more"):
        read_record(frame(b"payload"), start)


@pytest.mark.parametrize("size", [1 << 40, (1 << 64) - 1])
def test_a_huge_length_with_a_right_checksum_is_truncated(size: int) -> None:
    header = size.to_bytes(8, "little")

    with pytest.raises(Truncated):
        read_record(header + masked_crc(header).to_bytes(4, "little") + bytes(100))
