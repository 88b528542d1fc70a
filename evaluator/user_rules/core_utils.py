"""Small helpers that rule files and their tests import from `smdebug.core.utils`.

Source:
    smdebug-api.md, section 8; results compared with smdebug 1.0.34 by `make conformance`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from evaluator.segments import Array
from evaluator.user_rules import environment
from evaluator.user_rules.exceptions import SMDebugTypeError, SMDebugValueError

_S3 = re.compile(r"s3://([^/]+)/?(.*)", re.DOTALL)


def is_s3(path: str) -> tuple[bool, str | None, str | None]:
    """Whether the path is on S3, and its bucket and key."""
    match = _S3.fullmatch(path)
    return (True, match[1], match[2]) if match else (False, None, None)


def match_inc(tname: str, include: Iterable[str]) -> bool:
    """Whether any of the patterns is found in the name."""
    return any(re.search(pattern, tname) for pattern in include)


def make_numpy_array(x: object) -> Array:
    """An array; of a single number or text one with one element."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, tuple | list | dict):
        return np.asarray(x)
    raise SMDebugTypeError(f"_make_numpy_array does not support the type {type(x)}")


def flatten(lis: Iterable[Any]) -> list[Any]:
    """The items of nested lists, one after the other; texts and tuples stay whole."""
    items: list[Any] = []
    for item in lis:
        items.extend(flatten(item) if isinstance(item, list) else [item])
    return items


def split(comma_separated_string: str) -> list[str]:
    """The parts between commas, without blanks around them."""
    return [part.strip() for part in comma_separated_string.split(",")]


def index(sorted_list: Sequence[Any], elem: Any) -> int:
    """Where the element is in a sorted list."""
    at = bisect_left(sorted_list, elem)
    if at == len(sorted_list) or sorted_list[at] != elem:
        raise SMDebugValueError(f"Could not find {elem} in the list")
    return at


def step_in_range(range_steps: tuple[int | None, int | None], step: int) -> bool:
    """Whether the step is in the half-open range, either end of which may be open."""
    begin, end = range_steps
    return (begin is None or step >= begin) and (end is None or step < end)


def get_region() -> str | None:
    """The AWS region that the environment names."""
    return environment.text(environment.REGION)


def setup_profiler_report(processing_job_arn: str, opt_out: bool = False) -> None:
    """Nothing: the reference sends the job's name to an AWS address, this does not."""
