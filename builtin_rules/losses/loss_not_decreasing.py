"""Fires when a loss has not fallen enough since `num_steps` steps ago, or (method `trend`) has never fallen at all.

At most every `num_steps` steps, compares the newest value of every loss with the newest one saved at least `num_steps`
steps before it: it must be lower by `diff_percent`, or higher by no more than `increase_threshold_percent`.

Method `trend` (recommended) compares levels instead: the mean of the last tenth of the values, of 5 at least and 100
at most. A training loss no level of which was ever lower than the first one by `fall_percent` does not decrease; that
is judged after `points` values, and at the end of the run after `points_at_end`. Where a whole loss is logged that is
judged, else the sum of the parts of each split.

Quiet when: nothing was saved `num_steps` steps before; a tensor has more than one element; or a metric should rise
(accuracy, auc, map, ndcg, ...), by its name: those are left out, and named in the finding's details. By `trend` also
when the loss was lower once, is NaN or infinite (see NonFinite), or a reward is logged.
Source: SageMaker Debugger's list of built-in rules, "LossNotDecreasing". Our choices: a loss that rose a little is
tolerated although one that fell a little is not (`enough`), NaN is no decrease (`enough`), steps are counted as global
steps also of one mode, and a TRAIN loss is compared with no EVAL loss (`newest_and_earlier`). Method `trend` is ours,
its numbers chosen on labelled logs of public training runs (docs/detection.md): `never_fell`, `long_enough`.
"""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from builtin_rules._selecting import Patterns
from builtin_rules.losses._does_not_fall import Limits, does_not_fall
from builtin_rules.losses._levels import LEVELS
from builtin_rules.losses._losses import LOSS, REINFORCED
from builtin_rules.losses._never_fell import never_fell
from evaluator.modes import Mode
from evaluator.rule import (
    TRAINING,
    Example,
    Need,
    Progress,
    Recommended,
    Rule,
    RuleParameters,
    Selection,
    Summary,
    Verdict,
)

OLD = {"diff_percent": 0.1, "num_steps": 10}


class Parameters(RuleParameters):
    """What LossNotDecreasing can be told."""

    collection_names: tuple[str, ...] | None = Field(None, description="Judges the losses in these collections.")
    tensor_regex: Patterns | None = Field(
        None, description="Judges the losses in whose name one of these patterns is found."
    )
    use_losses_collection: bool = Field(True, description="Judges the collection `losses` too.")
    num_steps: int = Field(10, ge=1, description="Checks at most every so many steps, against a value that old.")
    diff_percent: float = Field(0.1, ge=0, lt=100, description="Fires when the loss fell by less than this percentage.")
    increase_threshold_percent: float = Field(
        5.0, ge=0, lt=100, description="A loss that rose is tolerated up to this percentage."
    )
    mode: Literal["EVAL", "TRAIN", "GLOBAL"] = Field(
        "GLOBAL", description="Judges values saved in this mode; GLOBAL: in any mode."
    )
    method: Literal["sagemaker", "trend"] = Field(
        "sagemaker",
        description="sagemaker: against the value `num_steps` before; trend: against the first level, with mode "
        "GLOBAL only losses of training. Ours, not SageMaker's.",
    )
    fall_percent: float = Field(
        2.0,
        gt=0,
        lt=100,
        description="By trend: fires when the level was never lower than the first by this much; noise of levels stays "
        "below. Ours, not SageMaker's.",
    )
    points: int = Field(
        200,
        ge=10,
        description="By trend: judged after so many values; slow starts are over by then. Ours, not SageMaker's.",
    )
    points_at_end: int = Field(
        20,
        ge=5,
        description="By trend: at the end judged after so many; fewer are noise. Ours, not SageMaker's.",
    )

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.selection.everything:
            right = "give collection_names or tensor_regex, or leave use_losses_collection at True"
            raise ValueError(f"no loss is named; {right}")
        return self

    @property
    def selection(self) -> Selection:
        """The union of what was named and, unless it is not wanted, the collection `losses`."""
        losses = ("losses",) if self.use_losses_collection else ()
        return Selection(collections=(*losses, *(self.collection_names or ())), regexes=self.tensor_regex or ())


def needs(parameters: Parameters) -> list[Need]:
    """The losses, as far back as they are compared; by trend their levels, the rewards, and whether the run is over."""
    modes = None if parameters.mode == "GLOBAL" else frozenset({Mode[parameters.mode]})
    if parameters.method == "sagemaker":
        return [Summary(parameters.selection, by=LOSS, modes=modes, steps=parameters.num_steps)]
    levels = Summary(parameters.selection, by=LOSS, modes=modes or TRAINING, state=LEVELS)
    return [levels, REINFORCED, Progress(triggers=False, times=False)]


