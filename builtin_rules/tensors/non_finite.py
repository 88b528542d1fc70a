"""Fires when something becomes NaN or infinite, and names where that began.

Looks at every tensor of a floating-point type at each saved step. Once one of them gives reason to fire, the finding
names the first tensor, in the order in which training saved them, of the first step from which on something has not
been finite: later tensors and steps only pass it on. Where only reductions were saved, they are looked at instead.

A reason to fire is every tensor that is not finite, at once, except
- a gradient (a tensor with `grad` in its name, also a scalar `grad_norm`): loss scaling makes it overflow by design, so
  it is a reason only when it is not finite at `gradient_steps` of its last `gradient_window` saved values, when it had
  no finite value among its first `first_steps`, or when the run ends with it and another worker's is finite;
- a tensor that was never finite and is no loss, gradient or parameter, by its name: it may be so on purpose, as masks
  of attention and absent quantiles are (`constants` changes that).

Quiet when: every number is finite, however large; or what is not is one of these exceptions.
Source: ours; user reports 33, 35, 36, 38, 39, 52 and 91 ask for it. How `measured` counts: the elements that are not
finite, or 1 where only reductions show that there are any. See builtin_rules/tensors/_finite.py for the exceptions.
"""

import numpy as np
from pydantic import Field

from builtin_rules._selecting import NamedTensors
from builtin_rules.tensors._finite import (
    FIRST_STEPS,
    HISTORY,
    INF,
    NAN,
    NOT_FINITE,
    REMEMBERED,
    STEPS,
    WINDOW,
    constant,
    how,
    is_gradient,
    named,
    overflowing,
)
from evaluator.rule import Example, NotYet, Progress, ProgressView, Recommended, Rule, State, Summary, Verdict
from evaluator.segments import Bools


class Parameters(NamedTensors):
    """What NonFinite can be told."""

    gradient_steps: int = Field(
        STEPS, ge=1, description="A gradient must not be finite at this many of its last saved values."
    )
    gradient_window: int = Field(WINDOW, ge=1, le=REMEMBERED, description="How many last saved values these are.")
    first_steps: int = Field(
        FIRST_STEPS, ge=1, description="A gradient that was not finite yet is given this many saved values."
    )
    constants: bool = Field(False, description="Whether a tensor that was never finite is always a reason to fire.")


def left_behind(tensors: State, progress: ProgressView, bad: Bools) -> Bools:
    """Per column whether the run has ended with a gradient that is not finite on this worker and is on another.

    Our choice: one worker that leaves on a NaN lets the others wait for it for ever, and nothing is saved any more
    (user report 52). Loss scaling skips such a step on all workers, and then goes on.
    """
    gradients = named(tensors, is_gradient)
    if not progress.complete or not (bad & gradients).any():
        return np.zeros(len(bad), np.bool_)
    last = {column.worker: step for column, step in zip(progress.columns, progress.last_step.tolist(), strict=True)}
    columns = tensors.columns[: len(bad)]
    newest = np.array([last.get(column.worker) == tensors.row.step for column in columns], np.bool_)
    newest &= tensors.row.saved[: len(bad)]
    healthy = {columns[at].tensor for at in np.flatnonzero(newest & ~bad).tolist()}
    return bad & gradients & newest & np.array([column.tensor in healthy for column in columns], np.bool_)


def begins(tensors: State, progress: ProgressView, parameters: Parameters) -> Verdict:
    """tensors: what is known of the past of each column; see HISTORY."""
    since = tensors["since"]
    if not np.count_nonzero(tensors["saved"]):
        return NotYet("no tensor of a floating-point type was saved")
    bad = since >= 0
    if not np.count_nonzero(bad):
        return None
    on_purpose = np.zeros(len(bad), np.bool_) if parameters.constants else constant(tensors)
    tolerated = overflowing(
        tensors, parameters.gradient_steps, parameters.gradient_window, parameters.first_steps
    ) & ~left_behind(tensors, progress, bad)
    reasons = bad & ~on_purpose & ~tolerated
    if not reasons.any():
        return None
    # A constant was there before; but at the first step of all nobody can tell it from the cause.
    candidates = bad & (~on_purpose | (since >= since[reasons].min()))
    first_step = int(since[candidates].min())
    first = candidates & (since == first_step)
    mask = np.zeros(len(tensors.columns), np.bool_)
    mask[: len(first)] = first
    return _met(tensors, mask, first_step, int(bad.sum()), int(tensors["before"][first].max()))


