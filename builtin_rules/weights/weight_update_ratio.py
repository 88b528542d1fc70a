"""Fires when an update of some weight is too large or too small for the weight.

At each saved step, compares every tensor of the collection `weights` with its value saved last before, or with the
oldest one within `num_steps` steps: mean |change| divided by mean |earlier value|, against two thresholds.

Quiet when: there is no earlier value (also none within `num_steps`), the shape differs, or the ratio is NaN (see
ExplodingTensor).
Source: SageMaker Debugger's list of built-in rules, "WeightUpdateRatio" (strictly above or below). It does not say how
the ratio is made; that is our choice, see `update_ratio`. So is the parameter `modes`: its older text judges TRAIN
steps where there are any, else GLOBAL ones, and weights legitimately stand still between steps of evaluation.
"""

import numpy as np
from pydantic import Field

from builtin_rules.weights._updates import UPDATE
from evaluator.modes import Mode
from evaluator.rule import (
    TRAINING,
    Example,
    Met,
    Previous,
    Recommended,
    Rule,
    RuleParameters,
    Summary,
    Window,
)
from evaluator.segments import Floats


class Parameters(RuleParameters):
    """What WeightUpdateRatio can be told."""

    num_steps: int | None = Field(
        None, ge=1, description="Compares with the oldest value within this many steps; by default with the last one."
    )
    large_threshold: float = Field(10.0, ge=0, description="Fires above this ratio of update to weight.")
    small_threshold: float = Field(1e-8, ge=0, description="Fires below this ratio of update to weight.")
    epsilon: float = Field(1e-9, ge=0, description="Added to the mean |weight|, so that it is not divided by zero.")
    modes: frozenset[Mode] = Field(
        TRAINING, min_length=1, description="Only values saved in these modes are compared. Ours, not SageMaker's."
    )


def update_ratio(change: Floats, size: Floats, epsilon: float) -> Floats:
    """Mean |W - W before| / (mean |W before| + epsilon).

    Our choice: means of magnitudes, so that the ratio does not depend on the size of the tensor, and few large elements
    weigh less than in a ratio of norms.
    """
    ratio: Floats = change / (size + epsilon)
    return ratio


def is_off(weights: Window, parameters: Parameters) -> Met | None:
    """weights: (1, columns, 2), change and size at this step. NaN is neither large nor small, so it is quiet."""
    change, size = weights.values[-1].T
    # the ratio of what was not saved is NaN too
    ratio = update_ratio(change, size, parameters.epsilon)
    large, small = ratio > parameters.large_threshold, ratio < parameters.small_threshold
    if not (np.count_nonzero(large) or np.count_nonzero(small)):
        return None
    off = large | small
    limit = np.where(large, parameters.large_threshold, parameters.small_threshold)
    each = {"update": np.where(large, "too large", "too small")}
    message = "one update changed the weights by {measured} of their size, beyond {limit}, in {tensors} of {of} tensors"
    return weights.met(off, measured=ratio, limit=limit, each=each, message=message)


RULE = Rule(
    name="WeightUpdateRatio",
    severity="warning",
    parameters=Parameters,
    requires=lambda parameters: [
        Summary("weights", by=UPDATE, modes=parameters.modes, partner=Previous(parameters.num_steps))
    ],
    condition=is_off,
    # what is wrong with a layer after such an update follows from it
    precedence=20,
    recommended={
        "large_threshold": Recommended(
            5.0, "healthy weights did not double between two saved steps, apart from those that start at zero"
        ),
        "epsilon": Recommended(
            0.02,
            "a weight that starts at zero, or near it, is made by its first updates and not changed too much by them",
        ),
        "small_threshold": Recommended(
            0.0,
            "weights stand still between accumulated updates, after skipped ones and when they are frozen; NotLearning "
            "tells those apart from weights that should move",
        ),
    },
    examples=(
        Example("an update far larger than the weight", {"w": [[0.1, 0.1], [5.0, -5.0]]}, met_at=1),
        Example(
            "no update at all",
            {"v": [1.0, 1.1], "w": [1.0, 1.0]},
            parameters={"parameter_set": "sagemaker"},
            met_at=1,
            tensor="w",
        ),
        Example(
            "too small over ten steps",
            {"w": [1.0, 1.0 + 1e-9, 1.0 + 2e-9]},
            steps=[0, 5, 10],
            parameters={"num_steps": 10, "small_threshold": 1e-8},
            met_at=5,
        ),
        Example("infinite", {"w": [1.0, float("inf")]}, met_at=1),
        Example("healthy", {"w": [[1.0, 2.0], [1.01, 1.99], [1.02, 1.98]]}),
        Example("made by its first updates", {"lora_B": [[0.0, 0.0], [1e-3, -1e-3], [5e-3, -4e-3]]}),
        Example("updates are accumulated", {"w": [1.0, 1.0, 1.0, 1.1, 1.1, 1.1]}),
        Example("one step", {"w": [1.0]}),
        Example("too far apart to be compared", {"w": [1.0, 1.0]}, steps=[0, 50], parameters={"num_steps": 10}),
        Example("tiny and huge scales", {"v": [1e-6, 1.01e-6], "w": [1e300, 1.01e300]}),
        Example(
            "half precision that would overflow when summed", {"w": [np.full(9, s, np.float16) for s in (6e4, 6.1e4)]}
        ),
        Example("unsaved or NaN", {"v": [1.0, None, 1.1], "w": [1.0, float("nan"), 1.0]}),
        Example(
            "standing still during evaluation",
            {"w": [1.0, 1.1, 1.1, 1.2]},
            modes=["TRAIN", "TRAIN", "EVAL", "TRAIN"],
        ),
    ),
)
