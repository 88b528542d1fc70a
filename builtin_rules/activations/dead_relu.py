"""Fires when too many units of a ReLU layer are dead: they put out zero for (almost) every sample.

At each saved step and for each layer, counts the units whose output is above zero for less than `threshold_inactivity`
percent of the samples, and compares their percentage with `threshold_layer`.

Quiet when: not more units are dead; an output is NaN (our choice: it is not known to be zero; see ExplodingTensor); or,
with `min_samples`, a batch holds too few samples to tell.
Source: SageMaker Debugger's list of built-in rules, "DeadRelu" (strictly above `threshold_layer`, strictly below
`threshold_inactivity`). What a unit is, is our choice; see `inactive_percent`. Steps are judged by themselves.
"""

import numpy as np
from pydantic import Field

from builtin_rules._selecting import Patterns
from builtin_rules.activations._units import Units, inactive_percent
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


class Parameters(RuleParameters):
    """What DeadRelu can be told."""

    tensor_regex: Patterns = Field(
        (".*relu_output",), description="Looks at the outputs in whose name one of these patterns is found."
    )
    threshold_inactivity: float = Field(
        1.0, ge=0, le=100, description="A unit is dead when active for less than this percentage of samples."
    )
    threshold_layer: float = Field(
        50.0, ge=0, le=100, description="Fires when more than this percentage of a layer's units are dead."
    )
    units: Units = Field(
        "elements", description="What a unit is: every element of a sample, or every channel. Ours, not SageMaker's."
    )
    min_samples: int = Field(
        1, ge=1, description="Smaller batches are not judged. Places of a channel count. Ours, not SageMaker's."
    )


def dead_percent(output: Array, _: Tensor, *, threshold_inactivity: float, units: Units) -> tuple[float, int]:
    """The percentage of dead units, and the number of samples."""
    # What is not at or below zero is active, so that NaN is.
    return inactive_percent(~(output <= 0), threshold_inactivity, units)


def needs(parameters: Parameters) -> list[Summary]:
    """The dead units of every layer."""
    options = (("threshold_inactivity", parameters.threshold_inactivity), ("units", parameters.units))
    measure = Measure(dead_percent, options, width=2, each=True, kinds="fiub")
    return [Summary(Selection(regexes=parameters.tensor_regex), by=measure)]


def is_dead(layers: Window, parameters: Parameters) -> Verdict:
    """layers: (1, columns, 2), the percentage of dead units and the number of samples at this step."""
    percent, samples = layers.values[-1].T
    judged = layers.saved[-1] & (samples >= parameters.min_samples)
    if not judged.any():
        return NotYet(f"no batch held {parameters.min_samples} samples, as many as are needed to tell")
    dead = judged & (percent > parameters.threshold_layer)
    if not dead.any():
        return None
    return layers.met(
        dead,
        measured=percent,
        limit=parameters.threshold_layer,
        of=int(judged.sum()),
        message="{measured} % of the units are dead, more than {limit} %, in {tensors} of {of} ReLU layers",
        each={"samples": samples.astype(np.int64)},
    )


ALIVE = np.array([[0.0, 1.0, 0.5, 0.0], [2.0, 0.0, 0.0, 0.3]])
THREE_DEAD = np.array([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.3]])
TWO_DEAD = np.array([[0.0, 0.0, 0.5, 1.0], [0.0, 0.0, 0.0, 0.3]])
PICTURE = np.eye(8).reshape(2, 2, 4, 4)[:, :, :2]
FEW = {"min_samples": 1}

RULE = Rule(
    name="DeadRelu",
    severity="error",
    parameters=Parameters,
    requires=needs,
    condition=is_dead,
    precedence=30,
    recommended={
        "tensor_regex": Recommended(
            (r"(?i)relu\d*_output", r"(?i)(^|/)re_?lu(_\d+)?/outputs?"),
            "modules are also called ReLU, relu1 or relu6, and Keras saves relu/outputs",
        ),
        "exclude_regex": Recommended(
            r"(?i)(leaky_?|(?<![a-z])[pcr])relu",
            "what is at or below zero in a leaky, parametric or concatenated ReLU is not dead",
        ),
        "units": Recommended(
            "channels", "of a healthy convolution, single places can stay silent for a whole batch; a channel does not"
        ),
        "threshold_inactivity": Recommended(
            0.1, "in large sparse layers healthy units are active for less than one sample in a hundred"
        ),
        "min_samples": Recommended(16, "in a small batch, units are silent by chance"),
    },
    examples=(
        Example(
            "a layer dies",
            {"relu0_relu_output": [ALIVE, ALIVE], "relu1_relu_output": [ALIVE, THREE_DEAD]},
            parameters=FEW,
            met_at=1,
            tensor="relu1_relu_output",
        ),
        Example("all units of a large batch", {"block0.ReLU_output_0": [np.zeros((32, 4))]}, met_at=0),
        Example(
            "a unit that is active for one sample in two hundred, by SageMaker's defaults",
            {"relu_output": [np.eye(200, 4)]},
            parameters={"parameter_set": "sagemaker"},
            met_at=0,
        ),
        Example("all channels", {"relu_output": [np.zeros((2, 3, 4, 4))]}, met_at=0),
        Example("healthy", {"relu_output": [ALIVE, ALIVE]}, parameters=FEW),
        Example("exactly half of the units", {"relu_output": [TWO_DEAD]}, parameters=FEW),
        Example("silent in a batch too small to tell", {"relu_output": [THREE_DEAD]}),
        Example("places without a channel that is silent", {"relu_output": [PICTURE]}, parameters=FEW),
        Example("NaN is not dead", {"relu_output": [np.full((32, 4), np.nan)]}),
        Example("a leaky ReLU", {"leaky_relu_output": [-np.ones((32, 4))]}),
        Example("another layer", {"tanh_output": [np.zeros((32, 4))]}),
        Example("unsaved, and empty", {"relu_output": [None, np.zeros((0, 4))]}),
        Example("tiny outputs are outputs", {"relu_output": [np.full((32, 4), 5e-324)]}),
    ),
)
