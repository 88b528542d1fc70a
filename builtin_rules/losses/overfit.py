"""Fires when the validation loss is too far above the training loss, or (method `trend`) above its own best.

At each saved EVAL step, compares the mean of the losses saved there with the mean of the losses at the last TRAIN step
before: how much larger it is, as a part of the training loss, must not exceed `ratio_threshold`, `patience` times in a
row.
Method `trend` (recommended) asks instead whether the run is past its best: a total validation loss is `rise` times its
minimum, in the newest value and in the mean of the last three; the minimum is `evaluations` evaluations back (at the
end of the run `evaluations_at_end`, if that mean is then above it by `noise` times the mean change between evaluations)
and in the first `best_before` of the steps; the training loss has not risen to
`training_rise` times what it was then; and no metric of evaluation holds.

Quiet when: losses of one of the two modes were not saved (yet); the training loss is zero or NaN; a tensor has more
than one element; or a metric should rise (accuracy, auc, ...), by its name: those are left out, and named in details.
By `trend` no training loss is needed; quiet also when only the parts of a validation loss are logged and there are
several, or it is zero, negative, or once was NaN or infinite (see NonFinite).
Source: SageMaker Debugger's list of built-in rules, "Overfit". What it takes the mean of is not documented; our choice
is in `add`, and that of NaN and negative losses in `excess`. Method `trend` is ours, its numbers chosen on labelled
logs of public training runs, `noise` on the zoo too (both in docs/detection.md): `is_past_best`, `not_worse`.
"""

