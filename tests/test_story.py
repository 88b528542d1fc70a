"""The findings of one incident are told as one story: the cause first, followers marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.config.job_config import configure_rules
from evaluator.rule import Example, Met, Rule, RuleParameters, Summary, Window
from evaluator.story import in_story_order
from evaluator.testing import evaluate, run_example, trial_from_series
from tests.sinks.made import make_finding

ORDER = {"a": 0, "b": 1, "c": 2}


def told(*findings, **precedence):
    return [finding.rule_configuration for finding in in_story_order(findings, precedence, ORDER)]


def found(rule, tensor="a", worker="worker_0", **keys):
    return make_finding(rule_configuration=rule, tensor=tensor, worker=worker, id=f"{rule:0>16}", **keys)


def test_the_rule_that_says_most_about_the_cause_comes_first():
    assert told(found("loss"), found("nan", "c"), loss=70, nan=0) == ["nan", "loss"]


def test_among_equal_rules_the_tensor_that_was_saved_first_comes_first():
    assert told(found("x", "b"), found("y", "a"), found("z", None), x=50, y=50, z=50) == ["y", "x", "z"]


def test_workers_stand_in_natural_order():
    findings = [found("x", worker="worker_10"), found("y", worker="worker_9")]

    assert told(*findings, x=50, y=50) == ["y", "x"]


def test_all_but_the_first_follow_it():
    first, second, third = in_story_order(
        [found("x"), found("y", "b"), found("z", "c")], dict.fromkeys("xyz", 50), ORDER
    )

    assert "follows" not in first.details
    assert (second.details["follows"], third.details["follows"]) == (first.id, first.id)


def test_what_is_over_is_no_part_of_the_story():
    assert told(found("x", event="cleared", last_step=3, steps_met=1), found("y"), x=0, y=50) == ["y"]


@pytest.mark.parametrize("precedence", [0, 50, 70])
def test_one_finding_alone_follows_nothing(precedence):
    (finding,) = in_story_order([found("x")], {"x": precedence}, ORDER)

    assert finding.details == found("x").details


def test_a_rule_alone_in_a_job_tells_its_finding_as_it_is():
    rule = Rule(
        "Large",
        "error",
        RuleParameters,
        requires=lambda _: [Summary("losses", by="max")],
        condition=lambda losses, _: _large(losses),
    )
    result = run_example(rule, Example("large", {"x": [0.0, 2.0]}, met_at=1))

    assert [finding.details for finding in result.findings] == [{}]


def _large(losses: Window) -> Met | None:
    large = losses.values[-1] > 1
    return losses.met(large, limit=1.0) if large.any() else None


def test_a_run_that_explodes_is_told_from_the_first_tensor_that_was_not_finite(tmp_path: Path):
    infinite = np.array([1.0, np.inf])
    tensors = {
        "weight": [np.full(2, 0.1 + 0.01 * step) for step in range(4)] + [np.full(2, np.nan)],
        "relu_input": [np.ones(2)] * 3 + [infinite, np.full(2, np.nan)],
        "gradient/weight": [np.full(2, 0.1)] * 3 + [infinite, np.full(2, np.nan)],
        "loss": [1.0, 0.9, 0.8, np.nan, np.nan],
    }
    collections = {"weights": ["weight"], "gradients": ["gradient/weight"], "losses": ["loss"], "all": list(tensors)}
    trial_from_series(tmp_path, tensors, collections=collections)
    configurations, _, mistakes = configure_rules([], None, [])
    result = evaluate(str(tmp_path), configurations)

    first, *others = [rule for rule in result.status.rules if rule.Finding is not None]
    assert mistakes == []
    assert first.Finding is not None
    assert (first.Rule, first.Finding.tensor, first.Finding.step) == ("NonFinite", "relu_input", 3)
    assert first.Finding.last_healthy_step == 2
    assert "ExplodingTensor" in [rule.Rule for rule in others]
    assert {
        rule.Finding.details.get("follows") for rule in others if rule.Finding is not None and rule.Finding.step == 3
    } == {first.Finding.id}
