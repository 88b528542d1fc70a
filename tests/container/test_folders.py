"""A processing job's inputs and outputs lie where its configuration says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.commands.program import HEALTHY, TINY, small_trial
from tests.container.below_opt_ml import entry


def folders(mode: str = "Continuous", output: str = "rule", **others: Any) -> dict[str, Any]:
    """Inputs and an output that lie elsewhere than usual."""
    inputs = [
        ("tensors", {"LocalPath": "/opt/ml/processing/input/saved", "S3Uri": "s3://b/x", "S3DownloadMode": mode}),
        ("config", {"LocalPath": "/opt/ml/processing/rules/"}),
    ]
    outputs = {output: "/opt/ml/processing/results/", **others}
    return {
        "ProcessingInputs": [{"InputName": name, "S3Input": place} for name, place in inputs],
        "ProcessingOutputConfig": {
            "Outputs": [{"OutputName": name, "S3Output": {"LocalPath": path}} for name, path in outputs.items()]
        },
    }


@pytest.mark.parametrize("name", ["rule", "whatever"])
def test_inputs_and_the_output_lie_where_the_job_says(container, name):
    container.tensors(HEALTHY, TINY, HEALTHY, folder="processing/input/saved")
    container.rules(entry("x", rule_to_invoke="VanishingGradient", threshold="1e-7"), folder="processing/rules")
    container.job(**folders(output=name))

    ran = container.run()

    status = container.status("processing/results")
    assert (ran.code, status["DebugRuleEvaluationStatuses"][0]["RuleConfigurationName"]) == (1, "x")
    assert status["trial"] == str(container.root / "processing" / "input" / "saved")
    assert not (container.root / "processing" / "output").exists()


def test_of_several_outputs_without_the_usual_name_none_is_guessed(container):
    container.tensors(folder="processing/input/saved")
    container.job({"rule_to_invoke": "ExplodingTensor"}, **folders(output="one", two="/opt/ml/processing/two"))

    assert container.run().code == 0
    assert container.rule["RuleEvaluationStatus"] == "NoIssuesFound"


def test_a_setting_goes_before_what_the_job_says_about_folders(container):
    trial = small_trial(container.root / "mine", [HEALTHY] * 6)
    container.environment(rule_to_invoke="ExplodingTensor", RULE_EVALUATOR_TRIAL=str(trial))
    container.job(**folders())

    assert container.run().code == 0
    assert container.status("processing/results")["trial"] == str(trial)


@pytest.mark.parametrize(
    "parts",
    [
        {"ProcessingInputs": [{"InputName": "tensors", "S3Input": {"LocalPath": 5, "S3DownloadMode": "Continuous"}}]},
        {"ProcessingInputs": [{"InputName": ["tensors"], "S3Input": {"LocalPath": "/x"}}, 7, None]},
        {"ProcessingOutputConfig": {"Outputs": [{"OutputName": "rule", "S3Output": None}, []]}},
        {"ProcessingOutputConfig": {"Outputs": "rule"}},
        {"ProcessingOutputConfig": []},
    ],
)
def test_folders_that_are_not_understood_are_the_usual_ones(container, parts):
    container.tensors()
    container.environment(rule_to_invoke="ExplodingTensor")
    container.job(**parts)

    assert container.run().code == 0
    assert container.rule["RuleEvaluationStatus"] == "NoIssuesFound"
