"""By which file rules are told to stop, as the environment says it."""

from __future__ import annotations

import json

import pytest

from evaluator.config.load import Arguments, load
from evaluator.config.rule_stop import FILE_VARIABLE, GRACE_VARIABLE, RuleStop, read_rule_stop
from evaluator.sagemaker.processing_job import read_container


@pytest.mark.parametrize(
    ("environment", "stop"),
    [
        ({}, None),
        ({FILE_VARIABLE: " "}, None),
        ({GRACE_VARIABLE: "5"}, None),
        ({FILE_VARIABLE: "stop"}, RuleStop("stop", 60)),
        ({FILE_VARIABLE: " a/stop ", GRACE_VARIABLE: "5"}, RuleStop("a/stop", 5)),
        ({FILE_VARIABLE: "stop", GRACE_VARIABLE: "0.5"}, RuleStop("stop", 0.5)),
        ({FILE_VARIABLE: "stop", GRACE_VARIABLE: ""}, RuleStop("stop", 60)),
    ],
)
def test_the_file_and_the_grace_are_two_variables(environment, stop):
    assert read_rule_stop(environment) == (stop, [])


@pytest.mark.parametrize("grace", ["soon", "-1", "nan", "inf"])
def test_a_grace_that_is_no_time_is_the_usual_one_with_a_note(grace):
    stop, (note,) = read_rule_stop({FILE_VARIABLE: "stop", GRACE_VARIABLE: grace})

    assert stop == RuleStop("stop", 60)
    assert note == f"environment: {GRACE_VARIABLE}: {grace!r} is no number of seconds; 60 is used"


@pytest.mark.parametrize("key", ["../stop", "/etc/passwd", "a/../../b"])
def test_a_file_outside_the_trial_is_not_looked_for(key):
    stop, (note,) = read_rule_stop({FILE_VARIABLE: key})

    assert stop is None
    assert "is not used" in note


def test_only_a_job_that_follows_looks_for_it():
    environment = {FILE_VARIABLE: "stop"}

    assert load(Arguments(trial="t", follow=True), environment).rule_stop == RuleStop("stop", 60)
    assert load(Arguments(trial="t"), environment).rule_stop is None


def test_a_container_finds_it_in_the_processing_job_too_and_it_is_no_parameter_of_the_rule(tmp_path):
    (tmp_path / "config").mkdir()
    variables = {FILE_VARIABLE: "stop", GRACE_VARIABLE: "7", "rule_to_invoke": "VanishingGradient"}
    (tmp_path / "config" / "processingjobconfig.json").write_text(json.dumps({"Environment": variables}))
    config = read_container(tmp_path, {**variables, "AWS_REGION": "eu-central-1"}).config

    assert config is not None
    assert (config.job.rule_stop, config.job.region) == (RuleStop("stop", 7), "eu-central-1")
    assert [rule.ignored for rule in config.job.rules] == [()]
