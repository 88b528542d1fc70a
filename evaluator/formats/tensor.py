"""Turns the tensor message of an event into a numpy array.

Source:
    saved format of smdebug 1.0.34, section 5.1 to 5.3 (TensorProto, tensor_shape is field 2, dims are field 2);
    typed values as in TensorFlow's tensor.proto and Tensor::FromProto.
    Unlike the reference we decode every numeric type, and empty and text tensors of every shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import FormatError
from evaluator.formats import wire

DTYPE, SHAPE, CONTENT, STRING_VAL = 1, 2, 4, 8
"""Field numbers of TensorProto. Source: saved format, section 5.1."""

DIM = 2
"""Field number of a dimension in TensorShapeProto; its size is field 1, its name 2. Source: the same."""

_DIM_KINDS = {1: wire.VARINT}

TEXT_CODES = (0, 7)
"""Strings have no type in event files of smdebug, DT_STRING elsewhere. Source: saved format, section 5.2."""

BFLOAT16, BOOL = 14, 10

DTYPES: dict[int, np.dtype[Any]] = {
    code: np.dtype(name)
    for code, name in {
        1: "<f4", 2: "<f8", 3: "<i4", 4: "|u1", 5: "<i2", 6: "|i1", 8: "<c8", 9: "<i8", BOOL: "|b1",
        11: "|i1", 12: "|u1", 13: "<i4", BFLOAT16: "<u2", 15: "<i2", 16: "<u2",
        17: "<u2", 18: "<c16", 19: "<f2", 22: "<u4", 23: "<u8",
    }.items()
}  # fmt: skip
"""Type code -> what an element is in raw content; bfloat16 as its 16 bits, quantized types as plain integers.

Source: saved format, section 5.2; TensorFlow's types.proto.
"""

_TYPED_FIELDS = {
    1: 5, 2: 6, 8: 9, 9: 10, BOOL: 11, 18: 12, BFLOAT16: 13, 19: 13, 22: 16, 23: 17,
    3: 7, 4: 7, 5: 7, 6: 7, 11: 7, 12: 7, 13: 7, 15: 7, 16: 7, 17: 7,
}  # fmt: skip
"""Type code -> number of the field that holds single values. Source: TensorFlow's tensor.proto."""

_FLOAT_KINDS = {"<f4": wire.FIXED32, "<c8": wire.FIXED32, "<f8": wire.FIXED64, "<c16": wire.FIXED64}
"""Numpy type -> wire type of a single value that is not a varint; complex values are pairs of floats."""

_TYPED_NUMBERS = frozenset(_TYPED_FIELDS.values()) | {STRING_VAL}

MOST_DIMENSIONS = 32
"""Source: the limit of numpy before version 2."""

MOST_IMPLIED, MOST_EMPTY = 1 << 20, 1 << 26
"""Elements that a shape may claim without bytes: the last value repeated, other dimensions of an empty one; ours."""

MOST_SINGLE_VALUES = 1 << 19
"""Values of a tensor that stand in a field each; ours, each takes some 200 bytes while it is decoded."""

MOST_TEXT_BYTES = 1 << 25
"""Size of a numpy text array, where the longest string sets the width of all; ours."""


@dataclass(slots=True)
class StoredTensor:
    """A tensor as it stands in the data, not decoded yet; the positions are absolute."""

    code: int = 0
    shape: tuple[int, ...] = ()
    content_start: int = 0
    content_stop: int = 0
    header_stop: int = 0
    """Where the last field that says type or shape ends."""
    singles: dict[int, list[wire.Field]] = field(default_factory=dict)
    """Field number -> fields with values outside of the raw content."""

    @property
    def raw(self) -> np.dtype[Any] | None:
        """The numpy type of its content, when these bytes can be used as they are."""
        usable = self.content_stop > self.content_start and self.code not in (BFLOAT16, BOOL, *TEXT_CODES)
        return DTYPES.get(self.code) if usable else None

    def size(self, where: str) -> int:
        """The number of elements that the shape claims.

        Raises:
            FormatError: numpy could not hold such an array, or the raw content has another size.
        """
        count = math.prod(self.shape)
        have = self.content_stop - self.content_start
        dtype = DTYPES.get(self.code)
        if dtype is None and (self.code not in TEXT_CODES or have):
            known = ", ".join(map(str, sorted(DTYPES)))
            raise FormatError(where, f"dtype {self.code} is unsupported", f"7 or none for text, or one of {known}")
        if dtype is not None and have and have != count * dtype.itemsize:
            wanted = f"shape {list(self.shape)} of {dtype} takes {count * dtype.itemsize} bytes"
            raise FormatError(where, f"the content has {have} bytes", wanted)
        most = MOST_IMPLIED if count else MOST_EMPTY
        if not have and math.prod(filter(None, self.shape)) > most:
            raise FormatError(where, f"shape {list(self.shape)} has no bytes", f"at most {most} elements without bytes")
        return count


