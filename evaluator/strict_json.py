"""Strict JSON: what every output file is written in, whatever values and names a run holds."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import orjson

from evaluator.errors import FormatError

DEEPEST = 64
"""Values nested deeper than this are replaced by "...": a rule's details may be arbitrary, even circular."""

# Legal inside JSON strings, but a terminal acts on them: DEL, C1 controls, line separators, directions of writing.
_ACTED_ON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def dumps(value: Any, *, pretty: bool = False) -> bytes:
    """The value as UTF-8 JSON on one line, or indented; keys stay in their order.

    Raises:
        TypeError: a value of a type that has no JSON form.
    """
    separators = (",", ": ") if pretty else (",", ":")
    text = json.dumps(
        plain(value), ensure_ascii=False, allow_nan=False, indent=2 if pretty else None, separators=separators
    )
    return _ACTED_ON.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def loads(data: bytes | str, where: str = "JSON") -> Any:
    """The value of exactly one strict JSON document.

    Raises:
        FormatError: anything else: NaN, invalid UTF-8, trailing garbage, nesting without end.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise FormatError(where, f"is not strict JSON: {error}") from error


def plain(value: Any) -> Any:
    """The value built of dict, list, str, int, finite float, bool and None only.

    Raises:
        TypeError: a value of a type that has no JSON form.
    """
    return _plain(value, 0)


def number(value: float) -> float | str:
    """A number as outputs hold it: non-finite ones are "NaN", "Infinity", "-Infinity"."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def text(value: str) -> str:
    """The text with lone surrogates (names that were not UTF-8) written as backslash escapes."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | str | int | float):
        return _scalar(value)
    if depth >= DEEPEST:
        return "..."
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist(), depth + 1) if value.dtype.kind in "biufUSO" else _refused(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return _container(value, depth + 1)


def _scalar(value: str | float | None) -> str | float | None:
    if value is None or isinstance(value, bool):
        return value
    # by way of the builtin types, because members of an enumeration are both
    if isinstance(value, str):
        return text(value)
    return int(value) if isinstance(value, int) else number(float(value))


def _container(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        return {text(str(key)): _plain(item, depth) for key, item in value.items()}
    if isinstance(value, AbstractSet):
        # a set has no order of its own; two runs must still write the same line
        return sorted((_plain(item, depth) for item in value), key=repr)
    if isinstance(value, Sequence):
        return [_plain(item, depth) for item in value]
    return _refused(value)


def _refused(value: Any) -> Any:
    kind = f"array of {value.dtype}" if isinstance(value, np.ndarray | np.generic) else type(value).__name__
    raise TypeError(f"{kind} has no JSON form; numbers, texts, lists, mappings and numpy values have one")
