"""AllZero: the percentage of zero elements against a threshold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.registry import builtin_rules
from evaluator.testing import ExampleResult, evaluate
from evaluator.writer import TrialWriter
from tests.builtin_rules.judging import defaults, judge, mistakes


def of_reductions(folder: Path, reductions: dict[str, float], **parameters: object) -> ExampleResult:
    with TrialWriter(folder) as writer:
        writer.save(0, {}, reductions={"w": reductions})
    request = RuleRequest("AllZero", {"tensor_regex": "w", **parameters}, "sagemaker", "test")
    configured = configure(request, builtin_rules()["AllZero"])
    assert isinstance(configured, RuleConfiguration)
    return evaluate(str(folder), [configured])


def test_parameters_are_sagemakers():
    assert defaults("AllZero") == {"collection_names": None, "tensor_regex": None, "threshold": 100.0}


def test_without_names_it_is_a_mistake_and_not_a_look_at_everything():
    assert mistakes("AllZero", tensor_regex="", collection_names="None") == [
        (
            "AllZero: neither 'collection_names' nor 'tensor_regex' is given; "
            "name the tensors to look at, for example collection_names=weights"
        )
    ]


def test_a_comma_cuts_a_pattern_in_two_which_is_said():
    assert "'(a': missing )" in mistakes("AllZero", tensor_regex="(a,b)")[0]


@pytest.mark.parametrize("threshold", [100, 60, 1])
@pytest.mark.parametrize("seed", range(4))
def test_it_agrees_with_the_slow_way(threshold: float, seed: int):
    generator = np.random.default_rng(seed)
    series = {
        name: [generator.integers(0, 2, generator.integers(1, 5)) * generator.integers(0, 2) for _ in range(5)]
        for name in ("a", "b")
    }
    expected = None
    for step in range(5):
        for values in (series["a"][step].tolist(), series["b"][step].tolist()):
            if expected is None and 100 * len([value for value in values if value == 0]) / len(values) >= threshold:
                expected = step

    assert judge("AllZero", series, tensor_regex=".*", threshold=threshold).met_at == expected


def test_relu_outputs_of_a_net_of_zeros_fire_and_weights_do_not():
    run = {"relu_output": [np.zeros((4, 3))], "weight": [np.full((3, 3), 0.1)]}

    assert judge("AllZero", run, tensor_regex="relu").met_at == 0
    assert judge("AllZero", run, tensor_regex="weight").met_at is None


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float16, np.complex64])
def test_every_type_can_be_zero(dtype: type):
    assert judge("AllZero", {"w": [np.ones(3, dtype), np.zeros(3, dtype)]}, tensor_regex="w").met_at == 1


def test_both_ways_of_naming_are_joined():
    run = {"a": [1, 1], "b": [1, 0]}

    result = judge("AllZero", run, collections={"c": ["a"]}, collection_names="c", tensor_regex="b")

    assert result.met_at == 1
    assert result.findings[0].affected.of == 2


@pytest.mark.parametrize(
    ("reductions", "expected"),
    [
        ({"abs_max": 0.0}, "IssuesFound"),
        ({"min": 0.0, "max": 0.0}, "IssuesFound"),
        ({"abs_max": 0.1, "mean": 0.0}, "NoIssuesFound"),
        ({"min": -1.0, "max": 0.0}, "NoIssuesFound"),
        ({"max": 0.0}, "Error"),
        ({"mean": 0.0, "l2": 0.0}, "Error"),
    ],
)
def test_only_reductions_that_tell_are_asked(tmp_path: Path, reductions: dict[str, float], expected: str):
    assert of_reductions(tmp_path, reductions).word == expected


def test_reductions_cannot_tell_a_share(tmp_path: Path):
    result = of_reductions(tmp_path, {"abs_max": 0.0}, threshold=50)

    assert result.word == "Error"
    assert "only reductions abs_max were saved" in result.why
