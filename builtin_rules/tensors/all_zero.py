"""Fires when all elements, or too large a share, of some tensor are zero.

At each saved step, compares the percentage of elements that are zero with `threshold`, for every tensor named. Where
only reductions of a tensor were saved, they are asked whether it is zero as a whole.

Quiet when: fewer elements are zero; a tensor holds no elements (our choice: it can be neither zero nor not zero); or
elements are NaN, which is not zero.
Source: SageMaker Debugger's list of built-in rules, "AllZero" (at or above `threshold`). Which tensors to look at must
be said, because many are zero in healthy runs: biases before the first update, outputs of a ReLU for some input.
"""

import math
from collections.abc import Mapping

import numpy as np
from pydantic import Field

from builtin_rules._selecting import RequiredTensors
from evaluator.rule import Example, Measure, NotYet, Recommended, Rule, Summary, Verdict, Window
from evaluator.segments import Floats, Segments


class Parameters(RequiredTensors):
    """What AllZero can be told."""

    threshold: float = Field(100.0, gt=0, le=100, description="Fires at or above this percentage of zero elements.")


def zero_percent(segments: Segments) -> Floats:
    """Per tensor the percentage of elements that are zero."""
    zero = segments.flat == 0
    if not zero.any():
        return np.zeros(len(segments))
    return 100.0 * segments.sum(zero) / segments.counts


def told_by_reductions(saved: Mapping[str, Floats]) -> Floats:
    """100 where saved reductions show that all is zero, 0 where not all is, NaN where they do not tell.

    Our choice: only the largest magnitude, or smallest and largest value, are asked. A mean or a norm that training
    computed in half precision can be zero although the tensor is not.
    """
    percent = np.full(len(next(iter(saved.values()))), np.nan)
    if "min" in saved and "max" in saved:
        percent = np.where((saved["min"] == 0) & (saved["max"] == 0), 100.0, 0.0)
    if "abs_max" in saved:
        percent = np.where(saved["abs_max"] == 0, 100.0, 0.0)
    return percent


ZERO_PERCENT = Measure(zero_percent)
ZERO_AT_ALL = Measure(zero_percent, reductions=("min", "max", "abs_max"), from_reductions=told_by_reductions)


def needs(parameters: Parameters) -> list[Summary]:
    """Reductions can say whether all is zero, but not how much of a tensor is."""
    return [Summary(parameters.selection, by=ZERO_AT_ALL if parameters.threshold >= 100 else ZERO_PERCENT)]


def is_zero(tensors: Window, parameters: Parameters) -> Verdict:
    """tensors: (1, columns), the percentage of zero elements at this step; NaN where nobody can tell."""
    percent = tensors.values[-1]
    # NaN is left out of it, where it is not all there is
    most = float(np.fmax.reduce(percent, initial=np.nan))
    if math.isnan(most):
        return NotYet("only reductions were saved that do not tell whether a tensor is zero")
    if most < parameters.threshold:
        return None
    told = int((~np.isnan(percent)).sum())
    message = "{measured} % of its elements are zero, in {tensors} of {of} tensors"
    return tensors.met(percent >= parameters.threshold, limit=parameters.threshold, of=told, message=message)


RULE = Rule(
    name="AllZero",
    severity="error",
    parameters=Parameters,
    requires=needs,
    condition=is_zero,
    recommended={
        "collection_names": Recommended(
            ("gradients", "weights"),
            "nothing is learned through a weight or a gradient that is zero as a whole",
            unless=("tensor_regex",),
        ),
        "consecutive": Recommended(
            3, "layers that start at zero on purpose, and those behind them, are no longer zero after the first updates"
        ),
    },
    examples=(
        Example("a gradient dies", {"g": [[0.1, 0.0], [0.0, 0.0], [0.0, -0.0], [0.0, 0.0]]}, met_at=3),
        Example("at once, if once is enough", {"w": [[1, 1], [0, 0]]}, parameters={"consecutive": 1}, met_at=1),
        Example(
            "half of it",
            {"w": [[0.0, 1.0, 2.0, 0.0]]},
            parameters={"threshold": 50, "consecutive": 1},
            met_at=0,
        ),
        Example("not quite half of it", {"w": [[0, 1, 2, 0, 3]]}, parameters={"threshold": 50, "consecutive": 1}),
        Example("zero only before training begins", {"w": [[0.0, 0.0], [0.1, 0.1], [0.2, 0.1]]}),
        Example("never three steps in a row", {"g": [[0.0], [0.0], [0.1], [0.0], [0.0]]}),
        Example("tiny is not zero", {"w": [[1e-300], [5e-324], [1e-308]]}),
        Example("NaN is not zero", {"w": [[float("nan"), 0.0]] * 3}),
        Example("unsaved, and empty", {"w": [[0.5], None, [0.5]], "e": [[], [], []]}),
        Example("one step", {"w": [[0.0]]}),
    ),
)
