"""Statuses, findings and stores for the tests of outputs."""

from __future__ import annotations

from typing import Any

from evaluator.errors import StorageUnavailable
from evaluator.finding import Finding, finding_id
from evaluator.status import JobStatus, RuleStatus, details_condition_met
from evaluator.storage.memory import MemoryStore


def make_finding(rule: str = "VanishingGradient", step: int = 3, tensor: str | None = "w0", **changes: Any) -> Finding:
    """A finding about one tensor."""
    configuration = changes.pop("rule_configuration", rule)
    values: dict[str, Any] = {
        "id": finding_id(configuration, step, "worker_0", tensor),
        "event": "met",
        "severity": "error",
        "rule_configuration": configuration,
        "rule": rule,
        "step": step,
        "mode": "TRAIN",
        "mode_step": step,
        "worker": "worker_0",
        "tensor": tensor,
        "measured": 4.1e-8,
        "limit": 1e-7,
    }
    return Finding(**{**values, **changes})


def make_rule(name: str = "VanishingGradient", word: str = "InProgress", **changes: Any) -> RuleStatus:
    """The status of a rule; with the word IssuesFound it holds a finding."""
    values: dict[str, Any] = {
        "RuleConfigurationName": name,
        "Rule": name,
        "Severity": "error",
        "RuleEvaluationStatus": word,
    }
    if word == "IssuesFound":
        values |= {"Findings": 1, "Finding": make_finding(name), "StatusDetails": details_condition_met(name, 3)}
    return RuleStatus(**{**values, **changes})


def make_status(*rules: RuleStatus, ended_because: Any = None) -> JobStatus:
    """The status of a job over these rules."""
    status = JobStatus(trial="/trials/one", DebugRuleEvaluationStatuses=list(rules))
    status.job.ended_because = ended_because
    return status


class UnreliableStore(MemoryStore):
    """A store that does not answer while `down`; with `torn`, an append arrives in part before it fails."""

    down = False
    torn = False

    def read(self, key: str) -> bytes:
        self._fail()
        return super().read(key)

    def write(self, key: str, data: bytes) -> None:
        self._fail()
        super().write(key, data)

    def append(self, key: str, data: bytes) -> None:
        if self.torn:
            super().append(key, data[: len(data) // 2])
            raise StorageUnavailable(key, "no space left on device")
        self._fail()
        super().append(key, data)

    def _fail(self) -> None:
        if self.down:
            raise StorageUnavailable(self.uri, "does not answer")
