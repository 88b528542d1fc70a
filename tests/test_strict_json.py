"""Output files are strict JSON whatever values and names a run holds."""

from __future__ import annotations

import json
import math
from enum import IntEnum, StrEnum
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import FormatError
from evaluator.strict_json import dumps, loads, number, plain, text

TEXTS = st.text(st.characters(codec=None), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


class Colour(StrEnum):
    RED = "red"


class Count(IntEnum):
    ONE = 1


@given(VALUES)
def test_whatever_is_written_a_strict_reader_reads_back(value: Any):
    assert loads(dumps(value)) == orjson.loads(dumps(value, pretty=True)) == plain(value)


@given(VALUES)
def test_nothing_written_can_steer_a_terminal(value: Any):
    written = dumps(value).decode()

    assert all(character.isprintable() or not character.isascii() for character in written)
    assert not any(character in written for character in "\x9b\x85\u2028\u202e\u2066")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, b'"NaN"'),
        (math.inf, b'"Infinity"'),
        (-math.inf, b'"-Infinity"'),
        (np.float32("nan"), b'"NaN"'),
        (np.float16(0.5), b"0.5"),
        (np.int64(7), b"7"),
        (np.bool_(True), b"true"),
        (np.str_("a"), b'"a"'),
        (np.array([[1, 2], [3, 4]], dtype=np.uint8), b"[[1,2],[3,4]]"),
        (np.array(math.inf), b'"Infinity"'),
        (np.array(["a", None], dtype=object), b'["a",null]'),
        (np.zeros((0, 3)), b"[]"),
        (b"a\xff", b'"a\\\\xff"'),
        ((1, True, None), b"[1,true,null]"),
        ({3, 1, 2}, b"[1,2,3]"),
        (range(3), b"[0,1,2]"),
        ({1: 2}, b'{"1":2}'),
        (Colour.RED, b'"red"'),
        (Count.ONE, b"1"),
        (2**70, b"1180591620717411303424"),
        ("\x00\x1b\x7f\x9b", b'"\\u0000\\u001b\\u007f\\u009b"'),
        ("\ud800", b'"\\\\ud800"'),
        ("é", '"é"'.encode()),
    ],
)
def test_a_value_has_this_form(value: Any, expected: bytes):
    assert dumps(value) == expected


def test_keys_stay_in_their_order():
    assert dumps({"b": 1, "a": 2}) == b'{"b":1,"a":2}'


def test_pretty_is_the_same_value_on_many_lines():
    assert dumps({"a": [1]}, pretty=True) == b'{\n  "a": [\n    1\n  ]\n}'


def test_nesting_without_end_is_cut():
    circle: list[Any] = []
    circle.append(circle)

    assert b'"..."' in dumps(circle)


@pytest.mark.parametrize("value", [1 + 2j, object(), np.array([1j]), np.datetime64("2020-01-01"), {"a": [object()]}])
def test_a_value_without_a_json_form_is_refused_by_its_type(value: Any):
    with pytest.raises(TypeError, match="has no JSON form; numbers, texts"):
        dumps(value)


@pytest.mark.parametrize(
    "data",
    [
        b"NaN",
        b"[Infinity]",
        b"{} x",
        b"{}{}",
        b"",
        b'{"a":',
        b'"\xff"',
        b'"\\ud800"',
        b"\xef\xbb\xbf{}",
        b"[" * 5000 + b"]" * 5000,
        b"[1,]",
        b'"\n"',
    ],
)
def test_what_is_not_strict_is_refused_with_its_place(data: bytes):
    with pytest.raises(FormatError, match=r"status\.json: is not strict JSON"):
        loads(data, "status.json")


def test_a_finite_number_stays_itself():
    assert (number(0.5), number(math.nan)) == (0.5, "NaN")


def test_text_stays_itself_but_for_lone_surrogates():
    assert text("a\x00é🙂\udcff") == "a\x00é🙂\\udcff"


def test_the_standard_library_reads_the_same():
    value = {"a\x85\u2028": [1.5, "b\x7f"]}

    assert json.loads(dumps(value)) == value
