"""The base class of rules, what they require, and what invokes them: conformance.md, B, I14 and I15."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.user_rules.exceptions import (
    NoMoreData,
    RuleEvaluationConditionMet,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
)
from evaluator.user_rules.helpers import no_refresh
from evaluator.user_rules.opening import create_trial
from evaluator.user_rules.rule import Rule
from evaluator.user_rules.rule_invoker import invoke_rule
from evaluator.user_rules.trial import Trial
from tests.conformance import data


class Quiet(Rule):
    def invoke_at_step(self, step: int) -> Any:
        return False


class Met(Rule):
    def __init__(self, trial: Trial, *steps: int, error: Exception | None = None, names: tuple[str, ...] = ()) -> None:
        super().__init__(trial)
        self.steps, self.error, self.names = steps, error, names
        self.invoked: list[int] = []

    def set_required_tensors(self, step: int) -> None:
        for name in self.names:
            self.req_tensors.add(name, steps=[step])

    def invoke_at_step(self, step: int) -> Any:
        self.invoked.append(step)
        if step in self.steps and self.error is not None:
            raise self.error
        return step in self.steps or None


@pytest.fixture
def trials(tmp_path: Path) -> list[Trial]:
    data.BUILDS["i_rules"](tmp_path)
    return [create_trial(str(tmp_path / name)) for name in ("trial", "other")]


MAIL = '{"name": "email", "endpoint": "a@b.c"}'


@pytest.mark.parametrize(
    ("given", "named", "others", "actions"),
    [
        ((), {}, 0, 0),
        ((), {"other_trials": True}, 1, 0),
        (([],), {}, 0, 0),
        ((True,), {}, 1, 0),
        ((MAIL,), {}, 0, 1),
        ((), {"action_str": "", "other_trials": None}, 0, 0),
        ((None, MAIL), {}, 0, 1),
        ((True, MAIL), {}, 1, 1),
        ((MAIL, True), {}, 1, 1),
        ((None,), {}, 0, 0),
        ((), {"action_str": None}, 0, 0),
    ],
)
def test_all_forms_of_the_constructor_are_taken(trials, given, named, others, actions):
    def real(value: Any) -> Any:
        return [trials[1]] if value is True else value

    rule = Quiet(trials[0], *map(real, given), **{key: real(value) for key, value in named.items()})

    assert (rule.trials, len(rule._actions._actions)) == ([trials[0], *trials[1:][:others]], actions)


@pytest.mark.parametrize("given", [("a", "b"), (5,), ([], [], [])])
def test_what_fits_no_form_is_refused(trials, given):
    with pytest.raises(TypeError, match="would be right"):
        Quiet(trials[0], *given)


def test_a_rule_has_what_rule_files_use(trials):
    rule = Quiet(base_trial=trials[0], action_str="")

    assert (rule.rule_name, rule.other_trials, rule.logger.name) == ("Quiet", None, "smdebug")
    assert rule.report == {
        "RuleTriggered": 0,
        "Violations": 0,
        "Details": {},
        "Datapoints": 0,
        "RuleParameters": "",
    }


def test_a_rule_without_its_method_cannot_be_made(trials):
    with pytest.raises(TypeError, match="invoke_at_step"):
        Rule(trials[0])  # type: ignore[abstract]


def test_invoking_goes_over_all_steps_and_ends_with_no_more_data(trials):
    rule = Met(trials[0], 1, 2)

    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    assert rule.invoked == [0, 1, 2, 4]


def test_a_met_condition_is_raised_only_when_asked_for(trials):
    rule = Met(trials[0], 1, 2)

    assert invoke_rule(rule, end_step=3) is None  # type: ignore[func-returns-value]
    with pytest.raises(RuleEvaluationConditionMet, match="rule Met at step 1 resulted"):
        invoke_rule(rule, raise_eval_cond=True)


def test_the_end_of_a_rule_stops_invoking(trials):
    rule = Met(trials[0], 1, error=RuleEvaluationConditionMet("Met", 1, end_of_rule=True))
    invoke_rule(rule)

    assert rule.invoked == [0, 1]


def test_an_error_of_the_rule_passes_and_leaves_no_trial_frozen(trials):
    rule = Met(trials[0], 1, error=ZeroDivisionError("own"))
    rule.trials = trials

    with pytest.raises(ZeroDivisionError, match="own"):
        invoke_rule(rule)
    assert [trial.dynamic_refresh for trial in trials] == [True, True]


def test_a_step_without_a_required_tensor_is_skipped(trials):
    rule = Met(trials[0], 0, names=("nothing",))
    invoke_rule(rule, end_step=3)

    assert rule.invoked == []


@pytest.mark.parametrize(("step", "error"), [(3, StepUnavailable), (9, NoMoreData)])
def test_invoking_at_a_step_that_is_not_there_says_why(trials, step, error):
    with pytest.raises(error):
        Met(trials[0]).invoke(step)


def test_required_steps_are_not_shared(trials):
    required = Quiet(trials[0], [trials[1]]).req_tensors
    steps = [0]
    required.add("foo_", steps, should_match_regex=True)
    required.add("foo_0", [1])
    required.add("foo_0", [0], trial=trials[1])
    required.add("nothing", [0], should_match_regex=True)

    assert [required.get_tensor_steps(name) for name in required.get_names()] == [[0, 1], [0]]
    assert (steps, [tensor.name for tensor in required.get()]) == ([0], ["foo_0", "foo_1"])
    assert list(required.get_names(trials[1])) == ["foo_0"]
    with pytest.raises(TensorUnavailable):
        required.add("nothing", [0])


def test_requiring_a_tensor_of_reductions_only_does_not_stop_the_rule(tmp_path: Path):
    data.BUILDS["i_norms"](tmp_path)
    rule = Met(create_trial(str(tmp_path / "trial")), names=("alone",))
    invoke_rule(rule, end_step=2)

    assert rule.invoked == [1]


def test_within_an_invocation_nothing_new_is_seen(tmp_path: Path):
    data.BUILDS["b_rule"](tmp_path)
    trial = create_trial(str(tmp_path / "trial"))
    seen = []

    class Looks(Quiet):
        def invoke_at_step(self, step: int) -> Any:
            try:
                seen.append(float(self.base_trial.tensor("foo_0").value(step + 1).max()))
            except StepNotYetAvailable:
                seen.append(-1.0)
                data.gd(tmp_path / "trial", step + 1, 3)
                seen.append(len(self.base_trial.steps()))

    rule = Looks(trial)
    for step in (0, 1):
        rule.invoke(step)
    with no_refresh(trial):
        rule.invoke_at_step(1)
    rule.invoke(1)

    assert seen == [1, -1, 2, -1, 2, 2]
