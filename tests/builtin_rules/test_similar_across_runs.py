"""SimilarAcrossRuns: tensors against those of other runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.registry import builtin_rules
from evaluator.testing import ExampleResult, evaluate, trial_from_series
from tests.builtin_rules.judging import defaults, judge

NAN, INF = float("nan"), float("inf")


def compared(
    folder: Path, here: dict[str, Sequence[Any]], *others: dict[str, Sequence[Any]], key: str
) -> ExampleResult:
    """A run compared with several others, named in one of the spellings."""
    trial_from_series(folder / "trial", here)
    paths = []
    for number, other in enumerate(others):
        trial_from_series(folder / f"other{number}", other)
        paths.append(str(folder / f"other{number}"))
    parameters = (
        {f"other_trial_{n}": path for n, path in enumerate(paths)} if key == "other_trial_" else {key: ",".join(paths)}
    )
    rule = builtin_rules()["SimilarAcrossRuns"]
    configured = configure(RuleRequest(rule.name, parameters, "sagemaker", "test"), rule)
    assert isinstance(configured, RuleConfiguration)
    return evaluate(str(folder / "trial"), [configured])


def test_parameters_are_sagemakers():
    assert defaults("SimilarAcrossRuns") == {"collection_names": None, "tensor_regex": None}
    assert builtin_rules()["SimilarAcrossRuns"].other_trials


@pytest.mark.parametrize("seed", range(10))
def test_it_agrees_with_numpy(seed: int):
    generator = np.random.default_rng(seed)
    here = [generator.normal(size=3) for _ in range(8)]
    there = [values * (1 + generator.choice([0, 5e-6, 2e-5], p=[0.6, 0.3, 0.1])) for values in here]
    expected = next((step for step in range(8) if not np.allclose(here[step], there[step])), None)

    assert judge("SimilarAcrossRuns", {"w": here}, other={"w": there}).met_at == expected


@pytest.mark.parametrize(
    ("mine", "theirs", "similar"),
    [
        (INF, INF, True),
        (INF, -INF, False),
        (1.0, INF, False),
        (NAN, 1.0, False),
        (NAN, NAN, False),
        (0.0, 1e-8, True),
        (0.0, 1e-7, False),
        (1e300, 1.000001e300, True),
        (1.0, 1.00001, True),
    ],
)
def test_special_values_are_taken_as_numpy_does(mine: float, theirs: float, similar: bool):
    assert bool(np.allclose(mine, theirs)) is similar
    assert (judge("SimilarAcrossRuns", {"w": [mine]}, other={"w": [theirs]}).met_at is None) is similar


def test_nan_in_both_is_the_same_by_the_recommended_parameters():
    run = {"trees/Split": [[0.5, NAN]]}

    assert judge("SimilarAcrossRuns", run, other=run, parameter_set="recommended").word == "NoIssuesFound"


def test_the_finding_says_which_trial_and_by_how_many_tolerances():
    finding = judge("SimilarAcrossRuns", {"w": [1.0, 1.0]}, other={"w": [1.0, 2.0]}, atol=0, rtol=0.1).findings[0]

    assert (finding.step, finding.limit) == (1, 1.0)
    assert finding.measured == pytest.approx(5.0)
    assert finding.details["other_trial"].endswith("other")


@pytest.mark.parametrize("key", ["other_trials", "other_trial_"])
@pytest.mark.parametrize(("second", "expected"), [([1.0, 2.0, 3.0], None), ([1.0, 2.0, 4.0], 2)])
def test_each_of_several_other_trials_is_compared(tmp_path: Path, key: str, second: list[float], expected: int | None):
    here: dict[str, Sequence[Any]] = {"w": [1.0, 2.0, 3.0]}

    result = compared(tmp_path, here, here, {"w": second}, key=key)

    assert (result.met_at, result.failed) == (expected, False)
    assert expected is None or result.findings[0].details["other_trial"].endswith("other1")


def test_a_trial_that_is_shorter_does_not_keep_the_others_from_being_compared(tmp_path: Path):
    result = compared(tmp_path, {"w": [1.0, 2.0, 3.0]}, {"w": [1.0]}, {"w": [1.0, 2.0, 4.0]}, key="other_trials")

    assert (result.met_at, result.findings[0].step) == (2, 2)


def test_an_older_difference_of_another_trial_is_not_told_again(tmp_path: Path):
    result = compared(tmp_path, {"w": [1.0, 2.0]}, {"w": [1.0]}, {"w": [1.0, 2.0]}, key="other_trials")

    assert result.met_at is None


@pytest.mark.parametrize("other", [{"v": [1.0]}, {"w": [None, 5.0]}])
def test_what_the_other_trial_lacks_is_no_difference(other: dict[str, Sequence[Any]]):
    assert judge("SimilarAcrossRuns", {"w": [1.0]}, other=other).met_at is None


def test_only_the_tensors_named_are_compared():
    here, other = {"w": [1.0], "loss": [1.0]}, {"w": [1.0], "loss": [2.0]}

    assert judge("SimilarAcrossRuns", here, other=other, tensor_regex="^w").word == "NoIssuesFound"


def test_another_shape_is_a_difference():
    assert judge("SimilarAcrossRuns", {"w": [[1.0, 1.0]]}, other={"w": [[1.0]]}).findings[0].measured == "Infinity"


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.bool_, np.float16, np.complex64])
def test_every_type_is_compared_without_overflow(dtype: type):
    here: list[Any] = [np.array([0, 1], dtype)]
    there: list[Any] = [np.array([1, 0], dtype)]

    assert judge("SimilarAcrossRuns", {"w": here}, other={"w": there}).met_at == 0
    assert judge("SimilarAcrossRuns", {"w": here}, other={"w": here}).met_at is None


def test_without_another_trial_it_is_not_judged_and_says_so():
    assert "no other trial was given" in judge("SimilarAcrossRuns", {"w": [1.0]}).why
