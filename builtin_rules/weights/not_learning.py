"""Fires when gradients of a weight arrive and the weight does not move.

Pairs every tensor of the collection `gradients` with the weight that it is the gradient of, by their names, and counts
at how many saved steps in a row the gradient was there, finite and not zero, while the weight stayed as it was saved
before: its mean |change| was no more than `threshold` of its mean |value|. Fires at `steps` of them where the weight
has moved before, or another one on that worker three times: the optimiser then skips this one. Where nothing has moved
yet it takes `first_steps`, and where weights stand still between their moves more than twice as many as that: gradients
may be accumulated over many steps.

Quiet when: no gradient of the weight is saved (it is frozen by intent); the gradient is not finite (loss scaling skips
such steps), zero, or too small for the weight to move (`expected_to_move`: the end of training, a schedule that begins
near zero); or the weight moves now and then.
Source: ours; user report 40 (an optimiser that held other parameters than the model, TrainCheck). Weights legitimately
stand still between steps of evaluation, so only values saved in `modes` are judged.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from builtin_rules.weights._gradients import pairs
from builtin_rules.weights._moves import ARRIVALS, movements
from builtin_rules.weights._updates import UPDATE
from evaluator.modes import Mode
from evaluator.rule import (
    TRAINING,
    Column,
    Example,
    NotYet,
    Previous,
    Rule,
    RuleParameters,
    State,
    Summary,
    Verdict,
)
from evaluator.segments import Array, Bools, Floats

STILL = 1e-8
"""A weight in single precision that an optimiser moves at all changes by more: its elements have steps of 6e-8."""
LEAST_SHARE = 1e-4
"""A gradient below this share of its weight need not move it: a rate of 1e-3 makes an update that is rounded off."""
LEAST_OF_USUAL = 0.01
"""A gradient that has fallen below this share of the largest one until now belongs to a run that has converged."""
MOVES = 3
"""So many moves of another weight show that updates are made."""


class Parameters(RuleParameters):
    """What NotLearning can be told."""

    steps: int = Field(
        5, ge=2, description="Fires at this many steps in a row, where this weight or others have moved before."
    )
    first_steps: int = Field(10, ge=2, description="Fires at this many steps in a row, where nothing has moved yet.")
    threshold: float = Field(
        STILL, ge=0, description="A change of no more than this share of the weight is standing still."
    )
    modes: frozenset[Mode] = Field(TRAINING, min_length=1, description="Only values saved in these modes are judged.")


def expected_to_move(gradient: Floats, largest: Floats, size: Floats) -> Bools:
    """Whether a gradient is large enough for an optimiser to move the weight.

    Our choice: against the weight, because updates below the resolution of its number format are lost, and against the
    largest gradient so far, because in a run that has converged they are.
    """
    return (gradient >= LEAST_SHARE * size) & (gradient >= LEAST_OF_USUAL * largest)


def enough(weights: State, parameters: Parameters) -> Floats:
    """Per weight at how many steps in a row it is no longer a pause between two updates."""
    moves, rhythm = weights["moves"], weights["rhythm"]
    workers = np.array([column.worker for column in weights.columns[: len(moves)]])
    names, of = np.unique(workers, return_inverse=True)
    most, longest = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    np.maximum.at(most, of, moves)
    np.maximum.at(longest, of, rhythm)
    known = (moves > 0) | (most[of] >= MOVES)
    usual = np.where(moves > 0, rhythm, longest[of])
    return np.where(known, np.maximum(parameters.steps, 2 * usual + 1), parameters.first_steps).astype(np.float64)


def stands_still(weights: State, gradients: State, parameters: Parameters) -> Verdict:
    """weights: how each has moved; gradients: whether they arrived, row: mean |gradient|."""
    paired = pairs(weights.columns, gradients.columns, len(gradients["arrived"]))
    if not paired.any:
        return NotYet("no gradient was saved that belongs to a saved weight, by its name")
    stood = weights["still"] >= parameters.steps
    if not np.count_nonzero(stood):
        return None
    saved, known = weights.row.saved & paired.there, len(stood)
    if not np.count_nonzero(saved[:known] & stood):
        return None
    saved[known:] = False
    of = paired.gradient
    arrived, largest, gradient = gradients["arrived"][of], gradients["largest"][of], gradients.row.values[of]
    limit = np.full(len(saved), np.inf)
    limit[:known] = enough(weights, parameters)
    still = np.zeros(len(saved))
    still[:known] = weights["still"]
    size = weights.row.values[:, 1]
    stuck = saved & (np.minimum(still, arrived) >= limit) & expected_to_move(gradient, largest, size)
    if not stuck.any():
        return None
    return weights.met(
        stuck,
        measured=still,
        limit=limit,
        of=int(saved.sum()),
        each={"mean_gradient": gradient, "mean_weight": size, "gradient": _names(gradients.columns, of)},
        message="the weight has not moved at {measured} saved steps in a row, although its gradient arrives; "
        "{tensors} of {of} weights",
    )


def _names(columns: Sequence[Column], at: Array) -> Array:
    return np.array([columns[one].tensor for one in at.tolist()])


def needs(parameters: Parameters) -> list[Summary]:
    """How the weights move, and their gradients, at the steps that have both."""
    return [
        Summary(
            "weights",
            by=UPDATE,
            modes=parameters.modes,
            partner=Previous(),
            state=movements(parameters.threshold),
        ),
        Summary("gradients", by="abs_mean", modes=parameters.modes, state=ARRIVALS),
    ]


def _layers(
    weights: Sequence[float], gradients: Sequence[float | None], other: Sequence[float] | None = None
) -> dict[str, Sequence[float | None]]:
    """A layer `a`, and beside it a layer `b` that learns."""
    count = len(weights)
    return {
        "a": weights,
        "b": other if other is not None else [1.0 + step / 10 for step in range(count)],
        "gradient/a": gradients,
        "gradient/b": [0.1] * count,
    }


COLLECTIONS = {"weights": ["a", "b"], "gradients": ["gradient/a", "gradient/b"]}
ACCUMULATED = [1.0 + (step // 4) / 10 for step in range(24)]
RISING = [1.0 + step / 10 for step in range(12)]

RULE = Rule(
    name="NotLearning",
    severity="error",
    parameters=Parameters,
    requires=needs,
    condition=stands_still,
    precedence=30,
    examples=(
        Example(
            "one layer is not in the optimiser",
            _layers([1.0] * 8, [0.1] * 8),
            collections=COLLECTIONS,
            met_at=5,
            tensor="a",
        ),
        Example(
            "nothing moves",
            _layers([1.0] * 20, [0.1] * 20, [2.0] * 20),
            collections=COLLECTIONS,
            met_at=10,
        ),
        Example(
            "it stopped moving",
            _layers([1.0, 1.1, 1.2, *[1.3] * 8], [0.1] * 11, [1.0, 1.1, 1.2, *[1.3] * 8]),
            collections=COLLECTIONS,
            met_at=8,
        ),
        Example("learning", _layers(RISING, [0.1] * 12), collections=COLLECTIONS),
        Example("frozen by intent: no gradient", _layers([1.0] * 12, [None] * 12), collections=COLLECTIONS),
        Example("dead: the gradient is zero", _layers([1.0] * 12, [0.0] * 12), collections=COLLECTIONS),
        Example(
            "gradients of four steps make one update",
            _layers(ACCUMULATED, [0.1] * 24, ACCUMULATED),
            collections=COLLECTIONS,
        ),
        Example(
            "loss scaling skips updates",
            _layers([1.0] * 6 + RISING, [float("inf")] * 6 + [0.1] * 12),
            collections=COLLECTIONS,
        ),
        Example(
            "converged",
            _layers([*RISING, *[2.1] * 12], [0.1] * 12 + [1e-5] * 12, [*RISING, *[2.1] * 12]),
            collections={"weights": ["a", "b"], "gradients": ["gradient/a"]},
        ),
        Example(
            "standing still during evaluation",
            _layers([1.0, *[1.1] * 8], [0.1] * 9, [1.0, *[1.1] * 8]),
            collections=COLLECTIONS,
            modes=["TRAIN", "TRAIN", *["EVAL"] * 7],
        ),
        Example("one step", _layers([1.0], [0.1]), collections=COLLECTIONS),
    ),
)
