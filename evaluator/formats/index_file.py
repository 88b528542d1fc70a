"""Parses and encodes index files: what one worker saved at one step, and where in the event file it is.

Source:
    saved format of smdebug 1.0.34, section 3 (core/tfevent/index_file_writer.py, core/index_reader.py:211-283).
"""

from __future__ import annotations

import contextlib
import json
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from evaluator.errors import FormatError, Truncated, did_you_mean
from evaluator.modes import Mode

MOST_BYTES = 64 << 20
"""A larger JSON file is not read; ours. An index file has some 70 bytes per tensor."""

MOST_MEMORY = 1 << 28
"""JSON that would take more bytes when it is parsed is refused; ours: an index file of 500,000 tensors takes less."""

LONGEST_NAME = 1 << 14
"""Characters of a tensor's name; ours: names are kept for the whole job, those of real runs have some hundred."""

LARGEST_NUMBER = 1 << 53
"""Larger positions are refused; ours: beyond it JSON numbers stop being exact."""

_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxlist, _REPR.maxdict = 2, 4, 4
_REPR.maxstring = _REPR.maxlong = _REPR.maxother = 200

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,17}\s*")


@dataclass(frozen=True, slots=True, eq=False)
class IndexFile:
    """The content of one index file; the step and the worker are in its name only."""

    mode: Mode
    mode_step: int
    """As written: -1 occurs, where a mode was set before its first step."""
    event_file_name: str | None
    """Relative to the root of the trial; None when it is missing or empty, so that no value can be read."""
    names: tuple[str, ...]
    """The names of `tensor_payload` in write order; a name can occur twice, then the last one counts."""
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    shapes: tuple[tuple[str, str, tuple[int, ...]], ...]
    """Name, original name and shape of each entry of `shape_payload`, in write order."""


def parse_index(data: bytes, where: str) -> IndexFile:
    """The content of an index file.

    Raises:
        Truncated: the file is empty or cut; the writer may still be writing.
        FormatError: it is not what an index file has to be.
    """
    content = json_object(data, where)
    meta = _meta(content, where)
    if "tensor_payload" not in content and "shape_payload" not in content:
        raise FormatError(
            where, f"there are only the keys {short(sorted(content))}", "tensor_payload or shape_payload is missing"
        )
    values = _entries(content, "tensor_payload", where)
    event_file_name = _event_file_name(meta, where, needed=bool(values))
    names = _texts(_column(values, "tensorname", where), "tensorname", where)
    both = _column(values, "start_idx", where) + _column(values, "length", where)
    places = _numbers(both, "start_idx or length", where).reshape(2, -1)
    shapes = _shapes(_entries(content, "shape_payload", where), where)
    return IndexFile(*_modes(meta, where), event_file_name, tuple(names), places[0], places[1], shapes)


def parse_head(data: bytes, where: str) -> tuple[Mode, int, str]:
    """Mode, mode step and event file of an index file of which only the part with them is given, as a JSON object.

    Raises:
        FormatError: it is not what an index file has to be, or names no event file.
    """
    meta = _meta(json_object(data, where), where)
    event_file_name = _event_file_name(meta, where, needed=True)
    if event_file_name is None:
        raise FormatError(where, "'event_file_name' is empty", "a path relative to the trial would be right")
    return *_modes(meta, where), event_file_name


def encode_index(index: IndexFile) -> bytes:
    """The index file as the reference writes it."""
    payload = encode_payload(index.names, index.starts.tolist(), index.lengths.tolist(), index.shapes)
    return join_index(index.mode, index.mode_step, index.event_file_name, payload)


def join_index(mode: Mode, mode_step: int, event_file_name: str | None, payload: str) -> bytes:
    """An index file of what changes with every step, and of what `encode_payload` made."""
    meta = {"mode": mode.name, "mode_step": mode_step}
    if event_file_name is not None:
        meta["event_file_name"] = event_file_name
    return f'{{"meta": {json.dumps(meta)}, {payload[1:]}'.encode()


def encode_payload(
    names: Sequence[str],
    starts: Sequence[int],
    lengths: Sequence[int],
    shapes: Sequence[tuple[str, str, tuple[int, ...]]],
) -> str:
    """What stands beside the `meta`, as an object of its own."""
    places = zip(names, starts, lengths, strict=True)
    content = {
        "tensor_payload": [{"tensorname": name, "start_idx": at, "length": length} for name, at, length in places],
        "shape_payload": [
            {"tensorname": name, "originalname": original, "shape": shape} for name, original, shape in shapes
        ],
    }
    return json.dumps(content)


