"""Builds and parses the names under which reductions of tensors are saved.

Source:
    saved format of smdebug 1.0.34, section 6 (core/reductions.py:46-69).
"""

from __future__ import annotations

from evaluator.errors import FormatError, did_you_mean

REDUCTION_MARK = "smdebug/reductions/"

_OPERATIONS = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2")

REDUCTIONS = frozenset(_OPERATIONS) | frozenset(f"abs_{operation}" for operation in _OPERATIONS)
"""The reductions that Debugger knows, plain and of the absolute values."""


def parse_saved_name(saved: str) -> tuple[str, str | None]:
    """The tensor a saved name belongs to, and the reduction it holds; None for the tensor itself.

    A name with the mark but with an unknown reduction or without a tensor is that of a plain tensor.
    """
    mark = saved.find(REDUCTION_MARK)
    if mark < 0:
        return saved, None
    reduction, _, base = saved[mark + len(REDUCTION_MARK) :].partition("/")
    return (base, reduction) if base and reduction in REDUCTIONS else (saved, None)


def reduction_name(reduction: str, name: str) -> str:
    """The name under which a reduction of a tensor is saved."""
    if reduction not in REDUCTIONS:
        raise FormatError(name, f"reduction {reduction!r} is not known", did_you_mean(reduction, REDUCTIONS))
    return f"{REDUCTION_MARK}{reduction}/{name}"
