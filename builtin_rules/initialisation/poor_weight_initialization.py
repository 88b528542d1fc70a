"""Fires when a model starts badly: layers out of scale, hardly any gradient, no fall of the loss, or units all alike.

Only the first `steps` saved steps are judged. It fires when, at one of them, the largest variance of an activation
input is more than `threshold` times the smallest one; the gradients of some tensor spread less than
`distribution_range` (from the 5th to the 95th percentile); the loss has not fallen for `patience` saved steps; or, if
`units_alike` is asked for, all units of a weight are the same, so that they stay the same.

Quiet when: none of this holds; the tensors of a check were not saved, which leaves out that check; or values are NaN
(see ExplodingTensor), but for the loss: NaN is no fall.
Source: SageMaker Debugger's list of built-in rules, "PoorWeightInitialization". It is not documented how the checks are
put together and what exactly they compare; our choices are `initial`, `unequal`, `narrow` and `stuck`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from pydantic import Field

from builtin_rules._selecting import Patterns
from builtin_rules.initialisation._checks import RANGE, SAME_UNITS, Check, alike, narrow, stuck, unequal
from builtin_rules.losses._losses import LOSS
from evaluator.modes import Mode
from evaluator.rule import (
    TRAINING,
    Decided,
    Example,
    NotYet,
    Recommended,
    Rule,
    RuleParameters,
    Selection,
    Summary,
    Verdict,
    Window,
)


class Parameters(RuleParameters):
    """What PoorWeightInitialization can be told."""

    activation_inputs_regex: Patterns = Field(
        (".*relu_input",), description="Compares the variances of the tensors in whose name one of these is found."
    )
    threshold: float = Field(10.0, ge=0, description="Fires above this ratio of the largest variance to the smallest.")
    distribution_range: float = Field(
        0.001, ge=0, description="Fires when the gradients of a tensor spread less: 95th less 5th percentile."
    )
    patience: int = Field(5, ge=1, description="Fires when the loss has not fallen for so many saved steps.")
    steps: float = Field(10.0, ge=1, description="Judges only so many of the first saved steps.")
    least_variance: float = Field(
        0.0, ge=0, description="Activation inputs that vary less are not compared. Ours, not SageMaker's."
    )
    units_alike: bool = Field(
        False,
        description="Fires when all units of a weight are the same, or all weights are zero. Ours, not SageMaker's.",
    )
    modes: frozenset[Mode] = Field(
        frozenset(Mode), min_length=1, description="Only values saved in these modes are judged. Ours, not SageMaker's."
    )


def initial(windows: Sequence[Window]) -> list[int]:
    """The saved steps so far, oldest first.

    Our choice: those at which anything was saved that the rule looks at, of any worker, counted from the first one.
    """
    return sorted({step for window in windows for step in window.steps.tolist()})


def wanted(parameters: Parameters) -> list[Check]:
    """The checks that can be met with these parameters; what the others look at is not read."""
    variances = partial(unequal, least_variance=parameters.least_variance, threshold=parameters.threshold)
    checks = [Check(Selection(regexes=parameters.activation_inputs_regex), "variance", variances)]
    if parameters.distribution_range > 0:
        ranges = partial(narrow, least_range=parameters.distribution_range)
        checks.append(Check(Selection(collections=("gradients",)), RANGE, ranges))
    if parameters.patience < int(parameters.steps):
        checks.append(Check(Selection(collections=("losses",)), LOSS, partial(stuck, patience=parameters.patience)))
    if parameters.units_alike:
        checks.append(Check(Selection(collections=("weights",)), SAME_UNITS, alike))
    return checks


def needs(parameters: Parameters) -> list[Summary]:
    """What the checks look at, one step further back than they judge, so that it shows when they are over.

    None triggers the rule by itself: each step counts at which anything of it was saved.
    """
    rows = int(parameters.steps) + 1
    return [
        Summary(check.of, by=check.by, modes=parameters.modes, rows=rows, triggers=False)
        for check in wanted(parameters)
    ]


def starts_badly(*arguments: Any) -> Verdict:
    """A window for each wanted check, (rows, columns) or for losses (rows, columns, 2), and the parameters."""
    windows: Sequence[Window] = arguments[:-1]
    parameters: Parameters = arguments[-1]
    steps = initial(windows)
    if not steps:
        return NotYet("nothing was saved of what it looks at: " + _looked_at(parameters))
    if len(steps) > int(parameters.steps):
        return Decided(f"the first {int(parameters.steps)} saved steps are over")
    for check, window in zip(wanted(parameters), windows, strict=True):
        if len(window.steps) and window.steps[-1] == steps[-1]:
            found = check.meets(window, window.saved[-1])
            if found is not None:
                return found
    return None


def _looked_at(parameters: Parameters) -> str:
    return "; ".join(str(check.of) for check in wanted(parameters))


SMALL = np.random.default_rng(0).normal(size=(4, 8))
GRADIENT = SMALL * 0.1
SAGEMAKER = {"parameter_set": "sagemaker"}
ONLY_INPUTS: dict[str, list[str]] = {"gradients": [], "losses": []}
ONLY_GRADIENTS = {"gradients": ["g0", "g1"], "losses": []}
ONLY_LOSSES = {"gradients": [], "losses": ["loss"]}
ONLY_WEIGHTS = {"weights": ["w"]}

RULE = Rule(
    name="PoorWeightInitialization",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=starts_badly,
    precedence=25,
    recommended={
        "activation_inputs_regex": Recommended(
            (r"(?i)(elu|silu)\d*_input",),
            "ReLU, GELU, ELU and SiLU alike keep the scale of their inputs; for tanh and sigmoid there is "
            "SaturatedActivation",
        ),
        "threshold": Recommended(
            1e4, "in healthy networks they differ by up to 100, and with PyTorch's own initialisation by up to 1000"
        ),
        "least_variance": Recommended(
            1e-8, "behind a layer that is dead or starts at zero nothing varies; DeadRelu and AllZero name that layer"
        ),
        "distribution_range": Recommended(
            0.0,
            "gradients of embeddings are mostly zero, those of one element have no range, and a healthy loss can make "
            "small ones; VanishingGradient judges their size",
        ),
        "patience": Recommended(
            1000, "the loss of batches is noisy, and warm-up holds it up; LossNotDecreasing judges more of it"
        ),
        "units_alike": Recommended(True, "units that start the same stay the same, however long training goes on"),
        "modes": Recommended(TRAINING, "a step of evaluation is none of the first steps of training"),
    },
    examples=(
        Example(
            "layers out of scale",
            {"relu0_relu_input": [SMALL], "relu1_relu_input": [SMALL * 1000]},
            met_at=0,
            tensor="relu0_relu_input",
        ),
        Example(
            "a layer that says nothing",
            {"relu0_relu_input": [SMALL], "relu1_relu_input": [SMALL * 0]},
            collections=ONLY_INPUTS,
            parameters=SAGEMAKER,
            met_at=0,
        ),
        Example(
            "hardly any gradient in one layer",
            {"g0": [GRADIENT, GRADIENT], "g1": [GRADIENT, GRADIENT * 1e-4]},
            collections=ONLY_GRADIENTS,
            parameters=SAGEMAKER,
            met_at=1,
            tensor="g1",
        ),
        Example(
            "a loss that has not fallen for five steps",
            {"loss": [1.0, 1.1, 1.2, 1.1, 1.2, 1.3]},
            collections=ONLY_LOSSES,
            parameters=SAGEMAKER,
            met_at=5,
        ),
        Example(
            "all weights are zero",
            {"w": [np.zeros((8, 4))], "v": [np.zeros((4, 4))]},
            collections={"weights": ["w", "v"]},
            met_at=0,
        ),
        Example("all units are the same", {"w": [np.full((8, 4), 0.05)]}, collections=ONLY_WEIGHTS, met_at=0),
        Example(
            "healthy, by SageMaker's defaults",
            {
                "relu0_relu_input": [SMALL] * 3,
                "relu1_relu_input": [SMALL * 2] * 3,
                "gradient/w": [GRADIENT] * 3,
                "loss": [1.0, 0.9, 0.8],
            },
            collections={"gradients": ["gradient/w"], "losses": ["loss"]},
            parameters=SAGEMAKER,
        ),
        Example("healthy", {"w": [SMALL, SMALL * 1.01], "relu_input": [SMALL] * 2}, collections=ONLY_WEIGHTS),
        Example(
            "layers of somewhat different scale",
            {"relu0_relu_input": [SMALL], "relu1_relu_input": [SMALL * 30]},
            collections={"weights": []},
        ),
        Example(
            "behind a layer that is dead",
            {"relu0_relu_input": [SMALL], "relu1_relu_input": [np.full((4, 8), -8.0)]},
            collections={"weights": []},
        ),
        Example("one layer is compared with nothing", {"relu_input": [SMALL * 1e9]}, collections={"weights": []}),
        Example(
            "later than the first steps",
            {"loss": [1.0, 0.9, *[0.95] * 9]},
            collections=ONLY_LOSSES,
            parameters={**SAGEMAKER, "steps": 6},
        ),
        Example(
            "zero on purpose, and a normalising layer", {"lora_b": [np.zeros((8, 4))], "norm.weight": [[1.0, 1.0]]}
        ),
        Example(
            "NaN, but in the loss",
            {"relu0_relu_input": [SMALL], "relu1_relu_input": [SMALL * np.nan], "gradient/w": [GRADIENT * np.nan]},
            collections={"gradients": ["gradient/w"], "losses": []},
            parameters=SAGEMAKER,
        ),
        Example("nothing that it looks at", {"x": [1.0]}, collections={"weights": [], "gradients": [], "losses": []}),
        Example("unsaved, and empty", {"w": [None, np.zeros((0, 4))]}, collections=ONLY_WEIGHTS),
    ),
)
