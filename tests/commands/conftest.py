"""What holds for tests of the command line: no settings from outside, and logging left as it was."""

from __future__ import annotations

import os

import pytest
import structlog

from tests.commands.program import clean_up


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch):
    for variable in os.environ:
        if variable.startswith("RULE_EVALUATOR_") or variable in ("rule_to_invoke", "source_s3_uri", "FORCE_COLOR"):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("COLUMNS", "120")
    yield
    structlog.reset_defaults()
    clean_up()
