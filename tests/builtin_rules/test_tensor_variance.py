"""TensorVariance: a variance above or below what was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.modes import Mode
from evaluator.registry import builtin_rules
from evaluator.testing import evaluate
from evaluator.writer import TrialWriter
from tests.builtin_rules.judging import defaults, judge, mistakes

SAMPLE = {"collection_names": "weights", "max_threshold": 10, "min_threshold": 0.00001}


def slow_variance(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values)


def test_parameters_are_sagemakers():
    assert defaults("TensorVariance") == {
        "collection_names": None,
        "tensor_regex": None,
        "max_threshold": None,
        "min_threshold": None,
    }


@pytest.mark.parametrize("seed", range(10))
def test_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    tensors = [generator.normal(size=6) * 10.0 ** generator.uniform(-3, 1) for _ in range(8)]
    variances = [slow_variance(one.tolist()) for one in tensors]
    expected = next((step for step, one in enumerate(variances) if one > 10 or one < 1e-5), None)

    result = judge("TensorVariance", {"w": tensors}, **SAMPLE)

    assert result.met_at == expected
    if expected is not None:
        assert result.findings[0].measured == pytest.approx(variances[expected])
        assert result.findings[0].limit == (10 if variances[expected] > 10 else 0.00001)


def test_it_must_be_told_where_to_look():
    (mistake,) = mistakes("TensorVariance", max_threshold="10")

    assert "neither 'collection_names' nor 'tensor_regex' is given" in mistake


def test_without_a_limit_nothing_is_judged_and_it_says_so():
    result = judge("TensorVariance", {"w": [[1e30, -1e30]]}, collection_names="weights")

    assert (result.word, result.evaluated) == ("Error", 0)
    assert "neither max_threshold nor min_threshold is given" in result.why


def test_a_limit_given_as_none_is_not_given():
    run = {"w": [[1e3, -1e3]]}

    assert judge("TensorVariance", run, **{**SAMPLE, "max_threshold": "None"}).word == "NoIssuesFound"


def test_a_single_element_has_no_variance():
    assert judge("TensorVariance", {"b": [7.0]}, **SAMPLE).met_at == 0
    assert judge("TensorVariance", {"b": [7.0]}, **{**SAMPLE, "min_threshold": "None"}).word == "NoIssuesFound"


def test_a_saved_variance_is_enough(tmp_path):
    with TrialWriter(tmp_path, collections={"weights": ("w",)}) as writer:
        for step, variance in enumerate([1.0, 11.0]):
            writer.save(step, {}, mode=Mode.TRAIN, reductions={"w": {"variance": variance}})

    configured = configure(RuleRequest("test", dict(SAMPLE), "sagemaker", "test"), builtin_rules()["TensorVariance"])
    assert isinstance(configured, RuleConfiguration)
    result = evaluate(str(tmp_path), [configured])

    assert result.met_at == 1


def test_half_precision_does_not_overflow():
    large = np.array([6e4, -6e4] * 50, np.float16)

    assert (
        judge("TensorVariance", {"w": [large]}, collection_names="weights", max_threshold=1e12).word == "NoIssuesFound"
    )


def test_weights_of_a_usual_size_are_quiet_when_recommended():
    run: dict[str, list[Any]] = {
        "norm.weight": [np.ones(8)],
        "lora": [np.zeros((4, 4))],
        "w": [np.random.default_rng(0).normal(size=99) * 50],
    }

    assert judge("TensorVariance", run, parameter_set="recommended").word == "NoIssuesFound"
