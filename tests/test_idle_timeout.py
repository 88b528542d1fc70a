"""How long a job that follows a run waits in silence: as long as its settings and its named rules want."""

from __future__ import annotations

import pytest

from evaluator.config.job_config import configure_rules
from evaluator.config.request import RuleRequest
from evaluator.ending import idle_timeout


def timeout(setting: float, *requests: RuleRequest) -> float:
    rules, _, mistakes = configure_rules(requests, None, [])
    assert mistakes == []
    return idle_timeout(setting, rules)


def stalled(threshold: str, **parameters: str) -> RuleRequest:
    parameters = {"threshold": threshold, "parameter_set": "sagemaker", **parameters}
    return RuleRequest("StalledTrainingRule", parameters, "command line", f"stalled {threshold}")


@pytest.mark.parametrize(
    ("setting", "thresholds", "expected"),
    [(3600, ["1800"], 3600), (3600, ["7200"], 7260), (3600, ["1800", "9000"], 9060), (5, ["1800"], 1860)],
)
def test_it_is_raised_to_the_longest_threshold_of_the_named_rules(
    setting: float, thresholds: list[str], expected: float
):
    assert timeout(setting, *map(stalled, thresholds)) == expected


def test_rules_that_nobody_named_do_not_change_what_was_set():
    assert timeout(5) == 5


def test_a_threshold_that_is_learned_is_waited_for_until_it_is():
    assert timeout(3600, stalled("6000", times="5")) == 9060