def _met(tensors: State, first: Bools, step: int, now: int, healthy: int) -> Verdict:
    nan, infinite = tensors["nan"], tensors["inf"]
    room = np.zeros((2, len(first)))
    room[:, : len(nan)] = nan, infinite
    each = {"found": how(*room), "nan": room[0], "inf": room[1]}
    message = (
        f"not finite since step {step}, where {{tensors}} of {{of}} tensors were not ({{measured}} elements); {now} now"
    )
    return tensors.met(
        first,
        measured=room.sum(axis=0),
        limit=0.0,
        of=int((tensors["saved"] > 0).sum()),
        each=each,
        details={"first_step": step, "not_finite_now": now},
        message=message,
        last_healthy=healthy,
    )


RULE = Rule(
    name="NonFinite",
    severity="critical",
    parameters=Parameters,
    requires=lambda parameters: [
        Summary(parameters.selection, by=NOT_FINITE, state=HISTORY),
        Progress(triggers=False),
    ],
    condition=begins,
    at=frozenset({"step", "end"}),
    precedence=0,
    recommended={
        "exclude_regex": Recommended("^trees/", "in XGBoost's tables of trees, NaN says that a leaf has no split")
    },
    examples=(
        Example(
            "the first of three layers, of which the others pass it on",
            {"relu_1": [1.0, 2.0], "relu_2": [1.0, NAN], "relu_3": [1.0, NAN], "loss": [1.0, NAN]},
            met_at=1,
            tensor="relu_2",
        ),
        Example(
            "a gradient, told when the weight that it spoils is saved",
            {"weight": [1.0, 1.0, NAN], "gradient/weight": [0.1, NAN, NAN]},
            met_at=2,
            tensor="gradient/weight",
        ),
        Example("gradients only, again and again", {"gradient/w": [1.0, INF, 1.0, INF, NAN]}, met_at=4),
        Example("a norm of gradients", {"grad_norm": [1.0, 2.0, INF, INF, INF]}, met_at=4),
        Example("a loss from the first step on", {"x": [NAN, NAN], "loss": [NAN, NAN]}, met_at=0, tensor="x"),
        Example("a weight from the first step on", {"mask": [-INF], "fc.weight": [NAN]}, met_at=0),
        Example(
            "NaN beside a constant that was NaN before",
            {"quantile": [NAN, NAN], "relu": [1.0, NAN]},
            met_at=1,
            tensor="relu",
        ),
        Example(
            "one worker ends with NaN, which the others wait for",
            workers={"worker_0": {"gradient/w": [1.0, 1.0]}, "worker_1": {"gradient/w": [1.0, NAN]}},
            met_at=1,
        ),
        Example(
            "a loss scale is found",
            {"gradient/w": [INF, INF, NAN, INF, 1.0, 1.1, 1.2], "w": [1.0, 1.0, 1.0, 1.0, 1.0, 1.1, 1.2]},
        ),
        Example("a loss scale is raised now and then", {"gradient/w": [1.0, 1.0, 1.0, 1.0, INF, 1.0] * 4}),
        Example("constants", {"quantile": [NAN] * 4, "mask": [[0.0, -INF]] * 4, "weight": [1.0, 1.1, 1.2, 1.3]}),
        Example("healthy", {"w": [[0.1, -0.2], [0.1, -0.3]]}),
        Example("tiny and huge, but finite", {"w": [[1e-300, 1e300], [5e-324, -1.7e308]]}),
        Example("half precision, whose sum of squares would overflow", {"w": [np.full(9, 6e4, np.float16)]}),
        Example("whole numbers and truth values", {"n": [[1, 2]], "b": [[True]], "w": [0.5]}),
        Example("unsaved at one step", {"w": [1.0, None, 1.0]}),
        Example("leaves of trees", {"trees/Split": [[0.5, NAN]] * 3, "train-rmse": [3.0, 2.0, 1.0]}),
        Example("one step", {"w": [1.0]}),
    ),
)
