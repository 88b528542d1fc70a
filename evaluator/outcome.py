"""What a job comes to: its exit code, and the few lines that SageMaker shows of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from evaluator.errors import Mistake
from evaluator.logs import printable
from evaluator.rule import SEVERITIES, Severity
from evaluator.status import JobStatus, RuleStatus, details_condition_met, details_internal

FailOn = Literal["critical", "error", "warning", "info", "never"]
FAIL_ON: tuple[FailOn, ...] = get_args(FailOn)

NOTHING_FOUND = 0
FOUND = 1
WRONG_INPUT = 2
NOT_EVALUATED = 3
OUR_DEFECT = 4
SECOND_SIGNAL = 130

MESSAGE_LIMIT = 1024
"""Bytes. Source: SageMaker, DescribeProcessingJob.ExitMessage is the first 1 KB of /opt/ml/output/message."""


def exit_code(
    status: JobStatus, fail_on: FailOn = "info", exit_zero: bool = False, *, status_written: bool = True
) -> int:
    """The exit code of a job that ran.

    Args:
        status: the final one.
        fail_on: the least severity of a finding that counts.
        exit_zero: findings do not count, as with `fail_on="never"`.
        status_written: False when the status could no longer be written.
    """
    if any(_fails(rule, _limit(fail_on, exit_zero)) for rule in status.rules):
        return FOUND
    # with no rule named, nobody's status tells that the job came to nothing
    if status.job.ended_because in ("failed", "start_timeout") or not status_written:
        return NOT_EVALUATED
    if any(rule.RuleEvaluationStatus == "Error" for rule in status.rules):
        return NOT_EVALUATED
    return NOTHING_FOUND


def message_text(status: JobStatus, fail_on: FailOn = "info", exit_zero: bool = False) -> str:
    """The message file: one line per finding that counts, then per error, in the order of the rules; may be empty."""
    limit = _limit(fail_on, exit_zero)
    met = [_met_line(rule) for rule in status.rules if _fails(rule, limit)]
    errors = [_error_line(rule) for rule in status.rules if rule.RuleEvaluationStatus == "Error"]
    return _lines([*met, *errors])


def client_error_text(mistakes: Iterable[Mistake]) -> str:
    """The message file when the input is wrong: one line per mistake."""
    return _lines(f"ClientError: {mistake}" for mistake in mistakes)


def internal_error_text(error: BaseException) -> str:
    """The message file for a defect of ours: what was raised, but not its text, which may hold anything."""
    return _lines([details_internal(type(error).__name__)])


def input_error_document(mistakes: Sequence[Mistake]) -> dict[str, Any]:
    """What `--json` prints when the input is wrong."""
    errors = [
        {"where": mistake.where, "what": mistake.what, "would_be_right": mistake.would_be_right} for mistake in mistakes
    ]
    return {"schema": 1, "errors": errors}


def at_or_above(severity: Severity, fail_on: FailOn) -> bool:
    """Whether a finding of that severity counts."""
    return fail_on != "never" and SEVERITIES.index(severity) <= SEVERITIES.index(fail_on)


def _limit(fail_on: FailOn, exit_zero: bool) -> FailOn:
    return "never" if exit_zero else fail_on


def _fails(rule: RuleStatus, limit: FailOn) -> bool:
    # a rule that went on after its finding may have been stopped or have raised since
    found = rule.RuleEvaluationStatus == "IssuesFound" or rule.Findings > 0
    return found and at_or_above(rule.Severity, limit)


def _met_line(rule: RuleStatus) -> str:
    if rule.RuleEvaluationStatus == "IssuesFound" and rule.StatusDetails:
        return rule.StatusDetails
    step = rule.Finding.step if rule.Finding else rule.Evaluation.last_step or 0
    return details_condition_met(rule.Rule, step)


def _error_line(rule: RuleStatus) -> str:
    details = rule.StatusDetails or "no reason is known"
    if details.startswith(("ClientError: ", "InternalServerError: ")):
        return details
    return f"ClientError: {rule.RuleConfigurationName}: {details}"


def _lines(lines: Iterable[str]) -> str:
    joined = "\n".join(printable(line.rstrip()) for line in lines)
    return joined.encode()[:MESSAGE_LIMIT].decode("utf-8", "ignore")
