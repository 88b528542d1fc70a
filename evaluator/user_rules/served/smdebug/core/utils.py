"""Small helpers."""

from evaluator.user_rules.core_utils import (
    flatten,
    get_region,
    index,
    is_s3,
    make_numpy_array,
    match_inc,
    setup_profiler_report,
    split,
    step_in_range,
)

__all__ = [
    "flatten",
    "get_region",
    "index",
    "is_s3",
    "make_numpy_array",
    "match_inc",
    "setup_profiler_report",
    "split",
    "step_in_range",
]
