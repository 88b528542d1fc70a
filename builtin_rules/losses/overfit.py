"""Fires when the validation loss is too far above the training loss, `patience` times in a row.

At each saved EVAL step, compares the mean of the losses saved there with the mean of the losses at the last TRAIN step
before: how much larger it is, as a part of the training loss, must not exceed `ratio_threshold`.

Quiet when: losses of one of the two modes were not saved (yet); the training loss is zero or NaN; a tensor has more
than one element; or a metric should rise (accuracy, auc, ...), by its name: those are left out, and named in details.
Source: SageMaker Debugger's list of built-in rules, "Overfit". What it takes the mean of is not documented; our choice
is in `add`, and that of NaN and negative losses in `excess`.
"""

from functools import partial

import numpy as np
from pydantic import Field

from builtin_rules._selecting import Patterns
from builtin_rules.losses._losses import LOSS, falling, left_out
from evaluator.modes import Mode
from evaluator.rule import (
    Accumulator,
    Example,
    NotYet,
    Row,
    Rule,
    RuleParameters,
    Selection,
    State,
    Summary,
    Verdict,
    Window,
)
from evaluator.segments import Array, Bools

BOTH = ["TRAIN", "EVAL"]


class Parameters(RuleParameters):
    """What Overfit can be told."""

    tensor_regex: Patterns | None = Field(
        None, description="Judges losses in whose name one of these is found; by default the collection `losses`."
    )
    start_step: int = Field(0, ge=0, description="The first step that is compared.")
    patience: int = Field(1, ge=1, description="How many EVAL steps in a row must exceed the ratio.")
    ratio_threshold: float = Field(0.1, description="Fires above this (validation - training) / training loss.")

    @property
    def selection(self) -> Selection:
        """What was named, or the losses."""
        return Selection(regexes=self.tensor_regex) if self.tensor_regex else Selection(collections=("losses",))


def excess(validation: float, training: float) -> float:
    """How much larger the validation loss is, as a part of the training loss; NaN where they cannot be compared.

    Our choice: a validation loss that is NaN is infinitely larger (user report 34: NaN must not count as an
    improvement); a training loss of zero or NaN is compared with nothing; parts are of its magnitude, so that a
    negative loss that rises does not count as falling.
    """
    if not np.isfinite(training) or training == 0:
        return float("nan")
    return float("inf") if np.isnan(validation) else (validation - training) / abs(training)


def start() -> dict[str, Array]:
    """No loss was seen yet."""
    return {"train": np.full(1, np.nan), "eval": np.full(1, np.nan), "excess": np.full(1, np.nan), "over": np.zeros(1)}


def add(state: dict[str, Array], row: Row, *, start_step: int, ratio_threshold: float) -> dict[str, Array]:
    """The mean training loss last seen, the validation loss of this row, and how often in a row it was too far above.

    Our choice: the mean is over all losses (and workers) saved in a mode at its latest step, and what is counted are
    saved EVAL steps from `start_step` on for which there is a training loss.
    """
    state = dict(state)
    usable = judged(row)
    train = row.values[usable & (row.modes == Mode.TRAIN), 0]
    validation = row.values[usable & (row.modes == Mode.EVAL), 0]
    if len(train):
        state["train"] = np.array([train.mean()])
    if len(validation) and row.step >= start_step:
        state["eval"] = np.array([validation.mean()])
        state["excess"] = np.array([excess(float(state["eval"][0]), float(state["train"][0]))])
        if not np.isnan(state["excess"][0]):
            state["over"] = np.where(state["excess"] > ratio_threshold, state["over"] + 1, 0.0)
    return state


def judged(row: Row) -> Bools:
    """Which columns hold a loss: a single number that should fall."""
    scalar: Bools = row.values[:, 1] == 1
    return row.saved & scalar & falling(row.columns)


def needs(parameters: Parameters) -> list[Summary]:
    """The losses of both modes, folded; and those of evaluation, to be judged when there are any."""
    fold = partial(add, start_step=parameters.start_step, ratio_threshold=parameters.ratio_threshold)
    return [
        Summary(parameters.selection, by=LOSS, modes=frozenset({Mode.EVAL})),
        Summary(
            parameters.selection,
            by=LOSS,
            modes=frozenset({Mode.TRAIN, Mode.EVAL}),
            state=Accumulator(start, fold),
            triggers=False,
        ),
    ]


def overfits(validation: Window, both: State, parameters: Parameters) -> Verdict:
    """both["over"]: how many EVAL steps in a row the validation loss was too far above the training loss."""
    losses = validation.saved[-1] & (validation.values[-1, :, 1] == 1) & falling(validation.columns)
    if not losses.any():
        return NotYet("no validation loss was saved that is a single number and should fall")
    ratio = float(both["excess"][0])
    if np.isnan(ratio):
        return NotYet("there was no training loss, other than zero or NaN, to compare with")
    if both["over"][0] < parameters.patience:
        return None
    names = left_out(validation.columns)
    details = {"validation_loss": both["eval"].item(), "training_loss": both["train"].item()}
    if names:
        details |= {"not_judged_because_they_should_rise": names}
    measured = np.full(len(losses), ratio)
    message = "the validation loss is above the training loss by {measured} of it, more than {limit}"
    return validation.met(losses, measured=measured, limit=parameters.ratio_threshold, message=message, details=details)


RULE = Rule(
    name="Overfit",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=overfits,
    examples=(
        Example("validation loss half as large again", {"loss": [1.0, 1.5]}, modes=BOTH, met_at=1),
        Example(
            "twice in a row",
            {"loss": [1.0, 1.5, 0.9, 0.9, 0.8, 1.0, 0.7, 1.0]},
            modes=BOTH * 4,
            parameters={"patience": 2},
            met_at=7,
        ),
        Example("validation loss is NaN", {"loss": [1.0, float("nan")]}, modes=BOTH, met_at=1),
        Example(
            "names tell the mode", {"train-rmse": [1.0], "validation-rmse": [1.5]}, met_at=0, tensor="validation-rmse"
        ),
        Example("healthy", {"loss": [1.0, 1.05, 0.9, 0.95]}, modes=BOTH * 2),
        Example("exactly at the limit", {"loss": [1.0, 1.5]}, modes=BOTH, parameters={"ratio_threshold": 0.5}),
        Example("before the first step compared", {"loss": [1.0, 1.5]}, modes=BOTH, parameters={"start_step": 2}),
        Example("no training loss", {"loss": [1.0, 2.0]}, modes=["EVAL", "EVAL"]),
        Example("one step", {"loss": [1.0]}, modes=["TRAIN"]),
        Example(
            "training loss zero, NaN or unsaved", {"loss": [0.0, 1.0, float("nan"), 1.0, None, 1.0]}, modes=BOTH * 3
        ),
        Example("metrics that should rise", {"accuracy": [0.5, 0.9]}, modes=BOTH),
        Example("tiny and huge scales", {"a": [1e-300, 1e-300], "b": [1e300, 1e300]}, modes=BOTH),
        Example("no modes", {"loss": [1.0, 1.5]}),
    ),
)
