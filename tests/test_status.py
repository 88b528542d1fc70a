"""The status has the keys of the contract, and what is written is what the schema says."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluator import strict_json
from evaluator.status import (
    JobStatus,
    NotApplicable,
    ParameterValue,
    details_condition_met,
    details_insufficient,
    details_internal,
    details_no_data,
    schema,
)
from tests.sinks.made import make_finding, make_rule, make_status

DOCS = Path(__file__).parents[1] / "docs"

# the two examples of the design, section 8; the finding in the status is the other example
FINDING = json.loads("""
{"schema": 1, "id": "9f3c1e0a7b52d418", "event": "met", "severity": "error",
 "rule_configuration": "VanishingGradient", "rule": "VanishingGradient",
 "step": 3, "mode": "TRAIN", "mode_step": 3, "worker": "worker_0", "tensor": "gradient/block0.fc.weight",
 "measured": 4.1e-8, "limit": 1e-7,
 "affected": {"tensors": 9, "of": 30, "worst": {"tensor": "...", "worker": "...", "measured": 1e-14}},
 "last_healthy_step": 0,
 "message": "...", "parameters": {}, "details": {}, "trial": "...", "labels": {}, "recorded_at": "..."}
""")
STATUS = json.loads("""
{"schema": 1, "trial": "...", "labels": {},
 "job": {"id": "...", "program": {"name": "rule-evaluator", "version": "..."}, "started_at": "...", "updated_at": "...",
   "ended_at": null, "ended_because": null, "settings": {}, "other_trials": [],
   "steps": {"complete": 32, "partial": 0, "late_files": 0, "unreadable": 0, "first": 0, "last": 59},
   "workers": {"expected": 2, "seen": 2, "silent": []},
   "requests": {"list": 0, "get": 0, "put": 0, "retries": 0}, "notes": []},
 "DebugRuleEvaluationStatuses": [
   {"RuleConfigurationName": "VanishingGradient", "Rule": "VanishingGradient", "Severity": "error",
    "RuleEvaluationJobArn": null, "RuleEvaluationStatus": "IssuesFound",
    "StatusDetails": "RuleEvaluationConditionMet: Evaluation of the rule VanishingGradient at step 3 resulted in the \
condition being met",
    "LastModifiedTime": "...", "Parameters": {"threshold": {"value": 1e-7, "from": "recommended"}},
    "ignored_parameters": [],
    "Evaluation": {"evaluated": 2, "skipped": 0, "skipped_because": {}, "tensors": 6, "first_step": 0, "last_step": 3},
    "Findings": 1, "Finding": {}, "Actions": [], "Report": null}],
 "ProfilerRuleEvaluationStatuses": [],
 "not_applicable": [{"rule": "TreeDepth", "reason": "no tensor of collection 'trees' in 32 steps"}]}
""")
STATUS["DebugRuleEvaluationStatuses"][0]["Finding"] = FINDING


VALID = jsonschema.Draft202012Validator(schema("status"))


def validated(document: Any) -> Any:
    VALID.validate(document)
    return document


def closed(part: Any) -> Any:
    """The schema with no added key allowed, which shows keys that it does not know."""
    if isinstance(part, dict):
        shut = {key: closed(value) for key, value in part.items()}
        return {**shut, "additionalProperties": False} if part.get("additionalProperties") is True else shut
    return [closed(item) for item in part] if isinstance(part, list) else part


@pytest.mark.parametrize(("document", "kind"), [(STATUS, "status"), (FINDING, "finding")], ids=["status", "finding"])
def test_the_design_s_example_is_valid_without_any_key_too_many(document: Any, kind: Literal["status", "finding"]):
    jsonschema.validate(document, closed(schema(kind)), cls=jsonschema.Draft202012Validator)


def test_the_design_s_example_is_written_as_it_is():
    written = JobStatus.model_validate(STATUS).document()

    # order included
    assert json.dumps(written) == json.dumps(STATUS)


@pytest.mark.parametrize("path", [("job",), ("job", "steps"), ("DebugRuleEvaluationStatuses", 0), ()])
def test_added_keys_are_valid_and_ignored(path: tuple[str | int, ...]):
    document = copy.deepcopy(STATUS)
    part = document
    for key in path:
        part = part[key]
    part["added"] = 1

    assert JobStatus.model_validate(validated(document)).document() == STATUS


def test_a_missing_key_is_invalid():
    document = copy.deepcopy(STATUS)
    del document["job"]["ended_because"]

    with pytest.raises(jsonschema.ValidationError, match="'ended_because' is a required property"):
        validated(document)


@pytest.mark.parametrize("word", ["InProgress", "NoIssuesFound", "IssuesFound", "Error", "Stopping", "Stopped"])
def test_every_word_is_valid(word: str):
    validated(make_status(make_rule(word=word)).document())


def test_another_word_is_refused():
    with pytest.raises(ValidationError):
        make_rule().RuleEvaluationStatus = "Fine"  # type: ignore[assignment]


def test_an_empty_status_is_valid():
    validated(make_status().document())


@given(st.text(st.characters(codec=None), max_size=30), st.floats())
def test_any_name_and_number_makes_a_valid_file(name: str, value: float):
    rule = make_rule(
        name, "Error", StatusDetails=name, Parameters={name: ParameterValue(value=value, origin=name)}, Finding=None
    )
    status = make_status(rule)
    status.trial = name
    status.labels = {name: name}
    status.job.settings = {name: value}
    status.job.workers.silent = [name]
    status.not_applicable = [NotApplicable(rule=name, reason=name)]
    written = strict_json.dumps(status.document())

    assert validated(strict_json.loads(written)) == status.document()


def test_details_are_cut_at_the_limit_of_sagemaker():
    rule = make_rule(StatusDetails="x" * 1025)
    longest = rule.StatusDetails
    rule.StatusDetails = "y" * 1024

    assert (longest, rule.StatusDetails) == ("x" * 1021 + "...", "y" * 1024)


def test_details_begin_as_the_hosted_ones():
    assert [
        details_condition_met("W", 500),
        details_insufficient("no gradients"),
        details_no_data("x").partition(" Check")[0],
        details_internal("KeyError").partition(" Exception")[0],
    ] == [
        "RuleEvaluationConditionMet: Evaluation of the rule W at step 500 resulted in the condition being met",
        "InsufficientInformationForRuleInvocation: no gradients",
        "ClientError: No debugging data was saved by the training job.",
        "InternalServerError: We encountered an internal error. Please try again.",
    ]


def test_a_rule_has_ended_when_its_status_is_final():
    words = ["InProgress", "Stopping", "NoIssuesFound", "IssuesFound", "Error", "Stopped"]

    assert [make_rule(word=word).ended for word in words] == [False, False, True, True, True, True]


def test_profiler_rules_stand_behind_the_others():
    status = make_status(make_rule("A"))
    status.ProfilerRuleEvaluationStatuses = [make_rule("B")]

    assert [rule.Rule for rule in status.rules] == ["A", "B"]


@pytest.mark.parametrize("kind", ["status", "finding"])
def test_a_schema_is_one_itself_and_says_what_it_is(kind: Literal["status", "finding"]):
    made = schema(kind)
    jsonschema.Draft202012Validator.check_schema(made)

    assert made["title"] == f"{kind.capitalize()} of rule-evaluator"
    assert made["description"]


def test_a_status_holds_a_finding_as_the_finding_file_does():
    document = make_status(make_rule(word="IssuesFound")).document()

    assert document["DebugRuleEvaluationStatuses"][0]["Finding"] == make_finding().document()
