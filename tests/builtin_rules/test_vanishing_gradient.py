"""VanishingGradient: the mean |gradient| of every gradient against a threshold."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge, mistakes


def slowly(gradients: dict[str, list[list[float]]], threshold: float) -> int | None:
    """The first step at which some mean magnitude is below the threshold."""
    for step in range(len(next(iter(gradients.values())))):
        for series in gradients.values():
            if sum(abs(value) for value in series[step]) / len(series[step]) < threshold:
                return step
    return None


def test_parameters_are_sagemakers():
    assert defaults("VanishingGradient") == {"threshold": 1e-7}


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    gradients = {
        f"g{number}": [(generator.normal(size=3) * 10.0 ** generator.uniform(-9, -3)).tolist() for _ in range(6)]
        for number in range(3)
    }

    result = judge("VanishingGradient", gradients)

    assert result.met_at == slowly(gradients, 1e-7)


def test_the_limit_itself_is_quiet():
    assert judge("VanishingGradient", {"g": [0.5, 0.25]}, threshold="0.25").met_at is None


def test_a_zero_gradient_has_vanished():
    assert judge("VanishingGradient", {"g": [[1.0, 1.0], [0.0, 0.0]]}).met_at == 1


def test_other_tensors_are_not_looked_at():
    result = judge("VanishingGradient", {"g": [1.0], "w": [0.0]}, collections={"gradients": ["g"], "weights": ["w"]})

    assert (result.word, result.evaluated) == ("NoIssuesFound", 1)


def test_a_run_without_gradients_is_not_evaluated_and_says_so():
    result = judge("VanishingGradient", {"w": [0.0]}, collections={"weights": ["w"]})

    assert result.word == "Error"
    assert "no tensor of collection 'gradients'" in result.why


def test_a_threshold_of_zero_is_a_mistake():
    assert (
        "parameter 'threshold' is '0'; expected a number greater than 0"
        in mistakes("VanishingGradient", threshold="0")[0]
    )


RECOMMENDED = {"parameter_set": "recommended"}


@pytest.mark.parametrize("steps", [4, 5, 6])
def test_the_recommended_parameters_want_five_saved_steps(steps: int):
    result = judge("VanishingGradient", {"w": [1e-9] * steps, "head": [1e-2] * steps}, **RECOMMENDED)

    assert result.met_at == (4 if steps > 4 else None)


@pytest.mark.parametrize(
    "gradients",
    [
        {"w": [1e-8] * 9, "head": [1e-7] * 9},
        {"w": [10.0**-step for step in range(14)], "head": [10.0**-step for step in range(14)]},
        {"w": [1e-9 * 1.3**step for step in range(16)], "head": [1e-2] * 16},
        {"w": [0.0, *[1e-3] * 8], "head": [1e-2] * 9},
        {"w": [1e-9, 1e-9, 1e-3] * 5, "head": [1e-2] * 15},
    ],
    ids=["as small as the others", "converging", "growing", "zero at first", "now and then"],
)
def test_gradients_that_are_small_for_a_reason_are_quiet_by_the_recommended_parameters(
    gradients: dict[str, list[float]],
):
    assert judge("VanishingGradient", gradients, **RECOMMENDED).met_at is None


def test_a_run_in_which_all_gradients_are_zero_does_not_learn():
    assert judge("VanishingGradient", {"w": [0.0] * 5, "head": [0.0] * 5}, **RECOMMENDED).met_at == 4


def test_a_gradient_that_is_not_finite_does_not_make_the_others_small():
    run = {"w": [1e-8] * 6, "head": [float("inf")] * 6}

    assert judge("VanishingGradient", run, **RECOMMENDED).met_at is None
