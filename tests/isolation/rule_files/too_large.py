# mypy: ignore-errors
"""A tensor is larger than it may be."""

from pydantic import Field

from evaluator.rule import Example, Rule, RuleParameters, Summary


class Parameters(RuleParameters):
    collection: str = Field("gradients", description="Which tensors.")
    limit: float = Field(10.0, description="Largest mean of absolute values.")


def _condition(window, parameters):
    newest = window.values[-1]
    too_large = newest > parameters.limit
    if not too_large.any():
        return None
    return window.met(too_large, limit=parameters.limit, message="{tensor} has mean {measured}, above {limit}")


RULE = Rule(
    name="TooLarge",
    severity="warning",
    parameters=Parameters,
    requires=lambda parameters: [Summary(parameters.collection)],
    condition=_condition,
    examples=(Example("grows", {"g": [1.0, 20.0]}, met_at=1, tensor="g"), Example("small", {"g": [1.0, 2.0]})),
)
