"""What rules about values that are not finite share: counting them, and telling an alarm from what is meant to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from evaluator.rule import Accumulator, Measure, Row, State, grown
from evaluator.segments import Array, Bools, Floats, Segments

NAN, INF = float("nan"), float("inf")

FAITHFUL = ("min", "max", "abs_min", "abs_max", "l1", "abs_l1", "l2", "abs_l2", "abs_mean", "abs_sum")
"""Reductions that are NaN only if an element is."""
CANCELLING = ("mean", "sum", "std", "variance", "abs_std", "abs_variance")
"""Reductions that can also become NaN where infinities are subtracted from each other."""

STEPS, WINDOW = 3, 10
"""A gradient that is not finite at so many of its last saved values is no matter of loss scaling.

PyTorch's GradScaler tries twice the scale after 2000 good steps, and loses one step where that is too high.
"""
FIRST_STEPS = 20
"""So many values may be lost before the first finite one: scalers begin between 2^16 and 2^32 and halve every time."""

REMEMBERED = 63
"""How many of the last saved values of a tensor are remembered, one bit each."""


def not_finite(segments: Segments) -> Floats:
    """(tensors, 2): how many elements are NaN, and how many are infinite."""
    counts = np.zeros((len(segments), 2))
    finite = np.isfinite(segments.flat)
    if not finite.all():
        counts[:, 0] = segments.sum(np.isnan(segments.flat))
        counts[:, 1] = segments.sum(~finite) - counts[:, 0]
    return counts


def shown_by_reductions(saved: Mapping[str, Floats]) -> Floats:
    """(tensors, 2): 1 where saved reductions show that there is a NaN, or something infinite.

    Our choice: a sum, mean, norm or deviation that is infinite does not count where the largest magnitude, or smallest
    and largest value, are finite, because training scripts compute reductions in the tensor's own type, and half
    precision overflows at 65504 (seen in smdebug 1.0.34). Products are not looked at: they overflow on healthy data.
    """
    tensors = len(next(iter(saved.values())))
    bounded = np.zeros(tensors, np.bool_)
    for bounds in (("abs_max",), ("min", "max")):
        if all(name in saved for name in bounds):
            bounded |= np.logical_and.reduce([np.isfinite(saved[name]) for name in bounds])
    infinite = np.logical_or.reduce([np.isinf(values) for values in saved.values()]) & ~bounded
    nan = np.zeros(tensors, np.bool_)
    for name, values in saved.items():
        nan |= np.isnan(values) & (~infinite if name in CANCELLING else True)
    return np.stack([nan, infinite], axis=1).astype(np.float64)


NOT_FINITE = Measure(
    not_finite, width=2, kinds="fc", reductions=(*FAITHFUL, *CANCELLING), from_reductions=shown_by_reductions
)


def start() -> dict[str, Array]:
    """Nothing was saved yet."""
    return {
        "saved": np.zeros(0, np.int64),
        "finite": np.zeros(0, np.int64),
        "last": np.zeros(0, np.uint64),
        "since": np.zeros(0, np.int64),
        "before": np.zeros(0, np.int64),
        "nan": np.zeros(0),
        "inf": np.zeros(0),
        "step": np.array([-1], np.int64),
    }


def add(state: dict[str, Array], row: Row) -> dict[str, Array]:
    """Per column what is known of its past.

    saved: values so far; finite: values since the first finite one, itself included, 0 before it; last: a bit for each
    of the last values, set where it was not finite, the lowest for the newest; since: the step from which on it has
    not been finite, -1 if the newest value is; before: the step saved before `since`, -1 if there was none; nan, inf:
    how many elements were so at `since`.
    """
    columns, now, step = len(row.values), row.saved, np.array([row.step], np.int64)
    if len(state["saved"]) == columns and not (np.count_nonzero(state["last"]) or np.count_nonzero(row.values > 0)):
        # all has been well for long and still is, as at most steps: each value is one more that is finite
        return {**state, "saved": state["saved"] + now, "finite": state["finite"] + now, "step": step}
    saved, finite, last = (grown(state[name], columns, 0) for name in ("saved", "finite", "last"))
    since, before = (grown(state[name], columns, -1) for name in ("since", "before"))
    nan, infinite = (grown(state[name], columns, 0) for name in ("nan", "inf"))
    bad = now & ((row.values[:, 0] > 0) | (row.values[:, 1] > 0))
    good = now & ~bad
    begins = bad & (since < 0)
    if np.count_nonzero(begins):
        before = np.where(begins, state["step"][0], before)
        nan, infinite = np.where(begins, row.values[:, 0], nan), np.where(begins, row.values[:, 1], infinite)
    return {
        "saved": saved + now,
        "finite": np.where((finite > 0) | good, finite + now, finite),
        "last": last << now | bad,
        "since": np.where(begins, row.step, np.where(good, -1, since)),
        "before": before,
        "nan": nan,
        "inf": infinite,
        "step": step,
    }


HISTORY = Accumulator(start, add)


@lru_cache(maxsize=65536)
def is_gradient(name: str) -> bool:
    """Whether a tensor of this name is a gradient, or a scalar that is made of gradients (`grad_norm`).

    Our choice, by the name, because a norm of gradients is in no collection. All hooks of SageMaker Debugger have
    `grad` in the names of gradients.
    """
    return re.search(r"(?i)grad(?![eu])|gnorm", name) is not None


@lru_cache(maxsize=65536)
def is_never_constant(name: str) -> bool:
    """Whether a tensor of this name cannot be NaN or infinite on purpose: a loss, a gradient, a parameter.

    Our choice, by the name. What goes into and comes out of a layer is not meant, whatever the layer's name is: masks
    of attention hold -inf.
    """
    if re.search(r"(?i)loss", name) or is_gradient(name):
        return True
    return re.search(r"(?i)weight|bias|kernel", name) is not None and re.search(r"_(in|out)put", name) is None


def named(tensors: State, ask: Callable[[str], bool]) -> Bools:
    """Per column what its name tells; only for columns that were saved at all."""
    return np.array([ask(column.tensor) for column in tensors.columns[: len(tensors["saved"])]], np.bool_)


def constant(tensors: State) -> Bools:
    """Per column whether it was never finite, and may be so on purpose (user report 38)."""
    never: Bools = (tensors["saved"] > 0) & (tensors["finite"] == 0)
    return never & ~named(tensors, is_never_constant)


def overflowing(tensors: State, steps: int, window: int, first_steps: int) -> Bools:
    """Per column whether it is a gradient that is infinite or NaN no more often than loss scaling makes it.

    Our choice (user report 36). A scaler begins with a scale that is too high and lowers it step by step, so up to
    `first_steps` values may be lost before the first that is finite. Afterwards it tries a higher scale now and then:
    fewer than `steps` of the last `window` values.
    """
    begun = tensors["finite"] > 0
    looked_at = np.minimum(tensors["finite"], window).astype(np.uint64)
    last = tensors["last"] & ((np.uint64(1) << looked_at) - np.uint64(1))
    seldom = np.unpackbits(last.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1) < steps
    return named(tensors, is_gradient) & np.where(begun, seldom, tensors["saved"] < first_steps)


def how(nan: Floats, infinite: Floats) -> Array:
    """What was found, in words."""
    return np.where(nan > 0, np.where(infinite > 0, "NaN and inf", "NaN"), "inf")
