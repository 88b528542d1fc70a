"""UnevenSteps: workers that ended at different steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.registry import builtin_rules
from evaluator.testing import ExampleResult, evaluate, trial_from_series
from tests.builtin_rules.judging import judge


def run_of(*lengths: int, of: int = 8) -> dict[str, dict[str, list[Any]]]:
    """Workers that save every step until their last one."""
    return {f"worker_{rank}": {"w": [1.0] * count + [None] * (of - count)} for rank, count in enumerate(lengths)}


def unfinished(folder: Path, *lengths: int) -> ExampleResult:
    """The same, read before the run has ended."""
    trial_from_series(folder, run_of(*lengths), workers=True, end=False)
    configured = configure(RuleRequest("UnevenSteps", {}, "command line", "test"), builtin_rules()["UnevenSteps"])
    assert isinstance(configured, RuleConfiguration)
    return evaluate(str(folder), [configured])


@pytest.mark.parametrize(("lengths", "early"), [((8, 7), ["worker_1"]), ((5, 8, 6), ["worker_0", "worker_2"])])
def test_who_ended_early_is_named_with_the_difference(lengths: tuple[int, ...], early: list[str]):
    finding = judge("UnevenSteps", {}, workers=run_of(*lengths)).findings[0]

    assert (finding.step, finding.worker, finding.details["ended_early"]) == (7, early[0], early)
    assert finding.measured == 8 - lengths[int(early[0][-1])]
    assert finding.details["steps_of_workers"] == {f"worker_{rank}": count for rank, count in enumerate(lengths)}


@pytest.mark.parametrize("lengths", [(8, 8), (8,), (3, 3, 3)])
def test_workers_that_ended_together_are_quiet(lengths: tuple[int, ...]):
    assert judge("UnevenSteps", {}, workers=run_of(*lengths)).met_at is None


def test_it_is_judged_once_and_at_the_end():
    assert judge("UnevenSteps", {}, workers=run_of(8, 8)).evaluated == 1


def test_fewer_steps_than_asked_for_are_quiet():
    assert judge("UnevenSteps", {}, workers=run_of(8, 6), parameters={"steps": 3}).met_at is None


def test_a_worker_with_a_rhythm_of_its_own_is_quiet():
    run = {"worker_0": {"w": [1.0] * 9}, "worker_1": {"w": [1.0, None, None] * 3}}

    assert judge("UnevenSteps", {}, workers=run).met_at is None


def test_a_worker_that_does_not_evaluate_is_quiet():
    modes = ["TRAIN"] * 4 + ["EVAL"] * 4

    assert judge("UnevenSteps", {}, workers=run_of(8, 4), modes=modes).met_at is None


@pytest.mark.parametrize(("lengths", "expected"), [((8, 7), None), ((8, 6), 7)])
def test_half_of_the_last_step_of_a_run_that_goes_on_is_no_difference(
    tmp_path: Path, lengths: tuple[int, ...], expected: int | None
):
    assert unfinished(tmp_path, *lengths).met_at == expected


def test_one_worker_is_not_judged_and_says_so():
    assert "fewer than two workers" in judge("UnevenSteps", {}, workers=run_of(8)).why
