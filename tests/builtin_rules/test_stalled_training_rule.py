"""StalledTrainingRule: how long nothing was saved, in finished runs and in those that go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builtin_rules.runs.stalled_training_rule import RULE, Parameters
from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.engine.local import LocalEngine
from evaluator.engine.partners import Partners
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock, trial_from_series
from evaluator.trial.completeness import Waits
from evaluator.trial.trial import Trial
from tests.builtin_rules.judging import defaults, judge


class Followed:
    """A run that goes on, in memory, on a clock that stands still."""

    def __init__(self, folder: Path, **parameters: Any) -> None:
        self._folder = folder
        self.clock = FakeClock()
        self._store = MemoryStore(clock=self.clock)
        self._trial = Trial(SmdebugFolder(self._store), self.clock, Waits(30, 300), following=True)
        configured = configure(RuleRequest("StalledTrainingRule", parameters, "command line", "test"), RULE)
        assert isinstance(configured, RuleConfiguration)
        source = self._trial.source
        self._evaluation = Evaluation(
            [configured], self._trial, Partners(source, 2**20, lambda *_: None), following=True
        )
        self._engine = LocalEngine(source, 2**20)

    def save(self, *steps: int) -> list[Finding]:
        trial_from_series(self._folder, {"w": [1.0] * len(steps)}, steps=steps, end=False)
        for path in self._folder.rglob("*"):
            key = path.relative_to(self._folder).as_posix()
            if path.is_file() and self._store.stat(key) is None:
                self._store.write(key, path.read_bytes())
        summaries = self._engine.ahead(self._trial.poll(), self._evaluation.plan_of)
        return [finding for summary in summaries for finding in self._evaluation.judge(summary)]

    def idle(self, seconds: float) -> list[Finding]:
        self.clock.advance(seconds)
        return self._evaluation.judge_idle(self.clock.now(), "idle", self._trial.counts.last)


def slowly(seconds: list[float], threshold: float) -> int | None:
    """The first step that came too long after the one before."""
    return next((at for at in range(1, len(seconds)) if seconds[at] - seconds[at - 1] > threshold), None)


def test_parameters_are_sagemakers():
    assert defaults("StalledTrainingRule") == {
        "threshold": 1800,
        "stop_training_on_fire": False,
        "training_job_name_prefix": None,
    }


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_the_slow_way(seed: int):
    seconds = np.cumsum(np.random.default_rng(seed).exponential(700, size=12)).tolist()

    result = judge("StalledTrainingRule", {"w": [1.0] * 12}, seconds=seconds)

    assert result.met_at == slowly(seconds, 1800)


def test_the_finding_says_how_long():
    finding = judge("StalledTrainingRule", {"w": [1.0] * 3}, seconds=[0, 5, 2005]).findings[0]

    assert (finding.step, finding.tensor, finding.worker, finding.limit) == (2, None, None, 1800)
    assert finding.measured == pytest.approx(2000)


def test_a_pause_of_one_worker_is_none_of_the_run():
    run = {"worker_0": {"w": [1.0] * 5}, "worker_1": {"w": [1.0, None, None, None, 1.0]}}

    assert judge("StalledTrainingRule", {}, workers=run, seconds=[0, 1000, 2000, 3000, 4000]).met_at is None


@pytest.mark.parametrize(
    ("pauses", "expected"),
    [
        ([2500.0] * 6, None),
        ([2500.0] * 4 + [13000.0], 5),
        ([60.0] * 5 + [1900.0], 6),
        ([2600.0], None),
        ([2800.0], 1),
    ],
)
def test_the_recommended_parameters_learn_what_is_usual(pauses: list[float], expected: int | None):
    seconds = [0.0, *np.cumsum(pauses).tolist()]

    result = judge("StalledTrainingRule", {"w": [1.0] * len(seconds)}, seconds=seconds, parameter_set="recommended")

    assert result.met_at == expected


def test_that_training_is_not_stopped_is_said():
    finding = judge(
        "StalledTrainingRule",
        {"w": [1.0] * 2},
        seconds=[0, 5000],
        stop_training_on_fire="True",
        training_job_name_prefix="MyJob",
    ).findings[0]

    assert "was not stopped" in finding.details["stop_training_on_fire"]


@pytest.mark.parametrize(("waited", "expected"), [(1800, []), (1801, [0])])
def test_a_run_that_goes_on_is_asked_while_it_is_idle(tmp_path: Path, waited: float, expected: list[int]):
    run = Followed(tmp_path, parameter_set="sagemaker")
    found = run.save(0)

    found += run.idle(waited)

    assert [finding.step for finding in found] == expected


def test_a_run_that_goes_on_in_time_is_quiet(tmp_path: Path):
    run = Followed(tmp_path, parameter_set="sagemaker")
    found = run.save(0)
    for step in range(1, 5):
        found += run.idle(1700)
        found += run.save(*range(step + 1))

    assert found == []


def test_the_end_of_a_run_is_no_stall():
    assert judge("StalledTrainingRule", {"w": [1.0]}).word == "NoIssuesFound"


@pytest.mark.parametrize(
    ("parameters", "expected"), [({"threshold": 7200}, 7200), ({"threshold": 100, "times": 5}, 150)]
)
def test_a_job_has_to_wait_for_as_long_as_the_threshold(parameters: dict[str, Any], expected: float):
    assert RULE.patience is not None
    assert RULE.patience(Parameters.model_validate(parameters)) == expected
