"""NotLearning: weights that stand still although their gradients arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from builtin_rules.weights._gradients import weight_named
from evaluator.testing import ExampleResult
from tests.builtin_rules.judging import judge

COLLECTIONS = {"weights": ["a", "b"], "gradients": ["gradient/a", "gradient/b"]}
INF = float("inf")


def moving(pattern: str) -> list[float]:
    """A weight that moves where the pattern has an x, from its second value on."""
    return [1.0 + pattern[: place + 1].count("x") / 10 for place in range(len(pattern))]


def layers(weight: str, gradients: Sequence[float | None], other: str | None = None, **how: Any) -> ExampleResult:
    """Layer a as given, and beside it layer b, which moves at every step unless told otherwise."""
    run = {
        "a": moving(weight),
        "b": moving(other if other is not None else "x" * len(weight)),
        "gradient/a": gradients,
        "gradient/b": [0.1] * len(weight),
    }
    return judge("NotLearning", run, collections=COLLECTIONS, **how)


def slowly(weight: str, others_move: bool) -> int | None:
    """The step at which the weight has stood still for too long."""
    longest, still, moves = 0, 0, 0
    for step, mark in enumerate(weight):
        if step == 0:
            continue
        if mark == "x":
            longest, still, moves = max(longest, still), 0, moves + 1
        else:
            still += 1
            known = moves > 0 or (others_move and step >= 3)
            if still >= (max(5, 2 * longest + 1) if known else 10):
                return step
    return None


PATTERNS = ["." * 8, "xxxxx" + "." * 8, ".x" * 10, "...x" * 6, "...x" * 3 + "." * 8, "x" * 12, "....x" * 5]


@pytest.mark.parametrize("weight", PATTERNS)
def test_it_agrees_with_the_slow_way_beside_a_layer_that_moves(weight: str):
    other = "x" * len(weight)
    # a layer beside it that moves at every step shows that updates are made there, not how often here
    expected = slowly(weight, others_move=True)

    assert layers(weight, [0.1] * len(weight), other).met_at == expected


@pytest.mark.parametrize("weight", [*PATTERNS, "." * 15])
def test_it_agrees_with_the_slow_way_where_all_layers_move_alike(weight: str):
    assert layers(weight, [0.1] * len(weight), weight).met_at == slowly(weight, others_move=False)


def test_the_finding_says_for_how_long_and_which_gradient_arrived():
    finding = layers("." * 8, [0.2] * 8).findings[0]

    assert (finding.step, finding.tensor, finding.measured, finding.limit, finding.mode) == (5, "a", 5, 5, "GLOBAL")
    assert finding.details["gradient"] == "gradient/a"
    assert finding.details["mean_gradient"] == pytest.approx(0.2)
    assert (finding.affected.tensors, finding.affected.of) == (1, 2)


def test_a_rate_of_zero_is_found_where_nothing_has_moved_yet():
    assert layers("." * 15, [0.1] * 15, "." * 15).met_at == 10


@pytest.mark.parametrize(
    "gradients",
    [
        [None] * 12,
        [0.0] * 12,
        [float("nan")] * 12,
        [INF, INF, INF, 0.1] * 3,
        [1e-6] * 12,
        [10.0] + [0.05] * 11,
    ],
    ids=["not saved", "zero", "NaN", "skipped now and then", "too small to move it", "converged"],
)
def test_a_weight_without_a_gradient_that_could_move_it_is_quiet(gradients: Sequence[float | None]):
    assert layers("." * 12, gradients).met_at is None


@pytest.mark.parametrize("period", [2, 4, 8])
def test_gradients_that_are_accumulated_are_quiet(period: int):
    weight = ("." * (period - 1) + "x") * 6

    assert layers(weight, [0.1] * len(weight), weight).met_at is None


def test_the_end_of_a_schedule_is_quiet():
    weight = "x" * 10 + "." * 4

    assert layers(weight, [0.1] * 14, weight).met_at is None


def test_standing_still_during_evaluation_is_quiet():
    modes = ["TRAIN", "TRAIN", *["EVAL"] * 10]

    assert layers("xx" + "." * 10, [0.1] * 12, modes=modes).met_at is None


def test_a_run_whose_gradients_have_other_names_is_not_judged_and_says_so():
    run = {"a": [1.0] * 12, "gradient_of_layer": [0.1] * 12}

    result = judge("NotLearning", run, collections={"weights": ["a"], "gradients": ["gradient_of_layer"]})

    assert result.word == "Error"
    assert "no gradient was saved that belongs to a saved weight" in result.why


def test_each_worker_is_compared_with_its_own_gradient():
    still = {"a": moving("." * 8), "b": moving("x" * 8), "gradient/a": [None] * 8, "gradient/b": [0.1] * 8}
    run = {"worker_0": still, "worker_1": {**still, "gradient/a": [0.1] * 8}}

    finding = judge("NotLearning", {}, workers=run, collections=COLLECTIONS).findings[0]

    assert (finding.worker, finding.tensor, finding.affected.tensors) == ("worker_1", "a", 1)


def test_a_weight_that_is_saved_later_is_compared_with_its_own_gradient():
    later: list[float | None] = [None] * 4
    run: dict[str, Sequence[Any]] = {
        "b": moving("x" * 12),
        "gradient/b": [0.1] * 12,
        "a": [*later, *moving("." * 8)],
        "gradient/a": [*later, *[0.2] * 8],
    }

    finding = judge("NotLearning", run, collections=COLLECTIONS).findings[0]

    assert (finding.step, finding.tensor, finding.details["gradient"]) == (9, "a", "gradient/a")


@pytest.mark.parametrize(
    ("gradient", "weight"),
    [
        ("gradient/Net_fc1.weight", "Net_fc1.weight"),
        ("gradient/conv0_weight", "conv0_weight"),
        ("gradients/dense/kernel:0Grad", "dense/weights/dense/kernel:0"),
        ("gradients/dense_1/kernelGrad", "dense_1/weights/dense_1/kernel:0"),
        ("gradients/dense/kernel:0Grad", "weights/dense/kernel:0"),
    ],
)
def test_gradients_are_paired_with_weights_as_the_hooks_name_them(gradient: str, weight: str):
    assert weight in weight_named(gradient)


def test_small_moves_in_single_precision_are_moves():
    weights = [np.float32(0.1) + np.arange(4, dtype=np.float32) * 0 + np.float32(7.5e-9) * step for step in range(12)]
    run: dict[str, Sequence[Any]] = {"a": weights, "gradient/a": [0.1] * 12}

    assert judge("NotLearning", run, collections=COLLECTIONS).met_at is None
