"""WeightUpdateRatio: how much a weight changes, relative to itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge


def slow_ratio(now: list[float], before: list[float]) -> float:
    change = sum(abs(a - b) for a, b in zip(now, before, strict=True)) / len(now)
    return change / (sum(abs(b) for b in before) / len(before) + 1e-9)


def train(learning_rate: float, steps: range) -> list[np.ndarray]:
    """The weight of a line fitted to points by gradient descent."""
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(50, 4))
    target = inputs @ np.array([1.0, -2.0, 3.0, 0.5])
    weight = generator.normal(size=4)
    saved = []
    for step in range(steps.stop):
        if step in steps:
            saved.append(weight.copy())
        weight = weight - learning_rate * inputs.T @ (inputs @ weight - target) / 50
    return saved


def test_parameters_are_sagemakers():
    assert defaults("WeightUpdateRatio") == {
        "num_steps": None,
        "large_threshold": 10.0,
        "small_threshold": 1e-8,
        "epsilon": 1e-9,
    }


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    weights = [generator.normal(size=4)]
    for _ in range(8):
        weights.append(weights[-1] + generator.normal(size=4) * 10.0 ** generator.uniform(-11, 2))
    ratios = [slow_ratio(a.tolist(), b.tolist()) for a, b in zip(weights[1:], weights[:-1], strict=True)]
    expected = next((step for step, ratio in enumerate(ratios, 1) if ratio > 10 or ratio < 1e-8), None)

    result = judge("WeightUpdateRatio", {"w": weights})

    assert result.met_at == expected
    if expected is not None:
        assert result.findings[0].measured == pytest.approx(ratios[expected - 1], rel=1e-6)


@pytest.mark.parametrize(("num_steps", "partner"), [(None, 2), (1, None), (2, 2), (5, 1), (6, 0), (100, 0)])
def test_num_steps_is_how_far_back_it_looks(num_steps: int | None, partner: int | None):
    steps, weights = [0, 1, 4, 6], [1.0, 2.0, 4.0, 5.0]

    result = judge(
        "WeightUpdateRatio", {"w": weights}, steps=steps, num_steps=num_steps, large_threshold=0, start_step=6
    )

    measured = result.findings[0].measured if result.findings else None
    assert measured == (None if partner is None else pytest.approx((5 - weights[partner]) / weights[partner]))


@pytest.mark.parametrize(
    ("learning_rate", "expected"), [(1e-3, lambda at: at is None), (1e-10, lambda at: at == 1)], ids=["usual", "tiny"]
)
def test_learning_rates_of_the_old_tests(learning_rate: float, expected: Callable[[int | None], bool]):
    assert expected(judge("WeightUpdateRatio", {"w": train(learning_rate, range(75))}).met_at)


def test_steps_8_to_15_of_a_usual_run_are_quiet():
    weights = train(1e-4, range(8, 15))

    assert judge("WeightUpdateRatio", {"w": weights}, steps=list(range(8, 15))).word == "NoIssuesFound"


def test_the_finding_says_which_way_and_has_the_limit_of_its_own_tensor():
    run = {"a": [1.0, 1.0], "b": [1.0, 100.0]}

    finding = judge("WeightUpdateRatio", run).findings[0]

    assert (finding.tensor, finding.limit, finding.details) == ("a", 1e-8, {"update": "too small"})
    assert finding.affected.tensors == 2


def test_only_weights_are_looked_at():
    run = {"w": [1.0, 1.1], "x": [1.0, 1.0]}

    assert judge("WeightUpdateRatio", run, collections={"weights": ["w"]}).word == "NoIssuesFound"


def test_a_step_of_evaluation_is_no_update():
    run = {"w": [1.0, 1.1, 1.1, 1.2]}

    assert judge("WeightUpdateRatio", run, modes=["TRAIN", "TRAIN", "EVAL", "TRAIN"]).evaluated == 2


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([[0.1, -0.1], [0.9, 0.8]], 1),
        ([[0.1, -0.1], [5.0, -5.0]], 1),
        ([[0.0, 0.0], [1e-3, -1e-3], [2e-3, -1e-3]], None),
        ([[1e-6, 1e-6], [5e-4, 5e-4], [5e-3, 5e-3]], None),
        ([[0.1, 0.1]] * 8, None),
        ([[0.1, 0.1], [0.12, 0.1], [0.12, 0.1], [0.14, 0.1]], None),
    ],
    ids=["eight times as large", "flies off", "starts at zero", "starts near zero", "frozen", "accumulated"],
)
def test_the_recommended_parameters_look_for_updates_that_are_too_large(
    weights: list[list[float]], expected: int | None
):
    assert judge("WeightUpdateRatio", {"w": weights}, parameter_set="recommended").met_at == expected