from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from builtin_rules._selecting import Patterns
from builtin_rules.losses._layout import ALL_PHASES, EVALUATION_MODES
from builtin_rules.losses._losses import LOSS, falling, left_out
from builtin_rules.losses._metrics import METRICS, not_worse
from builtin_rules.losses._names import KERAS_LOSSES
from builtin_rules.losses._past_best import PAST_BEST, PastBest, past_best
from evaluator.modes import Mode
from evaluator.rule import (
    Accumulator,
    Example,
    Need,
    NotYet,
    Progress,
    ProgressView,
    Recommended,
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
SAGEMAKER = {"parameter_set": "sagemaker"}


class Parameters(RuleParameters):
    """What Overfit can be told."""

    tensor_regex: Patterns | None = Field(
        None, description="Judges losses in whose name one of these is found; by default the collection `losses`."
    )
    start_step: int = Field(0, ge=0, description="The first step that is compared.")
    patience: int = Field(1, ge=1, description="How many EVAL steps in a row must exceed the ratio.")
    ratio_threshold: float = Field(0.1, description="Fires above this (validation - training) / training loss.")
    method: Literal["sagemaker", "trend"] = Field(
        "sagemaker",
        description="sagemaker: validation against training loss; trend: against its own best. Ours, not SageMaker's.",
    )
    rise: float = Field(1.2, gt=1, description="By trend: fires at this many times the minimum. Ours, not SageMaker's.")
    evaluations: int = Field(
        10, ge=1, description="By trend: so many since the minimum, or it may come back. Ours, not SageMaker's."
    )
    evaluations_at_end: int = Field(
        3, ge=1, description="By trend: at the end of the run so many: it comes back no more. Ours, not SageMaker's."
    )
    noise: float = Field(
        2.0,
        ge=0,
        description="By trend: with fewer than `evaluations`, above the minimum by so many times the mean change "
        "between them. Ours, not SageMaker's.",
    )
    best_before: float = Field(
        0.7,
        gt=0,
        le=1,
        description="By trend: the minimum must lie in this first part of the steps. Ours, not SageMaker's.",
    )
    training_rise: float = Field(
        1.2,
        ge=1,
        description="By trend: quiet when the training loss has risen as much: then the run diverges. Ours, not "
        "SageMaker's.",
    )

    @property
    def selection(self) -> Selection:
        """What was named, or the losses."""
        if self.tensor_regex:
            return Selection(regexes=self.tensor_regex)
        keras = (KERAS_LOSSES,) if self.method == "trend" else ()
        return Selection(collections=("losses",), regexes=keras)


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


def needs(parameters: Parameters) -> list[Need]:
    """The losses of both modes, folded; and those of evaluation, to be judged when there are any."""
    if parameters.method == "trend":
        return [
            Summary(parameters.selection, by=LOSS, modes=EVALUATION_MODES),
            Summary(parameters.selection, by=LOSS, modes=ALL_PHASES, state=PAST_BEST, triggers=False),
            METRICS,
            Progress(triggers=False, times=False),
        ]
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


def is_past_best(loss: PastBest, parameters: Parameters, *, ended: bool) -> bool:
    """Whether a validation loss is past its best for good, metrics not considered.

    Our choice: not the gap to the training loss, which is large in any run that learns its data by heart without harm,
    but the way back up; in the newest value and smoothed, and for long, because validation losses come back. Where the
    training loss rose as well the run diverges, and LossDiverging says so.
    """
    needed = parameters.evaluations_at_end if ended else parameters.evaluations
    return (
        loss.best > 0
        and loss.since >= needed
        and loss.best_step <= parameters.best_before * loss.step
        and min(loss.value, loss.last) >= parameters.rise * loss.best
        and (loss.since >= parameters.evaluations or loss.last - loss.best >= parameters.noise * loss.change)
        and not loss.training > parameters.training_rise
    )


def goes_past_its_best(
    _validation: Window, both: State, metrics: State, progress: ProgressView, parameters: Parameters
) -> Verdict:
    """both: the validation losses with their best values, and what the training losses were then."""
    losses = past_best(both)
    if not losses:
        return NotYet("no total validation loss was saved that is a single finite number and should fall")
    names = {both.columns[loss.column].tensor for loss in losses}
    found: list[PastBest] = []
    for loss in losses:
        if is_past_best(loss, parameters, ended=progress.ended):
            holding = not_worse(metrics, names, loss.best_step, loss.step)
            found += [] if holding else [loss]
    if not found:
        return None
    columns = len(both.columns)
    mask = np.zeros(columns, np.bool_)
    told = np.zeros((6, columns))
    for loss in found:
        mask[loss.column] = True
        told[:, loss.column] = (*loss[2:5], loss.value, loss.training, loss.mode)
    risen = left_out(both.columns)
    return both.met(
        mask,
        measured=told[3] / told[0],
        limit=parameters.rise,
        of=len(losses),
        message="the validation loss is {measured} times its minimum, {limit} times is the limit",
        modes=told[5].astype(np.int8),
        each={
            "minimum": told[0],
            "minimum_at_step": told[1].astype(np.int64),
            "evaluations_since": told[2].astype(np.int64),
            "validation_loss": told[3],
            "training_loss_rose_times": told[4],
        },
        details={"not_judged_because_they_should_rise": risen} if risen else {},
    )


def is_overfit(*needed: Any) -> Verdict:
    """By the method asked for, which also decides what was needed."""
    decide = goes_past_its_best if needed[-1].method == "trend" else overfits
    return decide(*needed)


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


DOWN = [1.0 / (1 + number) for number in range(30)]
UP = [1.0, 0.8, 0.6, 0.5, *[0.5 + 0.02 * number for number in range(26)]]

RULE = Rule(
    name="Overfit",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=is_overfit,
    at=frozenset({"step", "end"}),
    precedence=70,
    recommended={
        "method": Recommended(
            "trend",
            "a healthy run that has converged can have a validation loss many times its training loss, so no ratio "
            "tells them apart",
            unless=("patience", "ratio_threshold"),
        )
    },
    examples=(
        Example("past its best for long", {"train_loss": DOWN, "val_loss": UP}, met_at=13),
        Example(
            "past its best at the end",
            {"loss": [1.0, 1.1, 0.8, 1.0, 0.6, 1.2, 0.5, 1.4, 0.4, 1.5]},
            modes=BOTH * 5,
            met_at=9,
        ),
        Example(
            "the metric is worse too", {"train_loss": DOWN, "val_loss": UP, "val_acc": [-up for up in UP]}, met_at=13
        ),
        Example("the metric holds", {"train_loss": DOWN, "val_loss": UP, "val_acc": [1 - down for down in DOWN]}),
        Example(
            "the training loss rises as well", {"train_loss": [1 + number / 10 for number in range(30)], "val_loss": UP}
        ),
        Example("a large gap that does not grow", {"train_loss": DOWN, "val_loss": [1 + down for down in DOWN]}),
        Example("up and down", {"train_loss": DOWN, "val_loss": [1.0, 1.1, 0.95] * 10}),
        Example("up for two evaluations", {"val_loss": [1.0] * 7 + [0.5, 0.9, 0.9]}),
        Example("several parts of a validation loss", {"val_box_loss": UP, "val_cls_loss": UP}),
        Example(
            "validation loss half as large again", {"loss": [1.0, 1.5]}, modes=BOTH, parameters=SAGEMAKER, met_at=1
        ),
        Example(
            "twice in a row",
            {"loss": [1.0, 1.5, 0.9, 0.9, 0.8, 1.0, 0.7, 1.0]},
            modes=BOTH * 4,
            parameters={"patience": 2},
            met_at=7,
        ),
        Example("validation loss is NaN", {"loss": [1.0, float("nan")]}, modes=BOTH, parameters=SAGEMAKER, met_at=1),
        Example(
            "names tell the mode",
            {"train-rmse": [1.0], "validation-rmse": [1.5]},
            parameters=SAGEMAKER,
            met_at=0,
            tensor="validation-rmse",
        ),
        Example("healthy", {"loss": [1.0, 1.05, 0.9, 0.95]}, modes=BOTH * 2, parameters=SAGEMAKER),
        Example("exactly at the limit", {"loss": [1.0, 1.5]}, modes=BOTH, parameters={"ratio_threshold": 0.5}),
        Example(
            "before the first step compared",
            {"loss": [1.0, 1.5]},
            modes=BOTH,
            parameters={**SAGEMAKER, "start_step": 2},
        ),
        Example("no training loss", {"loss": [1.0, 2.0]}, modes=["EVAL", "EVAL"], parameters=SAGEMAKER),
        Example("one step", {"loss": [1.0]}, modes=["TRAIN"], parameters=SAGEMAKER),
        Example(
            "training loss zero, NaN or unsaved",
            {"loss": [0.0, 1.0, float("nan"), 1.0, None, 1.0]},
            modes=BOTH * 3,
            parameters=SAGEMAKER,
        ),
        Example("metrics that should rise", {"accuracy": [0.5, 0.9]}, modes=BOTH, parameters=SAGEMAKER),
        Example("tiny and huge scales", {"a": [1e-300, 1e-300], "b": [1e300, 1e300]}, modes=BOTH, parameters=SAGEMAKER),
        Example("no modes", {"loss": [1.0, 1.5]}, parameters=SAGEMAKER),
    ),
)
