"""Event files of TensorBoard: records cut from pieces, events parsed, and what is no event."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import FormatError
from evaluator.formats.tfevents import RecordCutter, array_of, parse_event
from evaluator.formats.tfrecord import FOOTER_SIZE, HEADER_SIZE, frame
from tests.sources.event_files import event, session_start, simple, stored, version

PAYLOADS = [b"first", b"", b"x" * 300, b"last"]
FILE = b"".join(frame(payload, true_checksum=True) for payload in PAYLOADS)


def payload_of(record: bytes) -> bytes:
    return record[HEADER_SIZE:-FOOTER_SIZE]


@given(cuts=st.lists(st.integers(0, len(FILE)), max_size=8))
def test_records_are_the_same_in_whatever_pieces_they_come(cuts: list[int]):
    cutter = RecordCutter()
    ends = sorted({0, len(FILE), *cuts})
    records = [record for start, stop in itertools.pairwise(ends) for record in cutter.feed(FILE[start:stop])]

    assert [record.payload for record in records] == PAYLOADS
    assert [FILE[record.start : record.start + record.length] for record in records] == [
        frame(payload, true_checksum=True) for payload in PAYLOADS
    ]
    assert (cutter.at, cutter.stuck) == (len(FILE), "")


def test_the_footer_of_debugger_is_no_checksum():
    (record,) = RecordCutter().feed(frame(b"payload"))

    assert record.problem.startswith("the checksum of the payload is 0x")


def test_after_a_wrong_header_nothing_is_cut_until_it_is_right():
    cutter = RecordCutter()
    whole = frame(b"payload", true_checksum=True)

    assert list(cutter.feed(bytes(len(whole)))) == []
    assert "nothing behind it is read" in cutter.stuck
    assert (cutter.resume(bytes(HEADER_SIZE)), cutter.resume(whole[:HEADER_SIZE])) == (False, True)
    assert [record.payload for record in cutter.feed(whole)] == [b"payload"]


def test_an_event_tells_step_time_and_values():
    parsed = parse_event(payload_of(event(7, simple("a", 0.5), stored("w", np.zeros(3)), wall_time=12.5)), "here")

    assert (parsed.step, parsed.wall_time, parsed.starts) == (7, 12.5, False)
    assert [(value.tag, value.kind, value.number, value.size) for value in parsed.values] == [
        ("a", "scalar", 0.5, 0),
        ("w", "tensor", None, 24),
    ]


def test_a_session_begins():
    assert [parse_event(payload_of(one), "here").starts for one in (version(), session_start(3))] == [False, True]


def test_arrays_are_decoded_by_their_number():
    payload = payload_of(event(0, simple("a", 1), stored("w", np.arange(3.0))))

    assert array_of(payload, 1, "here").tolist() == [0, 1, 2]
    with pytest.raises(FormatError, match="holds no array"):
        array_of(payload, 0, "here")


def test_a_value_without_a_tag_is_no_value():
    with pytest.raises(FormatError, match="here: a value has no tag"):
        parse_event(payload_of(event(0, simple("", 1))), "here")


VALUES = [
    simple("loss", 1, "scalars"),
    stored("w", np.ones((2, 2))),
    stored("s", np.array(1.0)),
    stored("t", ["x"]),
]
WHOLE = payload_of(event(300, *VALUES))


@given(at=st.integers(0, len(WHOLE) - 1), byte=st.integers(0, 255), cut=st.integers(0, 3))
def test_a_changed_event_is_an_event_or_a_named_error(at: int, byte: int, cut: int):
    changed = WHOLE[:at] + bytes([byte]) + WHOLE[at + 1 + cut :]
    try:
        parsed = parse_event(changed, "here")
        for number, value in enumerate(parsed.values):
            if value.tensor is not None:
                array_of(changed, number, "here")
    except FormatError as error:
        assert str(error).startswith("here")  # noqa: PT017 - either way is right


@given(st.binary(max_size=60))
def test_any_bytes_are_an_event_or_a_named_error(content: bytes):
    try:
        parse_event(content, "here")
    except FormatError as error:
        assert str(error).startswith("here")  # noqa: PT017 - either way is right
