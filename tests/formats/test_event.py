"""Records of tensors: the golden bytes, round trips, damaged bytes, and the spans that promise equal layout."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import FormatError
from evaluator.formats import wire
from evaluator.formats.event import Event, Place, decode_event, encode_event, locate
from evaluator.formats.tfrecord import frame, masked_crc, read_record, records
from evaluator.modes import Mode

TRIALS = Path(__file__).parents[1] / "data" / "trials"
EVENT_FILES = sorted(TRIALS.glob("*/events/*/*.tfevents"))
SMALL = TRIALS / "keras_classifier/events/000000000003/000000000003_worker_0.tfevents"

GOLDEN = bytes.fromhex(
    "6e00000000000000 c4bf3364 09 00002040fc54d941 10 d209 2a 60 0a 5e 0a05 612f773a30"
    "42 38 0801 12 1a 12 0b 0802 12 07 612f773a305f32 12 0b 0803 12 07 612f773a305f33"
    "22 18 00000000 0000803f 00000040 00004040 00008040 0000a040"
    "4a 1b 0a 0e 0a 09 6d6f64655f73746570 12 01 37 0a 09 0a 04 6d6f6465 12 01 31 b3c02d06"
)
VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def record(
    name: str = "a/w:0",
    values: object = VALUES,
    *,
    step: int = 1234,
    wall_time: float = 1700000000.5,
    mode_step: int = 7,
) -> bytes:
    """One record, like the golden one where nothing else is said."""
    payload = encode_event(name, values, step=step, mode=Mode.TRAIN, mode_step=mode_step, wall_time=wall_time)
    return frame(payload)


def event_of(data: bytes) -> Event:
    """The event in a record."""
    event = decode_event(read_record(data))
    assert event is not None
    return event


def place_of(data: bytes, start: int = 0) -> Place:
    """Where the values of a record are."""
    place = locate(data, start, len(data) - start)
    assert place is not None
    return place


def value_of(*fields: bytes) -> bytes:
    """The payload of an event with one value that has these fields."""
    return wire.bytes_field(5, wire.bytes_field(1, b"".join(fields)))


def test_the_golden_record_is_written_byte_for_byte() -> None:
    assert record() == GOLDEN


def test_the_golden_record_is_read() -> None:
    event = event_of(GOLDEN)

    assert (event.name, event.step, event.wall_time, event.values.tolist(), event.mode, event.mode_step) == (
        "a/w:0", 1234, 1700000000.5, VALUES.tolist(), Mode.TRAIN, 7,
    )  # fmt: skip


@pytest.mark.parametrize("path", EVENT_FILES, ids=lambda path: f"{path.parts[-4]}-{path.stem}")
def test_every_record_of_the_reference_is_written_again_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    written = []
    for _, payload in records(data):
        event = decode_event(payload)
        assert event is not None
        assert event.mode is not None
        assert event.mode_step is not None
        about = {"step": event.step, "mode": event.mode, "mode_step": event.mode_step, "wall_time": event.wall_time}
        written.append(frame(encode_event(event.name, event.values, **about)))  # type: ignore[arg-type]

    assert b"".join(written) == data


@pytest.mark.parametrize("trial", ["ddp_two_workers", "keras_classifier", "shapes_only"])
def test_values_are_those_that_the_reference_read(trial: str) -> None:
    expected = json.loads((TRIALS / f"{trial}.expected.json").read_text())["tensors"]
    wrong = []
    for path in sorted((TRIALS / trial / "events").glob("*/*.tfevents")):
        step, worker = path.stem.split("_", 1)
        # A name that was saved twice in a step has its last value.
        found = {event.name: event for _, payload in records(path.read_bytes()) if (event := decode_event(payload))}
        for name, event in found.items():
            seen: dict[str, Any] = expected[name]["at"].get(str(int(step)), {}).get("workers", {}).get(worker, {})
            got = {
                "dtype": str(event.values.dtype),
                "shape": list(event.values.shape),
                "max": float(event.values.max()),
            }
            wrong += [(name, step, key) for key in got.keys() & seen.keys() if got[key] != seen[key]]

    assert wrong == []


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300),
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**40),
    st.sampled_from(Mode),
    st.floats(allow_nan=False),
)
def test_names_and_numbers_come_back(name: str, step: int, mode_step: int, mode: Mode, wall_time: float) -> None:
    payload = encode_event(name, VALUES, step=step, mode=mode, mode_step=mode_step, wall_time=wall_time)
    event = decode_event(payload)

    assert event is not None
    assert (event.name, event.step, event.mode_step, event.mode, event.wall_time) == (
        name,
        step,
        mode_step,
        mode,
        wall_time,
    )


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        wire.bytes_field(3, b"brain.Event:2"),
        wire.bytes_field(5, b""),
        value_of(wire.bytes_field(1, b"h"), wire.bytes_field(5, b"histogram")),
    ],
)
def test_an_event_without_a_tensor_is_none(payload: bytes) -> None:
    assert decode_event(payload) is None


def test_a_simple_value_is_a_float32_without_dimensions() -> None:
    event = decode_event(value_of(wire.bytes_field(1, b"loss"), b"\x15" + np.float32(0.5).tobytes()))

    assert event is not None
    assert (event.values.dtype, event.values.shape, event.values.item()) == (np.dtype(np.float32), (), 0.5)
    assert (event.step, event.wall_time, event.mode, event.mode_step) == (0, 0.0, None, None)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (value_of(wire.bytes_field(8, b"\x08\x01")), "here: the value has no tag"),
        (value_of(wire.bytes_field(1, b"\xff"), wire.bytes_field(8, b"")), "here: the tag is not UTF-8"),
        (
            value_of(wire.bytes_field(1, b"x"), wire.bytes_field(8, b"\x08\x18")),
            "here: tensor 'x': dtype 24 is unsupported",
        ),
        (wire.bytes_field(5, wire.bytes_field(1, b"") * 2), "here: the record has more than one value"),
        (b"\x2a\x05", "here: field 5 ends at byte 7; its message ends at byte 2"),
        (b"\x09\x00", "here: field 1 ends at byte 9"),
    ],
)
def test_a_wrong_event_says_what_is_wrong(payload: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        decode_event(payload, "here")


@pytest.mark.parametrize(("name", "step"), [("", 0), ("\ud800", 0), ("x", -1), ("x", 2**63)])
def test_what_cannot_be_saved_is_refused(name: str, step: int) -> None:
    with pytest.raises(FormatError):
        record(name, step=step)


def read_all(data: bytes) -> None:
    """Read every record both ways, until the first one that is wrong."""
    try:
        for start, payload in records(data):
            event = decode_event(payload)
            place = locate(data, start, len(payload) + 16)
            if place is not None:
                assert event is not None
                content = data[place.content_start : place.content_start + place.content_length]
                assert (place.name, place.shape, content) == (event.name, event.values.shape, event.values.tobytes())
    except FormatError:
        pass


def test_a_file_cut_anywhere_is_read_or_a_format_error() -> None:
    data = SMALL.read_bytes()
    for stop in range(len(data)):
        read_all(data[:stop])


def test_a_payload_cut_anywhere_is_read_or_a_format_error() -> None:
    for payload in [bytes(payload) for _, payload in records(SMALL.read_bytes())]:
        for stop in range(len(payload)):
            read_all(frame(payload[:stop]))


def test_random_damage_is_read_or_a_format_error() -> None:
    chance = random.Random(1)  # noqa: S311 - the same damage each time
    for payload in [bytes(payload) for _, payload in records(SMALL.read_bytes())]:
        for _ in range(300):
            damaged = bytearray(payload)
            for _ in range(chance.randint(1, 3)):
                damaged[chance.randrange(len(damaged))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
            read_all(frame(bytes(damaged)))


@given(st.binary(max_size=100))
def test_any_payload_is_read_or_a_format_error(payload: bytes) -> None:
    read_all(frame(payload))


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=20))
def test_any_value_is_read_or_a_format_error(tensor: bytes, metadata: bytes, rest: bytes) -> None:
    read_all(
        frame(value_of(wire.bytes_field(1, b"x"), wire.bytes_field(8, tensor), wire.bytes_field(9, metadata), rest))
    )


def test_a_place_leads_to_the_raw_values() -> None:
    data = b"before" + GOLDEN
    place = place_of(data, 6)

    values = np.frombuffer(data, place.dtype, 6, place.content_start).reshape(place.shape)

    assert (place.name, place.content_length, place.wall_time, values.tolist()) == (
        "a/w:0",
        24,
        1700000000.5,
        VALUES.tolist(),
    )


@pytest.mark.parametrize(
    "values",
    [np.array(["a"]), np.zeros(0), np.zeros((0, 3), np.int8), np.array([True])],
    ids=["text", "empty", "empty2", "bool"],
)
def test_a_tensor_that_is_not_plain_raw_content_has_no_place(values: object) -> None:
    data = record(values=values)

    assert locate(data, 0, len(data)) is None


def test_a_description_behind_the_content_has_no_place() -> None:
    tensor = wire.bytes_field(4, VALUES.tobytes()) + b"\x08\x01" + wire.bytes_field(2, b"\x12\x02\x08\x06")
    data = frame(value_of(wire.bytes_field(1, b"x"), wire.bytes_field(8, tensor)))

    assert (locate(data, 0, len(data)), event_of(data).values.tolist()) == (None, [0, 1, 2, 3, 4, 5])


def test_a_place_that_does_not_fit_its_shape_is_refused() -> None:
    payload = GOLDEN[12:-4].replace(b"\x08\x03\x12", b"\x08\x04\x12")

    with pytest.raises(FormatError, match=r"shape \[2, 4\] of float32 takes 32 bytes"):
        locate(frame(payload), 0, 126)


def same_on_spans(place: Place, one: bytes, other: bytes) -> bool:
    """What a reader checks before it uses the place of one record for another."""
    return len(one) == len(other) and all(one[start:stop] == other[start:stop] for start, stop in place.fixed)


@given(st.integers(0, 2**40), st.floats(0.5, 2e9), st.integers(0, 10**6), st.floats(width=32, allow_nan=False))
def test_a_record_that_is_equal_on_the_spans_is_laid_out_alike(
    step: int, wall_time: float, mode_step: int, value: float
) -> None:
    place = place_of(GOLDEN)
    other = record(values=np.full((2, 3), value, np.float32), step=step, wall_time=wall_time, mode_step=mode_step)

    if same_on_spans(place, GOLDEN, other):
        there = place_of(other)
        assert (there.name, there.dtype, there.shape, there.content_start) == (
            place.name,
            place.dtype,
            place.shape,
            place.content_start,
        )
        assert there.content_length == place.content_length
    else:
        assert len(other) != len(GOLDEN) or not 128 <= step < 128 * 128


def test_a_record_of_another_time_and_step_is_equal_on_the_spans() -> None:
    other = record(values=-VALUES, step=200, wall_time=1.5, mode_step=8)

    assert same_on_spans(place_of(GOLDEN), GOLDEN, other)


DIFFERENT = {
    "another name": record("a/v:0"),
    "another shape": record(values=VALUES.reshape(3, 2)),
    "another type": record(values=VALUES.astype(np.int32)),
    "a narrower step and a longer mode step": record(step=5, mode_step=77),
    "no step and a longer mode step": record(step=0, mode_step=7777),
    "a wider step and a shorter mode step": record(step=1 << 20, mode_step=7),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_record_that_is_laid_out_differently_differs_on_the_spans(name: str) -> None:
    assert not same_on_spans(place_of(GOLDEN), GOLDEN, DIFFERENT[name])


def test_a_step_of_another_width_is_noticed_in_a_record_of_the_same_length() -> None:
    wide, narrow = record(step=1234, mode_step=7), record(step=5, mode_step=77)

    assert len(wide) == len(narrow)
    assert not same_on_spans(place_of(wide), wide, narrow)
    assert not same_on_spans(place_of(narrow), narrow, wide)


def test_the_spans_hold_all_bytes_before_the_content_but_time_and_step() -> None:
    assert place_of(GOLDEN).fixed == ((0, 13), (21, 22), (24, 69))


def test_a_length_with_another_checksum_is_not_located() -> None:
    header = (len(GOLDEN)).to_bytes(8, "little")
    data = header + masked_crc(header).to_bytes(4, "little") + GOLDEN[12:]

    with pytest.raises(FormatError):
        locate(data, 0, len(GOLDEN))
