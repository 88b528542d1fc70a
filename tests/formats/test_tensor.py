"""Tensor messages: every type and shape, typed values, text, and what is refused."""

from __future__ import annotations

import math
import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from evaluator.errors import FormatError
from evaluator.formats import tensor, wire
from evaluator.formats.tensor_encoding import encode

NUMERIC = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", "?"]
RAW_CODES = sorted(tensor.DTYPES)


def decode(data: bytes) -> NDArray[Any]:
    """The array of a whole TensorProto."""
    return tensor.decode(data, tensor.parse(data, 0, len(data), "t"), "t")


def message(code: int, shape: tuple[int, ...], *parts: bytes) -> bytes:
    """A TensorProto of a type and a shape, with further fields."""
    dims = b"".join(wire.bytes_field(2, wire.number_field(1, size)) for size in shape)
    return wire.number_field(1, code) + wire.bytes_field(2, dims) + b"".join(parts)


def alike(expected: NDArray[Any], actual: NDArray[Any]) -> bool:
    """Same type up to byte order, same shape, same bytes."""
    little = expected.astype(expected.dtype.newbyteorder("<"))
    return (little.dtype, little.shape, little.tobytes()) == (actual.dtype, actual.shape, actual.tobytes())


@given(
    st.sampled_from(NUMERIC).flatmap(
        lambda kind: npst.arrays(np.dtype(kind), npst.array_shapes(min_dims=0, min_side=0))
    )
)
def test_every_numeric_array_comes_back_with_its_bytes_type_and_shape(values: NDArray[Any]) -> None:
    assert alike(values, decode(encode(values, "x", "t")))


@given(npst.arrays(np.dtype(">f4"), npst.array_shapes(min_dims=0)))
def test_big_endian_values_are_converted(values: NDArray[Any]) -> None:
    assert alike(values, decode(encode(values, "x", "t")))


def test_values_that_are_not_contiguous_keep_their_order() -> None:
    values = np.arange(24.0).reshape(2, 3, 4).T[::2]

    assert alike(values, decode(encode(values, "x", "t")))


@given(
    npst.arrays(
        object,
        npst.array_shapes(min_dims=0, min_side=0),
        elements=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    )
)
def test_text_of_any_shape_comes_back(values: NDArray[Any]) -> None:
    read = decode(encode(values, "x", "t"))

    assert (read.dtype.kind, read.shape, read.tolist()) == ("U", values.shape, values.tolist())


@pytest.mark.parametrize("code", [0, 7])
def test_text_is_read_with_and_without_its_type(code: int) -> None:
    assert decode(message(code, (2,), wire.bytes_field(8, b"a"), wire.bytes_field(8, b"bcd"))).tolist() == ["a", "bcd"]


def test_text_that_is_not_utf8_stays_visible() -> None:
    assert decode(message(7, (1,), wire.bytes_field(8, b"a\xff"))).tolist() == ["a\\xff"]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
@pytest.mark.parametrize("code", RAW_CODES)
def test_an_empty_tensor_keeps_type_and_shape(code: int, shape: tuple[int, ...]) -> None:
    expected = np.float32 if code == tensor.BFLOAT16 else tensor.DTYPES[code]

    values = decode(message(code, shape))

    assert (values.dtype, values.shape) == (expected, shape)


def test_an_empty_text_tensor_keeps_its_shape() -> None:
    assert (decode(message(0, (0, 2))).shape, decode(message(0, (0,))).dtype.kind) == ((0, 2), "U")


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (1, (1,)),
        (1.5, (1,)),
        (True, (1,)),
        (np.float32(2), (1,)),
        ("x", (1,)),
        (np.array(3.0), ()),
        ([], (0,)),
        ([[1, 2]], (1, 2)),
    ],
)
def test_plain_numbers_have_one_dimension_and_arrays_without_any_keep_none(
    value: object, shape: tuple[int, ...]
) -> None:
    assert decode(encode(value, "x", "t")).shape == shape


