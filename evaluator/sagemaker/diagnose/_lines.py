"""The lines of a log's file, one after the other, whatever their length and whoever wrote it down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

LONGEST = 16_384
"""Bytes that are looked at together; longer lines are looked at in pieces."""


def lines_of(file: BinaryIO) -> Iterator[tuple[int, str, float | None]]:
    """The lines of a file with their numbers; of what CloudWatch answers, written down as JSON, messages and times.

    A long line comes in pieces, and progress bars, which return to the start of their line, one by one.
    """
    at: float | None = None
    events = False
    number, whole = 0, True
    while data := file.readline(LONGEST):
        number += whole
        whole = data.endswith(b"\n")
        text = data.decode("utf-8", "replace")
        key, value = _member(text) if text.lstrip(" \t").startswith('"') else ("", "")
        if not key:
            if not events:
                yield from ((number, one, None) for one in text.rstrip("\r\n").split("\r"))
            continue
        events = True
        if key == "timestamp":
            at = _milliseconds(value)
        elif key == "message":
            yield from ((number, one, at) for one in _unquoted(value).splitlines() or [""])


def _member(text: str) -> tuple[str, str]:
    """The key and value of a line of an event as CloudWatch answers it, or nothing."""
    key, colon, value = text.strip().partition(": ")
    name = key.strip('"')
    return (name, value.removesuffix(",")) if colon and name in ("message", "timestamp", "logStreamName") else ("", "")


def _unquoted(value: str) -> str:
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    return parsed if isinstance(parsed, str) else value


def _milliseconds(value: str) -> float | None:
    return int(value) / 1000 if value.isdecimal() and len(value) < 16 else None
