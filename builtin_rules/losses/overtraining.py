"""Fires when training and validation loss no longer improve, so that the run could have ended long ago.

Counts per mode the saved steps since the mean loss was last lower than its best by `delta`: it fires when there are
`patience_train` of training and `patience_validation` of evaluation; without evaluation, training alone decides.
Method `trend` (recommended) asks of each total validation loss: not better by `improvement_percent` for `evaluations`
evaluations, which are at least the last `part` of the steps, and `rise` times its best; while the level of the training
loss was not better by as much in the last `part` of its values, and no metric of evaluation holds.

Quiet when: no loss was saved; a tensor has more than one element; or a metric should rise, by its name. By `trend` also
when only the parts of a validation loss are logged and there are several, it once was NaN or infinite (see NonFinite),
or its best is zero or negative.
Source: SageMaker Debugger's list of built-in rules, "Overtraining". How the two patiences go together is not
documented; our choices are in `is_overtrained` and `add_together`. Method `trend` is ours, its numbers
chosen on labelled logs of public training runs (docs/detection.md): `stopped_improving`, `training_stands` and
`not_worse`.
"""

from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from builtin_rules.losses._layout import ALL_PHASES, EVALUATION, EVALUATION_MODES, TRAINING
from builtin_rules.losses._losses import LOSS, left_out
from builtin_rules.losses._metrics import METRICS, not_worse
from builtin_rules.losses._names import KERAS_LOSSES
from builtin_rules.losses._no_better import (
    NoBetter,
    add,
    add_together,
    nothing,
    start,
    training_stands,
    validation_losses,
)
from evaluator.rule import (
    Accumulator,
    Example,
    Need,
    NotYet,
    Recommended,
    Rule,
    RuleParameters,
    Selection,
    State,
    Summary,
    Verdict,
    Window,
)

SAGEMAKER = {"parameter_set": "sagemaker"}


class Parameters(RuleParameters):
    """What Overtraining can be told."""

    patience_train: int = Field(5, ge=1, description="So many steps of training without an improvement.")
    patience_validation: int = Field(10, ge=1, description="So many steps of evaluation without an improvement.")
    delta: float = Field(0.01, ge=0, description="The least improvement that counts, in the unit of the loss.")
    method: Literal["sagemaker", "trend"] = Field(
        "sagemaker",
        description="sagemaker: by the patiences; trend: by parts of the run so far. Ours, not SageMaker's.",
    )
    evaluations: int = Field(10, ge=3, description="By trend: so many without an improvement. Ours, not SageMaker's.")
    improvement_percent: float = Field(
        1.0, gt=0, description="By trend: the least improvement that counts. Ours, not SageMaker's."
    )
    part: float = Field(
        0.5, gt=0, lt=1, description="By trend: nothing improved in this last part of the run. Ours, not SageMaker's."
    )
    rise: float = Field(
        1.1,
        ge=1,
        description="By trend: quiet below so many times the best: standing still does no harm. Ours, not SageMaker's.",
    )


def needs(parameters: Parameters) -> list[Need]:
    """The losses, folded; by trend also the metrics, and those of evaluation to be judged when there are any."""
    if parameters.method == "sagemaker":
        together = Accumulator(nothing, partial(add_together, delta=parameters.delta))
        return [Summary("losses", by=LOSS, modes=ALL_PHASES, state=together)]
    losses = Selection(collections=("losses",), regexes=(KERAS_LOSSES,))
    fold = Accumulator(start, partial(add, improvement=parameters.improvement_percent / 100))
    return [
        Summary(losses, by=LOSS, modes=EVALUATION_MODES),
        Summary(losses, by=LOSS, modes=ALL_PHASES, state=fold, triggers=False),
        METRICS,
    ]


def is_overtrained(losses: State, parameters: Parameters) -> Verdict:
    """losses["since"]: per phase how many saved steps the mean loss has not become better.

    Our choice: both losses must stand still. "Either" would fire on every run whose validation loss has a plateau.
    """
    values, since = losses["values"], losses["since"]
    if not values.any():
        return NotYet("no loss was saved that is a single number and should fall")
    done = since[TRAINING] >= parameters.patience_train and values[TRAINING] > 0
    if values[EVALUATION]:
        done = done and since[EVALUATION] >= parameters.patience_validation
    if not done:
        return None
    phase = EVALUATION if values[EVALUATION] else TRAINING
    names = left_out(losses.columns)
    saved = losses.row.saved
    columns = np.zeros(len(losses.columns), np.bool_)
    columns[: len(saved)] = saved
    details: dict[str, object] = {
        "best_training_loss": float(losses["best"][TRAINING]),
        "training_steps_since": int(since[TRAINING]),
        "best_validation_loss": float(losses["best"][EVALUATION]) if values[EVALUATION] else None,
        "validation_steps_since": int(since[EVALUATION]),
    }
    if names:
        details |= {"not_judged_because_they_should_rise": names}
        columns &= np.array([column.tensor not in names for column in losses.columns])
    return losses.met(
        columns,
        measured=np.full(len(columns), since[phase]),
        limit=float(parameters.patience_validation if phase == EVALUATION else parameters.patience_train),
        message="no loss has improved for {measured} saved steps, {limit} is the limit",
        details=details,
    )


