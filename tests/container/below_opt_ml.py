"""A container without an engine: what lies below /opt/ml, and what the program makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.program import HEALTHY, Ran, call, check_outputs, small_trial


class Container:
    """What lies below /opt/ml."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        (root / "config").mkdir()

    def environment(self, **variables: str) -> None:
        """Set what the process's environment has."""
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    def job(self, environment: dict[str, str] | None = None, **parts: Any) -> None:
        """Write processingjobconfig.json."""
        content = {"ProcessingJobName": "job-x-0a1b2c3d", "Environment": environment or {}, **parts}
        (self.root / "config" / "processingjobconfig.json").write_text(json.dumps(content))

    def rules(self, *entries: dict[str, Any], folder: str = "processing/input/config") -> None:
        """Write a configuration in SageMaker's shape."""
        (self.root / folder).mkdir(parents=True)
        (self.root / folder / "rules.json").write_text(json.dumps({"DebugRuleConfigurations": entries}))

    def tensors(self, *g1: float, folder: str = "processing/input/tensors") -> Path:
        """Save a trial."""
        return small_trial(self.root / folder, g1 or [HEALTHY] * 6)

    def run(self) -> Ran:
        """Run it once over what is there."""
        self.environment(RULE_EVALUATOR_FOLLOW="false")
        return call(self._capsys, "container", "--ml-root", self.root)

    def status(self, folder: str = "processing/output/rule") -> dict[str, Any]:
        """What it wrote."""
        return check_outputs(self.root / folder)

    @property
    def rule(self) -> dict[str, Any]:
        """The status of its one rule."""
        (only,) = self.status()["DebugRuleEvaluationStatuses"]
        return dict(only)

    @property
    def message(self) -> str:
        """What becomes the ExitMessage."""
        return (self.root / "output" / "message").read_text()


def entry(name: str, **parameters: str) -> dict[str, Any]:
    return {"RuleConfigurationName": name, "RuleEvaluatorImage": "rule-evaluator", "RuleParameters": parameters}
