"""Fires when too many units of a tanh or sigmoid layer are saturated: their inputs lie where the slope is almost zero.

At each saved step and for each layer, counts the units whose input lies within the limits of the function for less than
`threshold_inactivity` percent of the samples, and compares their percentage with `threshold_layer`.

Quiet when: not more units are saturated; an input is NaN (our choice: it is not known to be large; see
ExplodingTensor); or neither tanh nor sigmoid is in the name of the tensor, so that no limits are known.
Source: SageMaker Debugger's list of built-in rules, "SaturatedActivation": its limits (inputs at them are saturated)
and percentages. Which limits a tensor has is our choice, see `limits_of`; what a unit is too, see `inactive_percent`.
"""

import numpy as np
from pydantic import Field

from builtin_rules._selecting import Patterns
from builtin_rules.activations._units import inactive_percent
from evaluator.rule import (
    Example,
    Measure,
    NotYet,
    Recommended,
    Rule,
    RuleParameters,
    Selection,
    Summary,
    Tensor,
    Verdict,
    Window,
)
from evaluator.segments import Array

Limits = tuple[float, float]


class Parameters(RuleParameters):
    """What SaturatedActivation can be told."""

    collection_names: tuple[str, ...] | None = Field(
        None, description="Looks at the tensors of these collections too, as far as tanh or sigmoid is in their name."
    )
    tensor_regex: Patterns = Field(
        (".*tanh_input", ".*sigmoid_input"),
        description="Looks at the inputs in whose name one of these patterns is found.",
    )
    threshold_tanh_min: float = Field(-9.4999, description="Inputs of tanh at or below this are saturated.")
    threshold_tanh_max: float = Field(9.4999, description="Inputs of tanh at or above this are saturated.")
    threshold_sigmoid_min: float = Field(-23.0, description="Inputs of sigmoid at or below this are saturated.")
    threshold_sigmoid_max: float = Field(16.99999, description="Inputs of sigmoid at or above this are saturated.")
    threshold_inactivity: float = Field(
        1.0, ge=0, le=100, description="A unit is saturated when active for less than this percentage of samples."
    )
    threshold_layer: float = Field(
        50.0, ge=0, le=100, description="Fires when more than this percentage of a layer's units are saturated."
    )


def limits_of(name: str, tanh: Limits, sigmoid: Limits) -> Limits | None:
    """Between which inputs the function of this tensor is not saturated; None where the name does not tell which it is.

    Our choice: by "tanh", else "sigmoid", in the name, in any case. A collection can hold other tensors, for which
    either limits would be wrong.
    """
    name = name.lower()
    return tanh if "tanh" in name else sigmoid if "sigmoid" in name else None


def saturated_percent(
    inputs: Array, tensor: Tensor, *, tanh: Limits, sigmoid: Limits, threshold_inactivity: float
) -> float:
    """The percentage of saturated units; NaN for another function."""
    limits = limits_of(tensor.name, tanh, sigmoid)
    if limits is None:
        return float("nan")
    saturated = (inputs <= limits[0]) | (inputs >= limits[1])
    return inactive_percent(~saturated, threshold_inactivity, "elements")[0]


def needs(parameters: Parameters) -> list[Summary]:
    """The saturated units of every layer."""
    options = (
        ("tanh", (parameters.threshold_tanh_min, parameters.threshold_tanh_max)),
        ("sigmoid", (parameters.threshold_sigmoid_min, parameters.threshold_sigmoid_max)),
        ("threshold_inactivity", parameters.threshold_inactivity),
    )
    selection = Selection(collections=parameters.collection_names or (), regexes=parameters.tensor_regex)
    return [Summary(selection, by=Measure(saturated_percent, options, each=True, kinds="fiub"))]


def is_saturated(layers: Window, parameters: Parameters) -> Verdict:
    """layers: (1, columns), the percentage of saturated units at this step."""
    percent = layers.values[-1]
    judged = layers.saved[-1] & ~np.isnan(percent)
    if not judged.any():
        return NotYet("no tensor with tanh or sigmoid in its name was saved")
    saturated = judged & (percent > parameters.threshold_layer)
    if not saturated.any():
        return None
    return layers.met(
        saturated,
        limit=parameters.threshold_layer,
        of=int(judged.sum()),
        message="{measured} % of the units are saturated, more than {limit} %, in {tensors} of {of} layers",
    )


INSIDE = np.array([[0.1, -2.0, 9.0], [1.0, 0.5, -9.0]])
BEYOND = np.array([[12.0, -30.0, 0.1], [15.0, -10.0, 0.2]])

RULE = Rule(
    name="SaturatedActivation",
    severity="error",
    parameters=Parameters,
    requires=needs,
    condition=is_saturated,
    precedence=30,
    recommended={
        "tensor_regex": Recommended(
            (r"(?i)(tanh|sigmoid)\d*_input",),
            "modules are also called Tanh, tanh1 or Sigmoid",
            unless=("collection_names",),
        )
    },
    examples=(
        Example(
            "a tanh layer saturates",
            {"tanh0_tanh_input": [INSIDE, INSIDE], "tanh1_tanh_input": [INSIDE, BEYOND]},
            met_at=1,
            tensor="tanh1_tanh_input",
        ),
        Example("a sigmoid layer, on both sides", {"Sigmoid_input_0": [[[17.0, -23.0, 0.0]] * 4]}, met_at=0),
        Example("infinite inputs", {"tanh_input": [[[float("inf"), -float("inf")]]]}, met_at=0),
        Example(
            "the limits that were given",
            {"tanh_input": [[[5.0, -5.0]]]},
            parameters={"threshold_tanh_max": 4, "threshold_tanh_min": -4},
            met_at=0,
        ),
        Example("healthy", {"tanh_input": [INSIDE], "sigmoid_input": [INSIDE]}),
        Example("limits of tanh are none of sigmoid", {"sigmoid_input": [BEYOND / 2]}),
        Example("exactly half of the units", {"tanh_input": [[[10.0, 10.0, 0.0, 0.0]]]}),
        Example("each unit for some sample", {"tanh_input": [[[20.0, 0.0], [0.0, 20.0]]]}),
        Example("NaN is not large", {"tanh_input": [[[float("nan"), float("nan")]]]}),
        Example("another function", {"h": [[[99.0, 99.0]]]}, parameters={"collection_names": "layers"}),
        Example("unsaved, and empty", {"tanh_input": [None, np.zeros((0, 3))]}),
    ),
)