def stopped_improving(loss: NoBetter, parameters: Parameters) -> bool:
    """Whether a validation loss has not improved for long, and stands above its best.

    Our choice: for long is in evaluations and in parts of the run, so that neither rare nor frequent evaluation
    matters; standing still at the best is convergence, and no harm is done by it.
    """
    return (
        loss.best > 0
        and loss.since >= parameters.evaluations
        and loss.best_step <= (1 - parameters.part) * loss.step
        and min(loss.value, loss.last) >= parameters.rise * loss.best
    )


def trains_on(_validation: Window, both: State, metrics: State, parameters: Parameters) -> Verdict:
    """both: the losses with their best values; metrics: those of evaluation, with theirs."""
    losses = validation_losses(both)
    if not losses:
        return NotYet("no total validation loss was saved that is a single finite number and should fall")
    names = {both.columns[loss.column].tensor for loss in losses}
    found = [
        loss
        for loss in losses
        if stopped_improving(loss, parameters)
        and training_stands(both, both.columns[loss.column].worker, parameters.part)
        and not not_worse(metrics, names, loss.best_step, loss.step)
    ]
    if not found:
        return None
    mask = np.zeros(len(both.columns), np.bool_)
    told = np.zeros((5, len(mask)))
    for loss in found:
        mask[loss.column] = True
        told[:, loss.column] = loss.since, loss.best, loss.best_step, loss.value, loss.mode
    return both.met(
        mask,
        measured=told[0],
        limit=float(parameters.evaluations),
        of=len(losses),
        message="no better in {measured} evaluations, {limit} is the limit, and no training loss is either",
        modes=told[4].astype(np.int8),
        each={"best": told[1], "best_at_step": told[2].astype(np.int64), "validation_loss": told[3]},
    )


def decide(*needed: Any) -> Verdict:
    """By the method asked for, which also decides what was needed."""
    by = trains_on if needed[-1].method == "trend" else is_overtrained
    return by(*needed)


FLAT = [1.0, 0.5, *[0.3] * 28]
UP = [1.0, 0.8, 0.6, 0.5, *[0.5 + 0.02 * number for number in range(26)]]
DOWN = [1.0 / (1 + number) for number in range(30)]

RULE = Rule(
    name="Overtraining",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=decide,
    precedence=70,
    recommended={
        "method": Recommended(
            "trend",
            "fixed numbers of steps and a fixed improvement mean something else in every run: most healthy ones stand "
            "still for so long",
            unless=("patience_train", "patience_validation", "delta"),
        )
    },
    examples=(
        Example("validation rises, training stands", {"train_loss": FLAT, "val_loss": UP}, met_at=13),
        Example("five steps of training without evaluation", {"loss": [1.0] * 8}, parameters=SAGEMAKER, met_at=5),
        Example(
            "both patiences",
            {"loss": [1.0] * 30},
            modes=["TRAIN", "EVAL"] * 15,
            parameters=SAGEMAKER,
            met_at=21,
        ),
        Example("validation stands at its best", {"train_loss": FLAT, "val_loss": FLAT}),
        Example("training goes on to improve (see Overfit)", {"train_loss": DOWN, "val_loss": UP}),
        Example("the metric holds", {"train_loss": FLAT, "val_loss": UP, "val_acc": DOWN[::-1]}),
        Example("no evaluation", {"train_loss": FLAT}),
        Example("improving", {"loss": [1.0 - number / 50 for number in range(20)]}, parameters=SAGEMAKER),
        Example(
            "validation improves",
            {"loss": [1.0, 0.9, 1.0, 0.8, 1.0, 0.7] * 1},
            modes=["TRAIN", "EVAL"] * 3,
            parameters=SAGEMAKER,
        ),
        Example("few steps", {"loss": [1.0] * 5}, parameters=SAGEMAKER),
        Example("one step", {"loss": [1.0]}),
        Example("a metric that should rise", {"accuracy": [0.5] * 20}, parameters=SAGEMAKER),
    ),
)