def test_bfloat16_is_decoded_exactly() -> None:
    values = decode(message(14, (4,), wire.bytes_field(4, struct.pack("<4H", 0x3F80, 0xC049, 0x7F80, 0x0001))))

    assert (values.dtype, values.tolist()) == (np.dtype(np.float32), [1.0, -3.140625, math.inf, 2.0**-133])


def test_a_bool_byte_other_than_one_is_true() -> None:
    values = decode(message(10, (3,), wire.bytes_field(4, b"\x00\x01\x02")))

    assert (values.dtype, values.view(np.uint8).tolist()) == (np.dtype(bool), [0, 1, 1])


def test_negative_int8_stays_negative() -> None:
    assert decode(encode(np.array([-1, -128], np.int8), "x", "t")).tolist() == [-1, -128]


PACKED = [
    (1, 5, struct.pack("<2f", 1.5, -2), [1.5, -2]),
    (2, 6, struct.pack("<2d", 1.5, -2), [1.5, -2]),
    (3, 7, wire.encode_varint(-1) + b"\x96\x01", [-1, 150]),
    (4, 7, b"\x05\xff\x01", [5, 255]),
    (6, 7, wire.encode_varint(-128) + b"\x7f", [-128, 127]),
    (8, 9, struct.pack("<4f", 1, 2, 3, 4), [1 + 2j, 3 + 4j]),
    (9, 10, wire.encode_varint(-(2**63)) + wire.encode_varint(2**62), [-(2**63), 2**62]),
    (10, 11, b"\x00\x01", [False, True]),
    (14, 13, wire.encode_varint(0x3F80) + wire.encode_varint(0xC049), [1.0, -3.140625]),
    (18, 12, struct.pack("<4d", 1, 2, 3, 4), [1 + 2j, 3 + 4j]),
    (19, 13, wire.encode_varint(0x3C00) + wire.encode_varint(0xC000), [1.0, -2.0]),
    (22, 16, wire.encode_varint(2**32 - 1) + b"\x00", [2**32 - 1, 0]),
    (23, 17, wire.encode_varint(2**64 - 1) + b"\x00", [2**64 - 1, 0]),
]


@pytest.mark.parametrize(("code", "number", "content", "expected"), PACKED)
def test_packed_values_are_read(code: int, number: int, content: bytes, expected: list[complex]) -> None:
    assert decode(message(code, (2,), wire.bytes_field(number, content))).tolist() == expected


def test_values_that_are_not_packed_are_read() -> None:
    floats = message(1, (2,), *(wire.encode_varint(5 << 3 | 5) + struct.pack("<f", value) for value in (1, 2)))
    numbers = message(3, (2,), *(wire.encode_varint(7 << 3) + wire.encode_varint(value) for value in (0, -3)))

    assert (decode(floats).tolist(), decode(numbers).tolist()) == ([1, 2], [0, -3])


def test_the_last_of_too_few_single_values_is_repeated() -> None:
    values = decode(message(1, (2, 2), wire.bytes_field(5, struct.pack("<2f", 1, 2))))

    assert values.tolist() == [[1, 2], [2, 2]]


