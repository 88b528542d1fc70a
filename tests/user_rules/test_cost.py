"""What reading costs: requests are counted on a memory store."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.testing import FakeClock
from evaluator.user_rules.reader import Limits
from evaluator.user_rules.rule import Rule
from evaluator.user_rules.rule_invoker import invoke_rule
from evaluator.user_rules.source_reader import SourceReader
from evaluator.user_rules.trial import Trial
from tests.saved_run import SavedRun


def trial_of(run: SavedRun, limits: Limits | None = None) -> Trial:
    limits = limits or Limits()
    return Trial("t", SourceReader(SmdebugFolder(run.store), run.clock, limits), run.clock, limits)


@pytest.fixture
def run() -> SavedRun:
    run = SavedRun(FakeClock())
    run.announce(gradients=["a"])
    saved = {"a": np.ones(3), "b": np.ones(3), "smdebug/reductions/mean/a": np.float32(5)}
    for step in range(3):
        run.save(step, values=saved)
    run.end()
    return run


def test_a_saved_reduction_costs_one_request_and_no_read_of_the_value(run: SavedRun):
    trial = trial_of(run)
    trial.steps()
    before = run.store.requests.get
    value = trial.tensor("a").reduction_value(0, "mean")

    assert (value, run.store.requests.get - before) == (5, 1)
    trial.tensor("a").reduction_value(0, "mean")
    assert run.store.requests.get - before == 1


def test_values_of_a_step_are_read_once(run: SavedRun):
    trial = trial_of(run)
    trial.steps()
    before = run.store.requests.get
    for _ in range(3):
        for name in ("a", "b"):
            trial.tensor(name).value(1)
            trial.tensor(name).reduction_value(1, "max")

    assert run.store.requests.get - before == 1


def test_what_a_rule_requires_is_read_once_for_the_rule_and_its_requirement(run: SavedRun):
    class Needs(Rule):
        def set_required_tensors(self, step: int) -> None:
            self.req_tensors.add(".", [step], should_match_regex=True)

        def invoke_at_step(self, step: int) -> bool:
            return bool(sum(tensor.value(step).sum() for tensor in self.req_tensors.get()) > 99)

    trial = trial_of(run)
    trial.steps()
    before = run.store.requests.get
    invoke_rule(Needs(trial), end_step=3)

    assert run.store.requests.get - before == 3


def test_an_idle_look_costs_the_same_whatever_the_history():
    costs = []
    for count in (50, 500):
        run = SavedRun(FakeClock())
        run.announce()
        for step in range(count):
            run.save(step)
        trial = trial_of(run)
        trial.steps()
        before = run.store.requests.get + run.store.requests.list
        trial.steps()
        costs.append(run.store.requests.get + run.store.requests.list - before)

    assert costs[0] == costs[1] <= 4


def test_kept_values_stay_within_their_limit():
    run = SavedRun(FakeClock())
    run.announce()
    for step in range(20):
        run.save(step, values={"a": np.full(1000, step, np.float64)})
    trial = trial_of(run, Limits(cache_bytes=20_000))
    values = [trial.tensor("a").value(step)[0] for step in trial.steps()]

    assert values == [*range(20)]
    assert sum(array.nbytes for array in trial.saved_values._kept.values()) <= 20_000
