"""Index files: those of the reference, tolerated variants, and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import FormatError, Truncated
from evaluator.formats.index_file import MOST_BYTES, IndexFile, encode_index, parse_index
from evaluator.modes import Mode

TRIALS = Path(__file__).parents[1] / "data" / "trials"
INDEX_FILES = sorted(TRIALS.glob("*/index/*/*.json"))
SMALL = (TRIALS / "keras_classifier/index/000000000/000000000011_worker_0.json").read_bytes()
SHAPES = (TRIALS / "shapes_only/index/000000000/000000000013_worker_0.json").read_bytes()
META: dict[str, Any] = {
    "mode": "TRAIN",
    "mode_step": 7,
    "event_file_name": "events/000000001234/000000001234_worker_0.tfevents",
}
ENTRY: dict[str, Any] = {"tensorname": "a/w:0", "start_idx": 0, "length": 126}
SHAPE: dict[str, Any] = {"tensorname": "a/w:0", "originalname": "orig/w:0", "shape": [2, 3]}


def index(meta: object = META, values: object = (ENTRY,), shapes: object = (SHAPE,)) -> bytes:
    """An index file with these parts."""
    return json.dumps({"meta": meta, "tensor_payload": values, "shape_payload": shapes}).encode()


@pytest.mark.parametrize("path", INDEX_FILES, ids=lambda path: f"{path.parts[-4]}-{path.stem}")
def test_every_index_file_of_the_reference_is_written_again_byte_for_byte(path: Path) -> None:
    assert encode_index(parse_index(path.read_bytes(), "x")) == path.read_bytes()


def test_all_parts_are_read() -> None:
    found = parse_index(index(values=[ENTRY, {"tensorname": "b", "start_idx": 126, "length": 95}]), "x")

    assert (found.mode, found.mode_step, found.event_file_name) == (Mode.TRAIN, 7, META["event_file_name"])
    assert (found.names, found.starts.tolist(), found.lengths.tolist()) == (("a/w:0", "b"), [0, 126], [126, 95])
    assert found.shapes == (("a/w:0", "orig/w:0", (2, 3)),)


def test_a_name_that_occurs_twice_is_kept_twice_in_write_order() -> None:
    found = parse_index(index(values=[ENTRY, ENTRY | {"start_idx": 126}]), "x")

    assert (found.names, found.starts.tolist()) == (("a/w:0", "a/w:0"), [0, 126])


def test_numbers_written_as_text_are_read() -> None:
    entry, shape = ENTRY | {"start_idx": "12", "length": " 34 "}, SHAPE | {"shape": ["2", 3]}

    found = parse_index(index(META | {"mode_step": "7"}, [ENTRY, entry], [shape, SHAPE]), "x")

    assert (found.mode_step, found.starts.tolist(), found.lengths.tolist()) == (7, [0, 12], [126, 34])
    assert [sizes for _, _, sizes in found.shapes] == [(2, 3), (2, 3)]


@pytest.mark.parametrize("mode_step", [-1, 0, 10**12])
def test_the_mode_step_is_kept_as_it_is(mode_step: int) -> None:
    assert parse_index(index(META | {"mode_step": mode_step}), "x").mode_step == mode_step


def test_blanks_around_the_mode_are_ignored() -> None:
    assert parse_index(index(META | {"mode": " EVAL "}), "x").mode is Mode.EVAL


def test_empty_payloads_are_fine() -> None:
    found = parse_index(index({"mode": "GLOBAL", "mode_step": 0}, [], []), "x")

    assert (found.names, found.starts.dtype, found.lengths.size, found.shapes) == ((), np.dtype(np.int64), 0, ())


@pytest.mark.parametrize("missing", ["tensor_payload", "shape_payload"])
def test_one_of_the_payloads_can_be_missing(missing: str) -> None:
    content = json.loads(index())
    del content[missing]

    found = parse_index(json.dumps(content).encode(), "x")

    assert (len(found.names), len(found.shapes)) == ((0, 1) if missing == "tensor_payload" else (1, 0))


def test_an_original_name_that_is_missing_is_the_name() -> None:
    assert parse_index(index(shapes=[{"tensorname": "a", "shape": []}]), "x").shapes == (("a", "a", ()),)


def test_an_empty_event_file_name_is_none_but_the_step_counts() -> None:
    found = parse_index(index(META | {"event_file_name": ""}), "x")

    assert (found.event_file_name, found.names) == (None, ("a/w:0",))


REFUSED = {
    "no meta": (b'{"tensor_payload": []}', "'meta' is missing; it holds"),
    "empty meta": (index({}), "'meta' is {}"),
    "meta is a list": (index([1]), r"'meta' is \[1\]"),
    "no payload": (
        b'{"meta": {"mode": "TRAIN"}, "x": 1}',
        r"only the keys \['meta', 'x'\]; tensor_payload or shape_payload",
    ),
    "no JSON": (b"{]}", "the file is no JSON"),
    "two objects": (index() + index(), "the file is no JSON"),
    "not UTF-8": (index().replace(b"a/w", b"a/\xff"), "the file is no JSON"),
    "a lone surrogate": (index(values=[ENTRY | {"tensorname": "\ud800"}]), "the file is no JSON"),
    "deep": (b'{"meta": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "the file is no JSON"),
    "deep mode": (index(META).replace(b'"TRAIN"', b"[" * 900 + b"]" * 900), "mode .* is not known"),
    "too large": (b" " * MOST_BYTES + b"{}", "at most"),
    "too much memory": (
        b'{"meta": {}, "x": [' + b"{}," * (1 << 20) + b"{}]}",
        "would take about [0-9]+ bytes of memory",
    ),
    "a name without end": (index(values=[ENTRY | {"tensorname": "x" * 20_000}]), "has 20000 characters; at most 16384"),
    "unknown mode": (index(META | {"mode": "TRIAN"}), "mode 'TRIAN' is not known; did you mean 'TRAIN'"),
    "no mode": (index({"mode_step": 1, "event_file_name": "e"}), "mode missing is not known"),
    "no mode step": (index({"mode": "TRAIN", "event_file_name": "e"}), "'mode_step' is missing"),
    "broken mode step": (index(META | {"mode_step": 1.5}), "'mode_step' is 1.5; a whole number"),
    "mode step is a bool": (index(META | {"mode_step": True}), "'mode_step' is True"),
    "no event file": (index({"mode": "TRAIN", "mode_step": 1}), "'event_file_name' is missing"),
    "event file is a number": (index(META | {"event_file_name": 3}), "'event_file_name' is 3"),
    "negative start": (index(values=[ENTRY | {"start_idx": -1}]), "start_idx or length is -1"),
    "huge length": (index(values=[ENTRY | {"length": 2**53 + 1}]), "start_idx or length is 9007199254740993"),
    "length beyond 64 bits": (
        index(values=[ENTRY | {"length": 2**64 - 1}]),
        "start_idx or length is 18446744073709551615",
    ),
    "length of many digits": (index(values=[ENTRY | {"length": "9" * 5000}]), "start_idx or length is '999"),
    "length is a bool": (index(values=[ENTRY | {"length": True}]), "start_idx or length is True"),
    "length is a float": (index(values=[ENTRY | {"length": 1e300}]), r"start_idx or length is 1e\+300"),
    "no name": (index(values=[{"start_idx": 0, "length": 1}]), "an entry has no 'tensorname'"),
    "name is a number": (index(values=[ENTRY | {"tensorname": 3}]), "'tensorname' is 3; a text"),
    "entry is a list": (index(values=[[]]), r"'tensor_payload' is \[\[\]\]; a list of objects"),
    "payload is an object": (index(values={}), "'tensor_payload' is {}"),
    "payload is null": (index(values=None), "'tensor_payload' is missing"),
    "negative size": (index(shapes=[SHAPE | {"shape": [-2]}]), "a size in 'shape' is -2"),
    "shape is text": (index(shapes=[SHAPE | {"shape": "23"}]), r"'shape' is \['23'\]"),
    "a list in a shape": (index(shapes=[SHAPE | {"shape": [[2]]}]), r"a size in 'shape' is \[2\]"),
    "original name is a number": (index(shapes=[SHAPE | {"originalname": 3}]), "'originalname' is 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_index_file_says_what_is_wrong(name: str) -> None:
    data, message = REFUSED[name]

    with pytest.raises(FormatError, match=f"^index/x.json: .*{message}"):
        parse_index(data, "index/x.json")


@pytest.mark.parametrize("data", [b"null ", b"[]", b'"}"', b"[1, {}]", b"3"])
def test_json_that_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_index(data, "x")


@pytest.mark.parametrize("name", ["/etc/passwd", "../x.tfevents", "events/../../x", "events\\x", "events/\0", ".."])
def test_an_event_file_outside_of_the_trial_is_refused_by_name(name: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_index(index(META | {"event_file_name": name}), "x")

    assert f"{name!r} leaves the trial" in str(caught.value)


@pytest.mark.parametrize("data", [SMALL, SHAPES], ids=["values", "shapes"])
def test_a_cut_file_is_truncated_or_a_format_error(data: bytes) -> None:
    for stop in range(len(data)):
        with pytest.raises(FormatError):
            parse_index(data[:stop], "x")


@pytest.mark.parametrize("data", [b"", b"   ", SMALL[:50]])
def test_a_file_that_is_still_being_written_is_truncated(data: bytes) -> None:
    with pytest.raises(Truncated):
        parse_index(data, "x")


def test_random_damage_is_read_or_a_format_error() -> None:
    chance = random.Random(1)  # noqa: S311 - the same damage each time
    for original in (SMALL, SHAPES):
        for _ in range(2000):
            damaged = bytearray(original)
            damaged[chance.randrange(len(damaged))] = chance.choice(b'0-9"{}[],:e.\\ \xff\x00')
            try:
                parse_index(bytes(damaged), "x")
            except FormatError:
                continue


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*META, *ENTRY, *SHAPE]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON, JSON, JSON)
def test_any_json_is_read_or_a_format_error(meta: object, values: object, shapes: object) -> None:
    for data in (index(meta, values, shapes), index(values=values), index(shapes=shapes), index(meta)):
        try:
            parse_index(data, "x")
        except FormatError:
            continue


@given(
    st.sampled_from(Mode),
    st.integers(-1, 2**53),
    st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 2**53), st.integers(0, 2**53))
    ),
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"])), st.text("ab"), st.lists(st.integers(0, 2**53)).map(tuple)
        )
    ),
)
def test_what_was_written_is_read(
    mode: Mode, mode_step: int, places: list[tuple[str, int, int]], shapes: list[tuple[str, str, tuple[int, ...]]]
) -> None:
    names, starts, lengths = tuple(zip(*places, strict=True)) or ((), (), ())
    written = IndexFile(
        mode, mode_step, "events/x", names, np.array(starts, np.int64), np.array(lengths, np.int64), tuple(shapes)
    )

    read = parse_index(encode_index(written), "x")

    assert (read.mode, read.mode_step, read.event_file_name) == (mode, mode_step, "events/x")
    assert (read.names, read.shapes) == (names, tuple(shapes))
    assert (tuple(read.starts.tolist()), tuple(read.lengths.tolist())) == (starts, lengths)