REFUSED = {
    "more bytes than the shape": message(1, (1,), wire.bytes_field(4, bytes(8))),
    "a shape larger than its bytes": message(1, (1 << 40,), wire.bytes_field(4, bytes(8))),
    "many huge dimensions": message(1, (1 << 62,) * 20, wire.bytes_field(4, bytes(8))),
    "an empty array numpy cannot hold": message(1, (0, 1 << 62, 1 << 62)),
    "a repeated value that fills the memory": message(1, (1 << 40,), wire.bytes_field(5, bytes(4))),
    "no values at all": message(1, (2,)),
    "a negative dimension": message(1, (-1,)),
    "too many dimensions": message(1, (1,) * 33, wire.bytes_field(4, bytes(4))),
    "a type that is not known": message(24, (1,), wire.bytes_field(4, b"1")),
    "a type far off": message(1 << 62, (1,)),
    "raw bytes without a type": message(0, (1,), wire.bytes_field(4, bytes(4))),
    "more values than the shape": message(1, (1,), wire.bytes_field(5, bytes(8))),
    "half a value": message(1, (1,), wire.bytes_field(5, bytes(3))),
    "half a complex value": message(8, (1,), wire.bytes_field(9, bytes(4))),
    "a number beyond its type": message(4, (1,), wire.bytes_field(7, b"\x80\x02")),
    "a packed number without an end": message(3, (1,), wire.bytes_field(7, b"\x80")),
    "an overlong packed number": message(3, (1,), wire.bytes_field(7, b"\x80" * 10 + b"\x01")),
    "an overlong number": b"\x08" + b"\x80" * 10 + b"\x01",
    "a number of more than 64 bits": b"\x08" + b"\xff" * 9 + b"\x02",
    "two shapes": message(1, (1,), wire.bytes_field(2, b""), wire.bytes_field(4, bytes(4))),
    "a group": b"\x0b\x0c",
    "field number zero": b"\x00\x00",
    "a shape that is a number": b"\x10\x01",
    "a length beyond the end": b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    "text without strings": message(7, (2,)),
    "one long string beside many": message(7, (1 << 20,), wire.bytes_field(8, b"x" * 1000), wire.bytes_field(8, b"")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_a_format_error(name: str) -> None:
    with pytest.raises(FormatError):
        decode(REFUSED[name])


@pytest.mark.parametrize("number", [b"\x80" * 10 + b"\x01", b"\xff" * 9 + b"\x02", b"\x80", b""])
def test_a_number_of_more_than_64_bits_or_without_an_end_is_refused(number: bytes) -> None:
    with pytest.raises(FormatError, match="the number at byte 0 does not end; at most 64 bits"):
        wire.varint(number, 0, len(number), "t")


@pytest.mark.parametrize(
    "data",
    [
        message(18, (1 << 26,), wire.bytes_field(12, bytes(16))),
        message(7, (1000,), wire.bytes_field(8, b"") * 999, wire.bytes_field(8, b"x" * 60_000)),
        message(3, (1 << 23,), wire.bytes_field(7, bytes(1 << 23))),
    ],
    ids=["one value repeated", "one long text", "packed numbers"],
)
def test_a_small_message_does_not_become_a_huge_array(data: bytes) -> None:
    """A record of sixty bytes stood for an array of a gigabyte."""
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="at most"):
            decode(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < len(data) + (1 << 25)


def test_an_unsupported_type_is_named() -> None:
    with pytest.raises(FormatError, match="t: dtype 24 is unsupported; 7 or none for text, or one of 1, 2"):
        decode(REFUSED["a type that is not known"])


def test_a_wrong_size_is_told_with_the_right_one() -> None:
    with pytest.raises(FormatError, match=r"the content has 8 bytes; shape \[1\] of float32 takes 4 bytes"):
        decode(REFUSED["more bytes than the shape"])


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        b"x",
        np.array([b"x"]),
        np.datetime64("2020-01-01"),
        [[1], [1, 2]],
        [2**70],
        ["a", None],
        "\ud800",
        np.longdouble(1),
        np.zeros(1, "i4,i4"),
    ],
)
def test_what_the_format_has_no_type_for_is_refused(value: object) -> None:
    with pytest.raises(FormatError):
        encode(value, "x", "t")


@given(st.binary(max_size=60), st.sampled_from([*RAW_CODES, 0, 7]))
def test_any_bytes_behind_a_type_are_values_or_a_format_error(data: bytes, code: int) -> None:
    try:
        values = decode(wire.number_field(1, code) + data)
    except FormatError:
        return
    assert isinstance(values, np.ndarray)
