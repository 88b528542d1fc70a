"""Reductions by the names of the API, and the names under which they are saved.

Source:
    smdebug-api.md, sections 7 and 8. `l1` and `l2` are over the flattened tensor, as hooks save them, and everything
    but the smallest and largest element is accumulated in float64; the reference differs (smdebug-review.md, R15).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from evaluator.formats.reduction_names import REDUCTION_MARK as REDUCTIONS_PREFIX
from evaluator.reductions import REDUCTIONS
from evaluator.segments import Array, Segments
from evaluator.user_rules.configs import ALLOWED_NORMS, ALLOWED_REDUCTIONS
from evaluator.user_rules.exceptions import SMDebugTypeError, SMDebugValueError

__all__ = [
    "ALLOWED_NORMS",
    "ALLOWED_REDUCTIONS",
    "REDUCTIONS_PREFIX",
    "get_basic_numpy_reduction",
    "get_numpy_reduction",
    "get_reduction_tensor_name",
    "reverse_reduction_tensor_name",
]

_OF_NOTHING = {"sum": 0.0, "prod": 1.0, "l1": 0.0, "l2": 0.0}
_COLON_INDEX = re.compile(r":\d+")


def get_numpy_reduction(reduction_name: str, numpy_data: Array, abs: bool = False) -> Any:  # noqa: A002 - the API's
    """One number for all elements, or for their magnitudes; of an empty array NaN where there is no such number.

    Raises:
        SMDebugValueError: there is no such reduction.
        SMDebugTypeError: the elements are no numbers.
    """
    if reduction_name not in ALLOWED_REDUCTIONS and reduction_name not in ALLOWED_NORMS:
        raise SMDebugValueError(f"Invalid reduction type {reduction_name}")
    array = np.asarray(numpy_data)
    if array.dtype.kind not in "biufc":
        raise SMDebugTypeError(f"{reduction_name} of {array.dtype} is not known; a reduction is of numbers")
    if not array.size:
        return np.float64(_OF_NOTHING.get(reduction_name, np.nan))
    if reduction_name in {"min", "max"} and array.dtype.kind in "iuf" and not abs:
        # the element itself, in its own type
        return array.min() if reduction_name == "min" else array.max()
    name = f"abs_{reduction_name}" if abs else reduction_name
    with np.errstate(all="ignore"):  # infinite elements make infinite or NaN sums, which is the answer
        return np.float64(REDUCTIONS[name](Segments.of([array]))[0])


def get_basic_numpy_reduction(reduction_name: str, numpy_data: Array) -> Any:
    """The same for reductions that are no norms; None for any other name."""
    return get_numpy_reduction(reduction_name, numpy_data) if reduction_name in ALLOWED_REDUCTIONS else None


def get_reduction_tensor_name(
    tensorname: str,
    reduction_name: str,
    abs: bool,  # noqa: A002 - the API's
    remove_colon_index: bool = True,
) -> str:
    """The name under which a reduction is saved; most hooks leave out `:0`."""
    base = _COLON_INDEX.sub("", tensorname) if remove_colon_index else tensorname
    return f"{REDUCTIONS_PREFIX}{'abs_' if abs else ''}{reduction_name}/{base}"


def reverse_reduction_tensor_name(reduction_tensor_name: str) -> tuple[str, str, bool]:
    """The tensor, the reduction and whether it is of magnitudes, from the name it is saved under."""
    reduction, _, base = reduction_tensor_name.partition(REDUCTIONS_PREFIX)[2].partition("/")
    return base, reduction.removeprefix("abs_"), reduction.startswith("abs_")
