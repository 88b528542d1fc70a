"""Fires when some gradient is too small for its layer to keep learning.

At each saved step, compares the mean |gradient| of every tensor of the collection `gradients` with `threshold`.

Quiet when: no gradient was saved at the step, or it is NaN (see ExplodingTensor).
Source: SageMaker Debugger's list of built-in rules, "VanishingGradient" (strictly below).
"""

from pydantic import Field, PositiveFloat

from evaluator.rule import Example, Met, Rule, RuleParameters, Summary, Window


class Parameters(RuleParameters):
    """What VanishingGradient can be told."""

    threshold: PositiveFloat = Field(1e-7, description="Fires below this mean |gradient|.")


def vanishes(gradients: Window, parameters: Parameters) -> Met | None:
    """gradients: (1, columns), mean |gradient| at this step. NaN is not small, so it is quiet."""
    low = gradients.saved[-1] & (gradients.values[-1] < parameters.threshold)
    if not low.any():
        return None
    message = "mean |gradient| is {measured}, below {limit}, in {tensors} of {of} gradients"
    return gradients.met(low, limit=parameters.threshold, message=message)


RULE = Rule(
    name="VanishingGradient",
    severity="error",
    parameters=Parameters,
    requires=lambda parameters: [Summary("gradients", by="abs_mean")],
    condition=vanishes,
    examples=(
        Example("one layer dies", {"w0": [1e-3, 1e-3], "w1": [1e-5, 1e-9]}, met_at=1, tensor="w1"),
        Example("healthy", {"w0": [1e-3, 2e-3]}),
        Example("unsaved or NaN", {"w0": [None, 1e-3], "w1": [1e-3, float("nan")]}),
    ),
)
