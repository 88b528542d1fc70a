"""SaturatedActivation: inputs of tanh and sigmoid where the slope is almost zero."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge


def slow_percent(inputs: np.ndarray, low: float, high: float) -> float:
    units = list(np.ndindex(inputs.shape[1:]))
    saturated = 0
    for unit in units:
        active = sum(1 for sample in range(len(inputs)) if low < inputs[(sample, *unit)] < high)
        saturated += 100 * active / len(inputs) < 1.0
    return 100 * saturated / len(units)


def test_parameters_are_sagemakers():
    assert defaults("SaturatedActivation") == {
        "collection_names": None,
        "tensor_regex": (".*tanh_input", ".*sigmoid_input"),
        "threshold_tanh_min": -9.4999,
        "threshold_tanh_max": 9.4999,
        "threshold_sigmoid_min": -23.0,
        "threshold_sigmoid_max": 16.99999,
        "threshold_inactivity": 1.0,
        "threshold_layer": 50.0,
    }


@pytest.mark.parametrize(
    ("name", "low", "high"), [("a_tanh_input", -9.4999, 9.4999), ("a_sigmoid_input", -23, 16.99999)]
)
@pytest.mark.parametrize("seed", range(6))
def test_it_agrees_with_the_slow_way(name: str, low: float, high: float, seed: int):
    generator = np.random.default_rng(seed)
    shape = (int(generator.integers(1, 4)), *generator.integers(1, 6, int(generator.integers(1, 3))))
    inputs = [generator.normal(0, 10.0 * step, shape) for step in range(1, 7)]
    percents = [slow_percent(one, low, high) for one in inputs]
    expected = next((step for step, percent in enumerate(percents) if percent > 50), None)

    result = judge("SaturatedActivation", {name: inputs})

    assert result.met_at == expected
    if expected is not None:
        assert result.findings[0].measured == pytest.approx(percents[expected])


@pytest.mark.parametrize(
    ("name", "value", "fires"),
    [
        ("tanh_input", 9.4998, False),
        ("tanh_input", 9.5, True),
        ("tanh_input", -9.5, True),
        ("sigmoid_input", 16.9, False),
        ("sigmoid_input", 17.0, True),
        ("sigmoid_input", -22.9, False),
        ("sigmoid_input", -23.0, True),
    ],
)
def test_the_limits_of_each_function(name: str, value: float, fires: bool):
    result = judge("SaturatedActivation", {name: [np.full((4, 3), value)]})

    assert (result.met_at == 0) is fires


def test_tensors_of_other_functions_in_a_collection_are_not_judged():
    run = {"h": [np.full((2, 2), 99.0)], "a_tanh_input": [np.zeros((2, 2))]}

    both = judge("SaturatedActivation", run, collection_names="layers")
    alone = judge("SaturatedActivation", {"h": run["h"]}, collection_names="layers")

    assert both.word == "NoIssuesFound"
    assert alone.word == "Error"
    assert "neither" not in alone.why
    assert "tanh or sigmoid" in alone.why


def test_one_sample_in_range_keeps_a_unit_active():
    inputs = np.full((100, 4), 99.0)
    inputs[0] = 0

    assert judge("SaturatedActivation", {"tanh_input": [inputs]}).word == "NoIssuesFound"


def test_only_some_units_are_no_layer():
    inputs = np.zeros((10, 4))
    inputs[:, :2] = 99

    assert judge("SaturatedActivation", {"tanh_input": [inputs]}).word == "NoIssuesFound"
    assert judge("SaturatedActivation", {"tanh_input": [inputs]}, threshold_layer=40).met_at == 0


def test_modules_with_a_capital_letter_are_meant_when_recommended():
    run = {"block0.Tanh_input_0": [np.full((4, 3), 20.0)]}

    assert judge("SaturatedActivation", run).word == "Error"
    assert judge("SaturatedActivation", run, parameter_set="recommended").met_at == 0
