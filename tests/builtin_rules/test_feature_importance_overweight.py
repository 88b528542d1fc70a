"""FeatureImportanceOverweight: the share of the most important features."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.testing import ExampleResult
from tests.builtin_rules.judging import defaults, judge

NAN = float("nan")


def features(*importance: float, steps: int = 1, **how: object) -> ExampleResult:
    run = {f"feature_importance/weight/f{number}": [value] * steps for number, value in enumerate(importance)}
    return judge("FeatureImportanceOverweight", run, **how)


def test_parameters_are_sagemakers():
    assert defaults("FeatureImportanceOverweight") == {
        "threshold": 0.8,
        "nfeatures": 3,
        "tensor_regex": (".*feature_importance/weight",),
    }


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("nfeatures", [1, 3, 20])
def test_it_agrees_with_the_slow_way(seed: int, nfeatures: int):
    importance = (np.random.default_rng(seed).exponential(size=7) ** 3).tolist()
    share = sum(sorted(importance, reverse=True)[:nfeatures]) / sum(importance)

    result = features(*importance, nfeatures=nfeatures)

    assert (result.met_at is not None) == (share > 0.8)
    assert not result.findings or result.findings[0].measured == pytest.approx(share)


def test_no_more_features_than_asked_for_make_up_everything_as_documented():
    assert features(0.4, 0.3, 0.3).findings[0].measured == 1


def test_the_threshold_itself_is_quiet():
    assert features(0.5, 0.25, 0.25, threshold=0.75, nfeatures=2).word == "NoIssuesFound"


def test_the_finding_names_the_most_important_feature_and_shows_the_shares():
    finding = features(0.1, 0.6, 0.2, 0.05, 0.05).findings[0]

    assert (finding.tensor, finding.limit) == ("feature_importance/weight/f1", 0.8)
    assert finding.details["features"] == 5
    assert list(finding.details["shares"]) == [f"feature_importance/weight/f{number}" for number in (1, 2, 0)]


def test_other_kinds_of_importance_are_not_looked_at():
    run = {f"feature_importance/weight/f{n}": [0.2] for n in range(5)} | {"feature_importance/gain/f0": [1.0]}

    assert judge("FeatureImportanceOverweight", run).word == "NoIssuesFound"


@pytest.mark.parametrize("importance", [(0.5, 0.3, 0.2), (0.6, 0.4), (0.2,) * 5])
def test_few_features_are_quiet_by_the_recommended_parameters(importance: tuple[float, ...]):
    assert features(*importance, steps=15, parameter_set="recommended").word == "NoIssuesFound"


@pytest.mark.parametrize(("steps", "expected"), [(9, None), (10, 9)])
def test_one_feature_that_counts_alone_is_found_by_the_recommended_parameters(steps: int, expected: int | None):
    assert features(0.9, 0.1, steps=steps, parameter_set="recommended").met_at == expected


@pytest.mark.parametrize("importance", [(0.0, 0.0), (NAN,), (-1.0, 0.0)])
def test_no_importance_at_all_is_not_judged(importance: tuple[float, ...]):
    result = features(*importance)

    assert (result.met_at, result.word) == (None, "Error")
    assert "no feature has any importance" in result.why


def test_huge_importances_do_not_overflow():
    assert features(1.7e308, 1.7e308, 1.7e308, 1.7e308).findings == []
