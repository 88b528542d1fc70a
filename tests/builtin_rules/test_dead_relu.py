"""DeadRelu: units that put out zero for all samples."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge


def test_parameters_are_sagemakers():
    assert defaults("DeadRelu") == {
        "tensor_regex": (".*relu_output",),
        "threshold_inactivity": 1.0,
        "threshold_layer": 50.0,
    }


def slow_percent(output: np.ndarray, threshold_inactivity: float) -> float:
    batch = len(output)
    dead = 0
    units = list(np.ndindex(output.shape[1:]))
    for unit in units:
        active = sum(1 for sample in range(batch) if output[(sample, *unit)] > 0)
        dead += 100 * active / batch < threshold_inactivity
    return 100 * dead / len(units)


def network(scale: float) -> np.ndarray:
    """The output of a dense layer of ten units, with weights of this scale."""
    generator = np.random.default_rng(3)
    return np.maximum(generator.normal(size=(64, 20)) @ (scale * generator.normal(size=(20, 10))), 0)


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    shape = (int(generator.integers(1, 9)), *generator.integers(1, 5, int(generator.integers(1, 4))))
    rates = generator.random(shape[1:])
    outputs = [np.where(generator.random(shape) < rates**3, 1.0, 0.0) for _ in range(6)]
    inactivity, layer = (float(generator.uniform(0, 60)) for _ in range(2))
    percents = [slow_percent(output, inactivity) for output in outputs]

    result = judge("DeadRelu", {"relu_output": outputs}, threshold_inactivity=inactivity, threshold_layer=layer)

    expected = next((step for step, percent in enumerate(percents) if percent > layer), None)
    assert result.met_at == expected
    if expected is not None:
        assert result.findings[0].measured == pytest.approx(percents[expected])


def test_a_layer_with_zero_weights_fires_and_an_initialised_one_does_not():
    assert judge("DeadRelu", {"dense_relu_output": [network(0.0)]}).met_at == 0
    assert judge("DeadRelu", {"dense_relu_output": [network(0.2)] * 3}).word == "NoIssuesFound"


def test_exactly_the_limits_are_quiet():
    half = np.array([[0.0, 1.0], [0.0, 1.0]])
    hundredth = np.zeros((100, 2))
    hundredth[0] = 1

    assert judge("DeadRelu", {"relu_output": [half]}).word == "NoIssuesFound"
    assert judge("DeadRelu", {"relu_output": [hundredth]}).word == "NoIssuesFound"


def test_in_one_axis_every_element_is_a_unit():
    assert judge("DeadRelu", {"relu_output": [np.array([0.0, 0.0, 1.0])]}).met_at == 0
    assert judge("DeadRelu", {"relu_output": [np.array([0.0, 1.0])]}).word == "NoIssuesFound"


@pytest.mark.parametrize("axis", [1, 3])
def test_channels_are_found_on_either_axis(axis: int):
    output = np.random.default_rng(0).random((4, 6, 6, 6))
    output = np.where(output > 0.9, output, 0)
    np.moveaxis(output, axis, 0)[:4] = 0

    by_channel = judge("DeadRelu", {"relu_output": [output]}, units="channels")

    assert by_channel.findings[0].measured == pytest.approx(100 * 4 / 6)


def test_a_sparse_convolution_is_quiet_by_channels():
    output = np.random.default_rng(0).random((4, 6, 6, 6))
    sparse = np.where(output > 0.9, output, 0)

    assert judge("DeadRelu", {"relu_output": [sparse]}).met_at == 0
    assert judge("DeadRelu", {"relu_output": [sparse]}, units="channels").word == "NoIssuesFound"


def test_the_first_of_several_dead_layers_is_named():
    dead = np.zeros((8, 3))
    finding = judge(
        "DeadRelu", {"b_relu_output": [dead], "a_relu_output": [dead], "c_relu_output": [dead + 1]}
    ).findings[0]

    assert (finding.tensor, finding.affected.tensors, finding.affected.of) == ("b_relu_output", 2, 3)


@pytest.mark.parametrize(
    ("name", "fires"),
    [
        ("conv0_relu_output_0", True),
        ("layer1.0.ReLU_output_0", True),
        ("features.relu6_output_0", True),
        ("layer_relu_output_0", True),
        ("re_lu_1/outputs", True),
        ("leaky_relu_output_0", False),
        ("LeakyReLU_output_0", False),
        ("net.prelu_output_0", False),
        ("gelu_output_0", False),
        ("relu_input_0", False),
    ],
)
def test_names_that_are_meant_when_recommended(name: str, fires: bool):
    result = judge("DeadRelu", {name: [np.zeros((32, 4))]}, parameter_set="recommended")

    assert (result.met_at == 0) is fires


def test_by_sagemakers_defaults_only_its_own_name_is_meant():
    assert judge("DeadRelu", {"ReLU_output_0": [np.zeros((32, 4))]}).word == "Error"


def test_a_small_batch_is_not_judged_when_recommended():
    result = judge("DeadRelu", {"relu_output": [np.zeros((8, 4))]}, parameter_set="recommended")

    assert (result.word, result.evaluated) == ("Error", 0)
    assert "no batch held 16 samples" in result.why
