"""Trials that are opened in these tests wait by a clock that stands still."""

from __future__ import annotations

import pytest

from evaluator.testing import FakeClock
from evaluator.user_rules import surroundings
from evaluator.user_rules.reader import Limits


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(surroundings, "_set", [surroundings.Surroundings(clock, Limits())])
    return clock