def parse(data: bytes | memoryview, start: int, stop: int, where: str) -> StoredTensor:
    """Finds type, shape and values of the TensorProto between `start` and `stop`."""
    found = StoredTensor()
    shapes = singles = 0
    for item in wire.fields(data, start, stop, where):
        if item.number == DTYPE:
            found.code = wire.expect(item, wire.VARINT, where).value
            found.header_stop = item.stop
        elif item.number == SHAPE:
            shapes += 1
            found.shape = _parse_shape(data, wire.expect(item, wire.BYTES, where), where)
            found.header_stop = item.stop
        elif item.number == CONTENT:
            _, _, found.content_start, found.content_stop, _ = wire.expect(item, wire.BYTES, where)
        elif item.number in _TYPED_NUMBERS:
            singles += 1
            found.singles.setdefault(item.number, []).append(item)
        if shapes > 1 or singles > MOST_SINGLE_VALUES:
            most = f"one shape, at most {MOST_SINGLE_VALUES} single values"
            raise FormatError(where, f"{shapes} shapes and {singles} single values so far", most)
    return found


def decode(data: bytes | memoryview, stored: StoredTensor, where: str) -> NDArray[Any]:
    """The values; raw content is not copied, so the array may be read-only.

    Returns:
        bfloat16 as float32, strings as numpy text; bytes that are not UTF-8 stay visible as backslash escapes.
    """
    count = stored.size(where)
    if stored.code in TEXT_CODES:
        return _fill(_texts(data, stored, count, where), count, where).reshape(stored.shape)
    dtype = DTYPES[stored.code]
    if stored.content_stop > stored.content_start:
        values = np.frombuffer(memoryview(data)[stored.content_start : stored.content_stop], dtype)
        if stored.code == BOOL:
            # A byte other than 0 and 1 would make a numpy bool that does not equal True.
            values = values.view(np.uint8) != 0
    else:
        values = _fill(_single_values(data, stored, dtype, where), count, where)
    if stored.code == BFLOAT16:
        values = (values.astype("<u4") << np.uint32(16)).view("<f4")
    return values.reshape(stored.shape)


def _parse_shape(data: bytes | memoryview, shape: wire.Field, where: str) -> tuple[int, ...]:
    """The sizes of all dimensions; a size that is not written is 0."""
    sizes = []
    for dim in wire.fields(data, shape.start, shape.stop, where):
        if dim.number != DIM:
            continue
        item = wire.latest(data, wire.expect(dim, wire.BYTES, where).start, dim.stop, _DIM_KINDS, where).get(1)
        size = wire.signed(item.value) if item is not None else 0
        sizes.append(size)
        if size < 0 or len(sizes) > MOST_DIMENSIONS:
            most = f"at most {MOST_DIMENSIONS} dimensions of size 0 or more"
            raise FormatError(where, f"dimension {len(sizes)} has size {size}", most)
    return tuple(sizes)


def _single_values(data: bytes | memoryview, stored: StoredTensor, dtype: np.dtype[Any], where: str) -> NDArray[Any]:
    """The values of the typed fields, packed or not."""
    items = stored.singles.get(_TYPED_FIELDS[stored.code], [])
    if dtype.str in _FLOAT_KINDS:
        kind = _FLOAT_KINDS[dtype.str]
        floats = wire.joined(data, items, kind, where)
        if len(floats) % dtype.itemsize:
            raise FormatError(where, f"the values have {len(floats)} bytes", f"one value has {dtype.itemsize}")
        return np.frombuffer(floats, dtype)
    numbers = wire.varints(wire.joined(data, items, wire.VARINT, where), where)
    if dtype.kind == "b":
        return np.not_equal(numbers, 0, dtype=bool)
    bits = np.dtype("<u2") if dtype.kind == "f" else dtype
    whole = numbers if bits == np.dtype("<u8") else numbers.view(np.int64)
    narrow = whole.astype(bits)
    if (narrow.astype(whole.dtype) != whole).any():
        raise FormatError(where, f"a value does not fit {bits}", "a value in the range of the type would")
    return narrow.view(dtype)


def _texts(data: bytes | memoryview, stored: StoredTensor, count: int, where: str) -> NDArray[Any]:
    """The strings, one-dimensional."""
    items = stored.singles.get(STRING_VAL, [])
    spans = (wire.expect(item, wire.BYTES, where) for item in items)
    texts = [str(data[span.start : span.stop], "utf-8", "backslashreplace") for span in spans]
    width = max(map(len, texts), default=0) or 1
    if max(count, len(texts)) * width * 4 > MOST_TEXT_BYTES:
        what = f"{max(count, len(texts))} strings of up to {width} characters"
        raise FormatError(where, what, f"at most {MOST_TEXT_BYTES} bytes as a table of equal widths would be right")
    return np.array(texts, dtype=f"<U{width}")


def _fill(values: NDArray[Any], count: int, where: str) -> NDArray[Any]:
    """As many values as the shape claims: the last one is repeated, as TensorFlow does."""
    if len(values) == count:
        return values
    if not len(values) or len(values) > count:
        raise FormatError(where, f"there are {len(values)} values", f"as many as shape has, {count}")
    filled = np.full(count, values[-1], dtype=values.dtype)
    filled[: len(values)] = values
    return filled
