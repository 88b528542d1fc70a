"""Turns a numpy array into the tensor message of an event.

Source:
    saved format of smdebug 1.0.34, section 5.1 to 5.3 (TensorProto; dimensions have names).
    Unlike the reference we write text of every shape, and types that it does not know.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import FormatError
from evaluator.formats import wire
from evaluator.formats.tensor import BOOL, CONTENT, DIM, DTYPE, DTYPES, SHAPE, STRING_VAL

_CODES = {DTYPES[code].str[1:]: code for code in (1, 2, 3, 4, 5, 6, 8, 9, BOOL, 17, 18, 19, 22, 23)}
"""Numpy type without its byte order -> type code that is written for it."""

MOST_REMEMBERED = 1 << 14
"""Tensors of which the encoded description is kept for the next step; ours, each takes some hundred bytes."""


def encode(values: object, name: str, where: str) -> bytes:
    """The TensorProto of a tensor, with dimensions named `<name>_<size>`.

    Types beyond float16/32/64, int32/64, uint8, bool, complex128 and one-dimensional text are for readers
    other than the reference.
    """
    return b"".join(encode_parts(values, name, where))


def encode_parts(values: object, name: str, where: str) -> tuple[bytes, bytes | memoryview]:
    """The TensorProto in two parts, of which the second, the content, is the memory of the values where that can be."""
    array = _as_array(values, where)
    if array.dtype.kind in "TUO":
        texts = array.ravel().tolist()
        if all(isinstance(text, str) for text in texts):
            contents = (wire.encode_text(text, where, "a string") for text in texts)
            strings = b"".join(wire.bytes_field(STRING_VAL, content) for content in contents)
            return _encode_shape(name, array.shape), strings
    order, kind = array.dtype.str[0], array.dtype.str[1:]
    code = _CODES.get(kind)
    if code is None:
        known = ", ".join(str(DTYPES[code]) for code in _CODES.values())
        raise FormatError(where, f"numpy type {array.dtype} cannot be saved", f"text or one of {known}")
    if order == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    head = _encode_head(name, code, array.shape, array.nbytes)
    if not array.nbytes:
        return head, b""
    return head, array.data if array.flags.c_contiguous else array.tobytes()


@lru_cache(MOST_REMEMBERED)
def _encode_head(name: str, code: int, shape: tuple[int, ...], size: int) -> bytes:
    """Everything before the content, which a tensor has at every step."""
    content = wire.bytes_header(CONTENT, size) if size else b""
    return wire.number_field(DTYPE, code) + _encode_shape(name, shape) + content


def _encode_shape(name: str, shape: tuple[int, ...]) -> bytes:
    """The field with the dimensions."""
    sizes = [wire.number_field(1, size) + wire.bytes_field(2, f"{name}_{size}".encode()) for size in shape]
    return wire.bytes_field(SHAPE, b"".join(wire.bytes_field(DIM, size) for size in sizes))


def _as_array(values: object, where: str) -> NDArray[Any]:
    """The values as an array; a plain number or text has shape (1,).

    Source:
        saved format, section 5.3 (core/utils.py:133-147).
    """
    try:
        array: NDArray[Any] = np.asarray([values] if np.isscalar(values) else values)
    except (TypeError, ValueError, RuntimeError) as error:
        # What frameworks raise when a tensor is on a device, needs a gradient, or has no numpy type.
        raise FormatError(where, f"{type(values).__name__} is no array: {error}", "what numpy.asarray takes") from error
    return array