def json_object(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object in a file of a trial.

    Raises:
        Truncated: the file is empty, or ends before its object does.
        FormatError: it is too large, too deep or no JSON object.
    """
    if len(data) > MOST_BYTES:
        raise FormatError(where, f"the file has {len(data)} bytes", f"at most {MOST_BYTES} would be right")
    if not data.rstrip().endswith(b"}"):
        raise Truncated(where, f"the file has {len(data)} bytes and no closing brace", "a JSON object ends with one")
    if len(data) > 1 << 20 and _memory(data) > MOST_MEMORY:
        what = f"the file would take about {_memory(data)} bytes of memory"
        raise FormatError(where, what, f"at most {MOST_MEMORY} would be right")
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise FormatError(where, f"the file is no JSON: {error}", "a JSON object would be right") from error
    if not isinstance(content, dict):
        raise FormatError(where, f"the file holds {short(content)}", "a JSON object would be right")
    return content


def _memory(data: bytes) -> int:
    """About how many bytes the parsed objects take, by the marks that each begins or ends with."""
    return len(data) + 220 * data.count(b"{") + 64 * data.count(b"[") + 56 * data.count(b",")


def whole_number(value: object) -> int | None:
    """A number from JSON, also one that is written as text; None when it is no whole number of at most 2**53."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if type(value) is not int or abs(value) > LARGEST_NUMBER:
        return None
    return value


def short(value: object) -> str:
    """A value from JSON for a message: neither long nor deep, whatever the file holds."""
    return "missing" if value is None else _REPR.repr(value)


def _meta(content: dict[str, Any], where: str) -> dict[str, Any]:
    """What an index file says of all its entries."""
    meta = content.get("meta")
    if not isinstance(meta, dict) or not meta:
        raise FormatError(where, f"'meta' is {short(meta)}", "it holds mode, mode_step and event_file_name")
    return meta


def _modes(meta: dict[str, Any], where: str) -> tuple[Mode, int]:
    """The mode by its name, and the mode step."""
    mode_step = whole_number(meta.get("mode_step"))
    if mode_step is None:
        raise FormatError(where, f"'mode_step' is {short(meta.get('mode_step'))}", "a whole number would be right")
    name = meta.get("mode")
    stripped = name.strip() if isinstance(name, str) else ""
    if stripped in Mode.__members__:
        return Mode[stripped], mode_step
    raise FormatError(where, f"mode {short(name)} is not known", did_you_mean(stripped[:20], Mode.__members__))


def _event_file_name(meta: dict[str, Any], where: str, *, needed: bool) -> str | None:
    """The key of the event file, when it can only be one below the root of the trial."""
    name = meta.get("event_file_name")
    if name is None and not needed:
        return None
    if not isinstance(name, str):
        raise FormatError(where, f"'event_file_name' is {short(name)}", "a path relative to the trial would be right")
    if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
        raise FormatError(where, f"'event_file_name' {short(name)} leaves the trial", "a path below it would be right")
    return name or None


def _entries(content: dict[str, Any], key: str, where: str) -> list[Any]:
    """The entries of a payload, all of them objects; none when the key is missing."""
    entries = content.get(key, [])
    if not isinstance(entries, list) or not set(map(type, entries)) <= {dict}:
        raise FormatError(where, f"{key!r} is {short(entries)}", "a list of objects would be right")
    return entries


def _column(entries: Sequence[Any], key: str, where: str) -> list[Any]:
    """What all entries have under one key."""
    try:
        return list(map(itemgetter(key), entries))
    except KeyError as error:
        raise FormatError(where, f"an entry has no {key!r}", "each entry needs one") from error


def _texts(column: list[Any], key: str, where: str) -> list[str]:
    """A column, when it holds texts only."""
    if not set(map(type, column)) <= {str}:
        wrong = next(value for value in column if type(value) is not str)
        raise FormatError(where, f"{key!r} is {short(wrong)}", "a text would be right")
    if max(map(len, column), default=0) > LONGEST_NAME:
        longest = max(column, key=len)
        what = f"{key!r} {short(longest)} has {len(longest)} characters"
        raise FormatError(where, what, f"at most {LONGEST_NAME} would be right")
    return column


def _numbers(column: Sequence[Any], key: str, where: str) -> NDArray[np.int64]:
    """Numbers from 0 to 2**53; only where not all are numbers already, each is looked at by itself."""
    if set(map(type, column)) <= {int}:
        with contextlib.suppress(OverflowError):
            numbers = np.array(column, dtype=np.int64)
            if not numbers.size or (numbers.min() >= 0 and numbers.max() <= LARGEST_NUMBER):
                return numbers
    whole = [whole_number(value) for value in column]
    for number, value in zip(whole, column, strict=True):
        if number is None or number < 0:
            raise FormatError(where, f"{key} is {short(value)}", f"0 to {LARGEST_NUMBER} would be right")
    return np.array(whole, dtype=np.int64)


def _shapes(entries: Sequence[Any], where: str) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """The entries of `shape_payload`; an original name that is missing is the name itself."""
    if not entries:
        return ()
    names = _texts(_column(entries, "tensorname", where), "tensorname", where)
    originals = [entry.get("originalname", name) for entry, name in zip(entries, names, strict=True)]
    shapes = _column(entries, "shape", where)
    if not set(map(type, shapes)) <= {list}:
        raise FormatError(where, f"'shape' is {short(shapes)}", "a list of numbers would be right")
    flat = list(chain.from_iterable(shapes))
    sizes = _numbers(flat, "a size in 'shape'", where)
    if not set(map(type, flat)) <= {int}:
        numbers = iter(sizes.tolist())
        shapes = [islice(numbers, len(shape)) for shape in shapes]
    return tuple(zip(names, _texts(originals, "originalname", where), map(tuple, shapes), strict=True))
