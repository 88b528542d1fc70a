"""Fires when some gradient is too small for its layer to keep learning.

At each saved step, compares the mean |gradient| of every tensor of the collection `gradients` with `threshold`. With
`relative`, it must also be below that share of the largest one of the step; with `settled`, it must have been so at
that many saved steps in a row without having doubled since the first of them.

Quiet when: no gradient was saved at the step, or it is NaN (see ExplodingTensor).
Source: SageMaker Debugger's list of built-in rules, "VanishingGradient" (strictly below). `relative` and `settled` are
ours; see `shrunk`.
"""

import numpy as np
from pydantic import Field, PositiveFloat

from evaluator.rule import Example, NotYet, Recommended, Rule, RuleParameters, Summary, Verdict, Window
from evaluator.segments import Bools


class Parameters(RuleParameters):
    """What VanishingGradient can be told."""

    threshold: PositiveFloat = Field(1e-7, description="Fires below this mean |gradient|.")
    relative: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Fires only below this share of the largest mean |gradient| of the step; 1: whatever that is. "
        "Ours, not SageMaker's.",
    )
    settled: int = Field(
        1, ge=1, description="At so many saved steps in a row, without doubling meanwhile. Ours, not SageMaker's."
    )


def shrunk(gradients: Window, parameters: Parameters) -> Bools:
    """(rows, columns): where a gradient is too small.

    Our choice for `relative`: where gradients vanish on the way back, those of the last layers do not. In a run that
    has converged, all of them are small, and its loss is at its low (user report 42).
    """
    low: Bools = gradients.saved & (gradients.values < parameters.threshold)
    if parameters.relative < 1:
        usable = np.where(gradients.saved & np.isfinite(gradients.values), gradients.values, 0.0)
        largest = usable.max(axis=1, keepdims=True, initial=0.0)
        # where all are zero, nothing is learned at all
        low &= (gradients.values < parameters.relative * largest) | (largest == 0)
    return low


def vanishes(gradients: Window, parameters: Parameters) -> Verdict:
    """gradients: (settled, columns), mean |gradient|. NaN is not small, so it is quiet."""
    if len(gradients.steps) < parameters.settled:
        return NotYet(f"fewer than {parameters.settled} steps were saved that have gradients")
    if not np.count_nonzero(gradients.values[-1] < parameters.threshold):
        # all that follows needs a small gradient at the last step, and most steps have none
        return None
    low = np.asarray(shrunk(gradients, parameters).all(axis=0))
    if parameters.settled > 1 and low.any():
        first, last = gradients.values[0], gradients.values[-1]
        # a head that starts near zero lets gradients through as soon as it has grown
        low &= ~((last >= 2 * first) & (last > 0))
    if not low.any():
        return None
    message = "mean |gradient| is {measured}, below {limit}, in {tensors} of {of} gradients"
    return gradients.met(low, limit=parameters.threshold, message=message)


RULE = Rule(
    name="VanishingGradient",
    severity="error",
    parameters=Parameters,
    requires=lambda parameters: [Summary("gradients", by="abs_mean", rows=parameters.settled)],
    condition=vanishes,
    precedence=30,
    recommended={
        "relative": Recommended(
            1e-5,
            "in a run that has converged all gradients are small; where they vanish, those of the last layer are not",
        ),
        "settled": Recommended(
            5, "gradients are small or zero for a few steps behind layers that start near zero, and with a warm-up"
        ),
    },
    examples=(
        Example(
            "one layer dies",
            {"w0": [1e-3, 1e-3], "w1": [1e-5, 1e-9]},
            parameters={"parameter_set": "sagemaker"},
            met_at=1,
            tensor="w1",
        ),
        Example("the first layers of a deep net", {"w0": [1e-12] * 5, "head": [1e-2] * 5}, met_at=4, tensor="w0"),
        Example("a layer behind dead units", {"w0": [1e-3, *[0.0] * 5], "head": [1e-2] * 6}, met_at=5, tensor="w0"),
        Example("healthy", {"w0": [1e-3, 2e-3]}, parameters={"parameter_set": "sagemaker"}),
        Example("small, but no smaller than the others", {"w0": [1e-9] * 8, "w1": [1e-8] * 8}),
        Example("converging", {"w0": [10.0**-step for step in range(12)], "w1": [10.0**-step for step in range(12)]}),
        Example(
            "behind a head that starts near zero",
            {"w0": [1e-9 * 2**step for step in range(9)], "head": [1e-2] * 9},
        ),
        Example("zero at the first step", {"lora_A": [0.0, 1e-4, 1e-3, 1e-3, 1e-3, 1e-3], "lora_B": [1e-2] * 6}),
        Example(
            "unsaved or NaN",
            {"w0": [None, 1e-3], "w1": [1e-3, float("nan")]},
            parameters={"parameter_set": "sagemaker"},
        ),
        Example("one step", {"w0": [1e-9]}),
    ),
)
