"""Log lines of what a job finds: findings, rules that ended, and one line for the whole job."""

from __future__ import annotations

from typing import ClassVar, Self

import structlog

from evaluator.finding import Finding
from evaluator.sinks.base import Outputs, Sink
from evaluator.status import JobStatus, RuleStatus

log = structlog.get_logger(__name__)


class Log(Sink):
    """Logs by structlog; `logs.configure` says where the lines go and how they look."""

    name: ClassVar[str] = "log"

    def __init__(self) -> None:
        """No rule has ended, no worker is silent."""
        self._ended: set[str] = set()
        self._silent: tuple[str, ...] = ()

    @classmethod
    def build(cls, outputs: Outputs) -> Self:  # noqa: ARG003 - the log needs nothing of the job
        """Every job has one."""
        return cls()

    def finding(self, finding: Finding) -> None:
        """One warning for a condition met, one line when it is over."""
        where = {
            "rule": finding.rule,
            "rule_configuration": finding.rule_configuration,
            "severity": finding.severity,
            "step": finding.step,
            "worker": finding.worker,
            "tensor": finding.tensor,
            "id": finding.id,
        }
        if finding.event == "cleared":
            log.info("condition_cleared", **where, last_step=finding.last_step, steps_met=finding.steps_met)
            return
        log.warning(
            "condition_met",
            **where,
            measured=finding.measured,
            limit=finding.limit,
            tensors=finding.affected.tensors,
            of=finding.affected.of,
            message=finding.message,
        )

    def status(self, status: JobStatus) -> None:
        """One line for each rule that has ended since."""
        silent = tuple(status.job.workers.silent)
        if silent != self._silent:
            self._silent = silent
            if silent:
                log.warning("workers_silent", workers=list(silent), last_step=status.job.steps.last)
        for rule in status.rules:
            if rule.ended and rule.RuleConfigurationName not in self._ended:
                self._ended.add(rule.RuleConfigurationName)
                _log_end(rule)

    def close(self, status: JobStatus) -> None:
        """One line for the job."""
        self.status(status)
        log.info(
            "job_ended",
            trial=status.trial,
            ended_because=status.job.ended_because,
            steps=status.job.steps.complete + status.job.steps.partial,
            rules=len(status.rules),
            findings=sum(rule.Findings for rule in status.rules),
            errors=sum(rule.RuleEvaluationStatus == "Error" for rule in status.rules),
        )


def _log_end(rule: RuleStatus) -> None:
    told = log.error if rule.RuleEvaluationStatus == "Error" else log.info
    told(
        "rule_ended",
        rule=rule.Rule,
        rule_configuration=rule.RuleConfigurationName,
        status=rule.RuleEvaluationStatus,
        details=rule.StatusDetails,
        findings=rule.Findings,
        steps=rule.Evaluation.evaluated,
    )


SINK = Log
