"""PoorWeightInitialization: how a model starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge

RULE = "PoorWeightInitialization"
NONE: dict[str, list[str]] = {"gradients": [], "losses": [], "weights": []}
RANDOM = np.random.default_rng(0)
WEIGHT = RANDOM.normal(size=(6, 5))


def slow_variance(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values)


def slow_percentile(values: list[float], percent: float) -> float:
    values = sorted(values)
    place = (len(values) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (place - low) * (values[high] - values[low])


def test_parameters_are_sagemakers():
    assert defaults(RULE) == {
        "activation_inputs_regex": (".*relu_input",),
        "threshold": 10.0,
        "distribution_range": 0.001,
        "patience": 5,
        "steps": 10.0,
    }


@pytest.mark.parametrize("seed", range(8))
def test_the_ratio_of_variances_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    run = {f"l{n}_relu_input": [generator.normal(0, generator.uniform(1, 3), 12) for _ in range(8)] for n in range(4)}
    ratios = []
    for step in range(8):
        variances = [slow_variance(values[step].tolist()) for values in run.values()]
        ratios.append(max(variances) / min(variances))
    expected = next((step for step, ratio in enumerate(ratios) if ratio > 10), None)

    result = judge(RULE, run, collections=NONE)

    assert result.met_at == expected
    if expected is not None:
        assert result.findings[0].measured == pytest.approx(ratios[expected])


@pytest.mark.parametrize("seed", range(8))
def test_the_range_of_gradients_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    run = {f"g{n}": [generator.normal(0, 10 ** generator.uniform(-4, 0), 12) for _ in range(8)] for n in range(2)}
    ranges = [
        min(
            slow_percentile(one.tolist(), 95) - slow_percentile(one.tolist(), 5)
            for one in (run["g0"][at], run["g1"][at])
        )
        for at in range(8)
    ]
    expected = next((step for step, one in enumerate(ranges) if one < 0.001), None)

    result = judge(RULE, run, collections={**NONE, "gradients": list(run)})

    assert result.met_at == expected
    if expected is not None:
        worst = result.findings[0].affected.worst
        assert worst is not None
        assert worst.measured == pytest.approx(ranges[expected])


@pytest.mark.parametrize("seed", range(12))
def test_the_fall_of_the_loss_agrees_with_the_slow_way(seed: int):
    losses = np.random.default_rng(seed).normal(size=10).round(1).tolist()
    best, since, expected = float("inf"), 0, None
    for step, loss in enumerate(losses):
        since = 0 if loss < best else since + 1
        best = min(best, loss)
        if since >= 3 and expected is None:
            expected = step

    result = judge(RULE, {"loss": losses}, collections={**NONE, "losses": ["loss"]}, patience=3)

    assert result.met_at == expected


def test_the_loss_is_the_mean_of_all_losses():
    run = {"a": [1.0, 0.5, 0.4, 0.3], "b": [1.0, 1.6, 1.7, 1.8]}

    assert judge(RULE, run, collections={**NONE, "losses": ["a", "b"]}, patience=3).met_at == 3
    assert judge(RULE, run, collections={**NONE, "losses": ["a"]}, patience=3).word == "NoIssuesFound"


def test_a_loss_that_is_nan_has_not_fallen():
    losses = [1.0, *[float("nan")] * 5]

    assert judge(RULE, {"loss": losses}, collections={**NONE, "losses": ["loss"]}).met_at == 5


def test_only_the_first_steps_are_judged():
    run = {"a_relu_input": [WEIGHT] * 12, "b_relu_input": [WEIGHT] * 10 + [WEIGHT * 100] * 2}

    late = judge(RULE, run, collections=NONE)

    assert (late.word, late.evaluated) == ("NoIssuesFound", 11)
    assert judge(RULE, run, collections=NONE, parameters={"steps": "11.0"}).met_at == 10


def test_steps_are_those_at_which_something_was_saved_that_it_looks_at():
    run: dict[str, list[Any]] = {
        "x": [1.0] * 40,
        "a_relu_input": [None] * 30 + [WEIGHT] * 2,
        "b_relu_input": [None] * 30 + [WEIGHT * 100] * 2,
    }

    assert judge(RULE, run, collections=NONE).met_at == 30


def test_a_single_layer_and_equal_layers_are_quiet():
    assert judge(RULE, {"relu_input": [WEIGHT * 0]}, collections=NONE).word == "NoIssuesFound"
    both = {"a_relu_input": [WEIGHT * 0], "b_relu_input": [WEIGHT * 0]}
    assert judge(RULE, both, collections=NONE).word == "NoIssuesFound"


def test_layers_of_different_workers_are_not_compared():
    workers = {"worker_0": {"a_relu_input": [WEIGHT]}, "worker_1": {"a_relu_input": [WEIGHT * 100]}}

    assert judge(RULE, {}, workers=workers, collections=NONE).word == "NoIssuesFound"


def test_both_ends_of_the_ratio_are_named():
    run = {"a_relu_input": [WEIGHT], "b_relu_input": [WEIGHT * 3], "c_relu_input": [WEIGHT * 100]}

    finding = judge(RULE, run, collections=NONE).findings[0]

    assert (finding.tensor, finding.affected.tensors) == ("a_relu_input", 2)
    assert finding.details["variance"] == pytest.approx(WEIGHT.var())


def test_nothing_to_look_at_is_told():
    result = judge(RULE, {"x": [1.0]}, collections=NONE)

    assert result.word == "Error"
    assert "nothing was saved of what it looks at: regex '.*relu_input'; collection 'gradients'" in result.why


@pytest.mark.parametrize(
    ("weight", "fires"),
    [
        (np.full((6, 5), 0.05), True),
        (np.tile(WEIGHT[:1], (6, 1)), True),
        (np.tile(WEIGHT[:, :1], (1, 5)), True),
        (np.ones((4, 3, 3, 3)), True),
        (WEIGHT, False),
        (np.zeros((6, 5)), False),
        (np.ones(6), False),
        (WEIGHT[:1], False),
        (WEIGHT[:, :1], False),
        (np.eye(6), False),
        (np.ones((4, 1, 3, 3)), False),
        (np.full((6, 5), np.nan), False),
    ],
)
def test_units_that_are_alike(weight: np.ndarray, fires: bool):
    result = judge(RULE, {"w": [weight]}, collections={**NONE, "weights": ["w"]}, units_alike=True)

    assert (result.met_at == 0) is fires


def test_units_are_not_compared_by_sagemakers_defaults():
    run = {"w": [np.ones((6, 5))], "a_relu_input": [WEIGHT]}

    assert judge(RULE, run, collections={**NONE, "weights": ["w"]}).word == "NoIssuesFound"


def test_a_small_healthy_network_is_quiet_when_recommended_and_not_by_sagemakers_defaults():
    run: dict[str, list[Any]] = {
        "w": [WEIGHT] * 6,
        "g": [WEIGHT * 1e-5] * 6,
        "loss": [2.3, 2.4, 2.35, 2.32, 2.31, 2.4],
        "a_relu_input": [WEIGHT] * 6,
        "b_relu_input": [WEIGHT * 5] * 6,
    }
    collections = {"weights": ["w"], "gradients": ["g"], "losses": ["loss"]}

    assert judge(RULE, run, collections=collections, parameter_set="recommended").word == "NoIssuesFound"
    assert judge(RULE, run, collections=collections).met_at == 0


def test_an_evaluation_is_no_first_step_when_recommended():
    run = {"w": [np.ones((6, 5)), WEIGHT]}

    result = judge(
        RULE,
        run,
        modes=["EVAL", "TRAIN"],
        collections={**NONE, "weights": ["w"]},
        parameter_set="recommended",
    )

    assert result.word == "NoIssuesFound"


def test_layers_behind_a_dead_one_are_not_compared_when_recommended():
    run = {"a_relu_input": [WEIGHT], "b_relu_input": [np.full((6, 5), -8.0)]}

    assert judge(RULE, run, collections=NONE).findings[0].measured == "Infinity"
    assert judge(RULE, run, collections=NONE, parameter_set="recommended").word == "NoIssuesFound"


@pytest.mark.parametrize(
    ("weights", "fires"),
    [
        ([np.zeros((6, 5)), np.zeros((4, 6)), np.ones(4)], True),
        ([np.zeros((6, 5)), np.ones(4)], False),
        ([np.zeros((6, 5)), WEIGHT], False),
    ],
)
def test_zero_weights_are_poor_only_where_all_of_several_are_zero(weights: list[np.ndarray], fires: bool):
    run = {f"w{number}": [weight] for number, weight in enumerate(weights)}

    result = judge(RULE, run, collections={**NONE, "weights": list(run)}, units_alike=True)

    assert (result.met_at == 0) is fires
