"""Reductions and their saved names."""

from evaluator.user_rules.reductions import (
    ALLOWED_NORMS,
    ALLOWED_REDUCTIONS,
    REDUCTIONS_PREFIX,
    get_basic_numpy_reduction,
    get_numpy_reduction,
    get_reduction_tensor_name,
    reverse_reduction_tensor_name,
)

__all__ = [
    "ALLOWED_NORMS",
    "ALLOWED_REDUCTIONS",
    "REDUCTIONS_PREFIX",
    "get_basic_numpy_reduction",
    "get_numpy_reduction",
    "get_reduction_tensor_name",
    "reverse_reduction_tensor_name",
]
