"""Fires when the variance of some tensor is too high or too low.

At each saved step, compares the variance of all elements of every tensor named with `max_threshold` and with
`min_threshold`, as far as they are given.

Quiet when: the variance is at a threshold or between them; or it is NaN (see ExplodingTensor). With neither threshold
given nothing can fire, so that nothing is judged.
Source: SageMaker Debugger's list of built-in rules, "TensorVariance" (strictly above or below). That the variance is
that of the population, as numpy's default, is our choice (see `needs`); so is a saved reduction of it.
"""

import numpy as np
from pydantic import Field

from builtin_rules._selecting import RequiredTensors
from evaluator.rule import Example, NotYet, Recommended, Rule, Summary, Verdict, Window


class Parameters(RequiredTensors):
    """What TensorVariance can be told."""

    max_threshold: float | None = Field(None, description="Fires above this variance; by default none is too high.")
    min_threshold: float | None = Field(None, description="Fires below this variance; by default none is too low.")


def needs(parameters: Parameters) -> list[Summary]:
    """The variance of every tensor.

    Our choice: that of the population (divided by the number of elements), so that a single element has one too.
    """
    return [Summary(parameters.selection, by="variance")]


def is_off(tensors: Window, parameters: Parameters) -> Verdict:
    """tensors: (1, columns), the variance at this step. NaN is neither high nor low, so it is quiet."""
    if parameters.max_threshold is None and parameters.min_threshold is None:
        return NotYet("neither max_threshold nor min_threshold is given, so that no variance is too high or too low")
    # nothing is beyond a threshold of NaN, nor is what was not saved, which is NaN itself
    highest, lowest = _number(parameters.max_threshold), _number(parameters.min_threshold)
    variance = tensors.values[-1]
    high, low = variance > highest, variance < lowest
    if not (np.count_nonzero(high) or np.count_nonzero(low)):
        return None
    limit = np.where(high, highest, lowest)
    return tensors.met(
        high | low,
        limit=limit,
        message="the variance is {measured}, beyond {limit}, in {tensors} of {of} tensors",
        each={"variance": np.where(high, "too high", "too low")},
    )


def _number(threshold: float | None) -> float:
    return float("nan") if threshold is None else threshold


SAMPLE = {"collection_names": "weights", "max_threshold": 10, "min_threshold": 0.00001}

RULE = Rule(
    name="TensorVariance",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=is_off,
    recommended={
        "collection_names": Recommended(
            ("weights",), "what is usual for weights is known; of other tensors it is not", unless=("tensor_regex",)
        ),
        "max_threshold": Recommended(
            1e8,
            "a standard deviation of ten thousand is more than the weights of a regression on raw units need; a low "
            "variance is usual: normalising layers start at one, adapters and heads at zero",
            unless=("min_threshold",),
        ),
    },
    examples=(
        Example("too high", {"v": [[1.0, 2.0]], "w": [[-5.0, 5.0]]}, parameters=SAMPLE, met_at=0, tensor="w"),
        Example("too low", {"w": [[1.0, 2.0], [1.0, 1.001]]}, parameters=SAMPLE, met_at=1),
        Example("weights that fly off", {"w": [[0.1, -0.2], [4e5, -3e5]]}, met_at=1),
        Example("infinite", {"w": [[1e200, -1e200]]}, met_at=0),
        Example("healthy", {"w": [[0.1, -0.2], [0.2, -0.3]]}, parameters=SAMPLE),
        Example("exactly at the limits", {"v": [[-1.0, 1.0]]}, parameters={"max_threshold": 1, "min_threshold": 1}),
        Example("only one limit", {"w": [[1e9, -1e9], [0.0, 0.0]]}, parameters={"min_threshold": 0}),
        Example("weights that are constant on purpose", {"norm.weight": [[1.0, 1.0]], "w": [[0.0, 0.0]]}),
        Example("NaN is neither high nor low", {"w": [[float("nan"), 1.0]]}, parameters=SAMPLE),
        Example("unsaved, and empty", {"w": [None, [0.1, -0.2], []]}, parameters=SAMPLE),
        Example(
            "without a limit",
            {"w": [[1e9, -1e9]]},
            parameters={"parameter_set": "sagemaker", "collection_names": "weights"},
        ),
    ),
)
