"""Reads values of documents that nobody vouches for: what is not in the form is as if it were not there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime


def table(value: object) -> Mapping[str, object]:
    """An object of names and values, or an empty one."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> Iterator[Mapping[str, object]]:
    """The objects of a list."""
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


def identified(document: object, key: str, identity: str) -> list[Mapping[str, object]] | None:
    """The objects that an answer of AWS lists under a key, as far as they have their identity; None without a list."""
    listed = table(document).get(key)
    return [one for one in tables(listed) if text(one.get(identity))] if isinstance(listed, list) else None


def text(value: object) -> str | None:
    """Text that is not empty."""
    return value if isinstance(value, str) and value.strip() else None


def texts(value: object) -> tuple[str, ...]:
    """The texts of a list."""
    return tuple(one for one in value if isinstance(one, str) and one) if isinstance(value, list) else ()


def whole(value: object) -> int | None:
    """A whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def real(value: object) -> float | None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def moment(value: object) -> float | None:
    """A time as boto3 gives it, or as the AWS command line writes it: seconds since the epoch."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, str):
        try:
            return moment(datetime.fromisoformat(value.strip()))
        except (ValueError, OverflowError):
            return None
    return real(value)