def does_not_decrease(*needed: Any) -> Verdict:
    """By the method asked for, which also decides what was needed."""
    parameters: Parameters = needed[-1]
    if parameters.method == "sagemaker":
        return does_not_fall(
            needed[0],
            num_steps=parameters.num_steps,
            limits=Limits(parameters.diff_percent, parameters.increase_threshold_percent),
        )
    losses, rewards, progress = needed[:-1]
    return never_fell(
        losses,
        rewards,
        progress,
        evaluation=parameters.mode == "EVAL",
        fall_percent=parameters.fall_percent,
        points=parameters.points,
        points_at_end=parameters.points_at_end,
    )


RULE = Rule(
    name="LossNotDecreasing",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=does_not_decrease,
    every=lambda parameters: parameters.num_steps if parameters.method == "sagemaker" else 1,
    at=frozenset({"step", "end"}),
    precedence=70,
    recommended={
        "method": Recommended(
            "trend",
            "a run that has converged is healthy and stands still, so no percentage tells how much a loss must fall in "
            "a few steps",
            unless=("num_steps", "diff_percent", "increase_threshold_percent"),
        )
    },
    examples=(
        Example(
            "as low as ten steps ago",
            {"loss": [0.30, 0.33, 0.31, 0.30, 0.28]},
            steps=[0, 4, 8, 12, 16],
            parameters=OLD,
            met_at=12,
        ),
        Example(
            "rising by more than five percent", {"loss": [1.0, 1.02, 1.1]}, steps=[0, 5, 10], parameters=OLD, met_at=10
        ),
        Example("NaN is no decrease", {"loss": [1.0, float("nan")]}, steps=[0, 10], parameters=OLD, met_at=10),
        Example(
            "only what should fall is judged",
            {"train-rmse": [1.0, 1.0], "validation-auc": [0.5, 0.5]},
            steps=[0, 10],
            parameters=OLD,
            met_at=10,
            tensor="train-rmse",
        ),
        Example("as high at the end as at the start", {"loss": [2.3, 2.31] * 12}, met_at=23),
        Example("not lower after many values", {"loss": [2.3, 2.31] * 120}, met_at=199),
        Example("falling, then standing still", {"loss": [2.3, 2.0, 1.5, 1.0, 1.0, *[0.9] * 300]}),
        Example("standing still, but few values", {"loss": [2.3] * 19}),
        Example(
            "logged at the beginning only",
            {"loss": [2.3] * 25 + [None] * 30, "other": [1 / (1 + n) for n in range(55)]},
        ),
        Example("NaN from the first step on (see NonFinite)", {"loss": [float("nan")] * 25}),
        Example(
            "falling on one of two workers",
            workers={"worker_0": {"loss": [2.3] * 25}, "worker_1": {"loss": [2.3 - n / 100 for n in range(25)]}},
        ),
        Example("a reward is logged", {"loss": [2.3] * 25, "reward": [float(n) for n in range(25)]}),
        Example("falling", {"loss": [1.0, 0.9, 0.8]}, steps=[0, 10, 20], parameters=OLD),
        Example("rising a little", {"loss": [1.0, 1.04]}, steps=[0, 10], parameters=OLD),
        Example("metrics that should rise", {"accuracy": [0.5, 0.5, 0.6]}, steps=[0, 10, 20], parameters=OLD),
        Example("not far enough apart", {"loss": [1.0, 2.0, 3.0]}, steps=[0, 4, 8], parameters=OLD),
        Example("one step", {"loss": [1.0]}, parameters=OLD),
        Example("tiny and huge scales", {"a": [1e-300, 9e-301], "b": [1e300, 9e299]}, steps=[0, 10], parameters=OLD),
        Example(
            "unsaved, and recovered from NaN", {"loss": [float("nan"), None, 1.0]}, steps=[0, 9, 20], parameters=OLD
        ),
        Example("not a single number", {"loss": [[1.0, 2.0], [1.0, 2.0]]}, steps=[0, 10], parameters=OLD),
        Example(
            "lower in training than in evaluation",
            {"loss": [0.5, 0.9, 0.4, 0.8]},
            steps=[0, 5, 10, 15],
            modes=["TRAIN", "EVAL", "TRAIN", "EVAL"],
            parameters=OLD,
        ),
    ),
)
