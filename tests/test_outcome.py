"""The exit-code table of the design (section 9), and the texts that go with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import Mistake
from evaluator.outcome import (
    FAIL_ON,
    FailOn,
    at_or_above,
    client_error_text,
    exit_code,
    input_error_document,
    internal_error_text,
    message_text,
)
from evaluator.rule import SEVERITIES
from evaluator.status import JobStatus
from tests.sinks.made import make_rule, make_status

MET = "RuleEvaluationConditionMet: Evaluation of the rule {} at step {} resulted in the condition being met"


def job(*words: str, ended_because: Any = "end_marker", severity: str = "error") -> JobStatus:
    rules = [make_rule(f"R{number}", word, Severity=severity) for number, word in enumerate(words)]
    return make_status(*rules, ended_because=ended_because)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (job("NoIssuesFound"), 0),
        (job("NoIssuesFound", "Stopped"), 0),
        (job("Stopped", ended_because="stop_signal"), 0),
        (job(), 0),
        (job("IssuesFound"), 1),
        (job("NoIssuesFound", "IssuesFound"), 1),
        (job("Error", "IssuesFound"), 1),
        (job("IssuesFound", "Stopped", ended_because="stop_signal"), 1),
        (job("Error"), 3),
        (job("NoIssuesFound", "Error"), 3),
        (job("Error", "Stopped", ended_because="stop_signal"), 3),
        (job(ended_because="start_timeout"), 3),
        (job(ended_because="failed"), 3),
        (job("IssuesFound", ended_because="failed"), 1),
    ],
)
def test_the_exit_code_follows_the_statuses(status: JobStatus, expected: int):
    assert exit_code(status) == expected


@pytest.mark.parametrize(
    ("severity", "fail_on", "expected"),
    [
        (severity, fail_on, int(position <= limit and fail_on != "never"))
        for position, severity in enumerate(SEVERITIES)
        for limit, fail_on in enumerate(FAIL_ON)
    ],
)
def test_a_finding_counts_at_or_above_the_severity_asked_for(severity: str, fail_on: FailOn, expected: int):
    assert exit_code(job("IssuesFound", severity=severity), fail_on) == expected


def test_severities_are_ordered_from_critical_to_info():
    assert [at_or_above(severity, "error") for severity in SEVERITIES] == [True, True, False, False]


def test_a_finding_that_does_not_count_leaves_the_errors_to_be_told():
    assert exit_code(job("IssuesFound", "Error", severity="warning"), "error") == 3


def test_exit_zero_is_never():
    statuses = [job("IssuesFound"), job("Error"), job("IssuesFound", "Error"), job("NoIssuesFound")]

    assert [exit_code(status, "info", exit_zero=True) for status in statuses] == [0, 3, 3, 0]
    assert [exit_code(status, "never") for status in statuses] == [0, 3, 3, 0]


@pytest.mark.parametrize("word", ["Stopped", "Error", "InProgress"])
def test_a_rule_that_found_something_before_it_ended_otherwise_counts(word: str):
    assert exit_code(make_status(make_rule(word=word, Findings=2))) == 1


def test_a_status_that_could_not_be_written_is_an_error_unless_something_was_found():
    codes = [exit_code(job(word), status_written=False) for word in ("NoIssuesFound", "IssuesFound")]

    assert codes == [3, 1]


def test_profiler_rules_count_too():
    status = make_status()
    status.ProfilerRuleEvaluationStatuses = [make_rule(word="Error")]

    assert exit_code(status) == 3


def test_the_message_is_findings_then_errors_in_the_order_of_the_rules():
    assert message_text(job("Error", "IssuesFound", "NoIssuesFound", "IssuesFound", "Error")).splitlines() == [
        MET.format("R1", 3),
        MET.format("R3", 3),
        "ClientError: R0: no reason is known",
        "ClientError: R4: no reason is known",
    ]


@pytest.mark.parametrize(
    ("details", "line"),
    [
        ("InsufficientInformationForRuleInvocation: x", "ClientError: R: InsufficientInformationForRuleInvocation: x"),
        ("ClientError: No debugging data", "ClientError: No debugging data"),
        ("InternalServerError: x", "InternalServerError: x"),
        ("two\nlines \x1b[2J\n", r"ClientError: R: two\nlines \x1b[2J"),
    ],
)
def test_an_error_is_one_line_that_begins_as_sagemaker_wants(details: str, line: str):
    assert message_text(make_status(make_rule("R", "Error", StatusDetails=details))) == line


def test_a_stopped_rule_that_found_something_is_told_as_met():
    rule = make_rule("R", "IssuesFound", StatusDetails="stopped", RuleEvaluationStatus="Stopped")
    rule.Finding = make_rule("R", "IssuesFound").Finding
    rule.Findings = 1

    assert message_text(make_status(rule)) == MET.format("R", 3)


@pytest.mark.parametrize("fail_on", FAIL_ON)
@pytest.mark.parametrize("exit_zero", [False, True])
def test_there_is_a_message_exactly_when_the_exit_code_is_not_zero(fail_on: FailOn, exit_zero: bool):
    for words in [(), ("NoIssuesFound", "Stopped"), ("IssuesFound",), ("Error",), ("IssuesFound", "Error")]:
        status = job(*words)

        assert bool(message_text(status, fail_on, exit_zero)) == bool(exit_code(status, fail_on, exit_zero))


@given(st.text(max_size=600), st.integers(1, 8))
def test_the_message_is_at_most_1024_bytes_of_whole_characters(details: str, count: int):
    status = make_status(*(make_rule(f"R{n}", "Error", StatusDetails=details) for n in range(count)))

    assert len(message_text(status).encode("utf-8")) <= 1024


def test_a_long_message_is_cut_on_a_character_border():
    text = message_text(make_status(make_rule("R", "Error", StatusDetails="é" * 1000)))

    assert (len(text.encode()), text) == (1024, "ClientError: R: " + "é" * 504)


def test_wrong_input_is_listed_as_a_whole():
    mistakes = [Mistake("--rule", "unknown rule 'X'", "known: AllZero"), Mistake("", "no trial is given")]

    assert input_error_document(mistakes) == {
        "schema": 1,
        "errors": [
            {"where": "--rule", "what": "unknown rule 'X'", "would_be_right": "known: AllZero"},
            {"where": "", "what": "no trial is given", "would_be_right": ""},
        ],
    }
    assert client_error_text(mistakes).splitlines() == [
        "ClientError: --rule: unknown rule 'X'; known: AllZero",
        "ClientError: no trial is given",
    ]


def test_a_defect_is_named_without_its_text_which_may_hold_secrets():
    assert internal_error_text(KeyError("password")) == (
        "InternalServerError: We encountered an internal error. Please try again. Exception: KeyError"
    )
