"""What is told of the progress of a run's workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.modes import Mode
from evaluator.progress import PAUSES, ProgressTracker
from evaluator.rule import Need, Progress, ProgressView, Rule, RuleParameters, Summary
from evaluator.testing import evaluate, trial_from_series
from evaluator.trial.opening import open_run


def tracked(*saved: str, mode: Mode = Mode.TRAIN) -> ProgressTracker:
    """Workers a, b, ... that save the steps where their pattern has an x."""
    tracker = ProgressTracker()
    for step in range(max(len(pattern) for pattern in saved)):
        for rank, pattern in enumerate(saved):
            if pattern[step : step + 1] == "x":
                tracker.wrote(chr(ord("a") + rank), step, float(step), mode)
    return tracker


@pytest.mark.parametrize(
    ("pattern", "behind", "rhythm"),
    [("xxxxxx", 0, 1), ("xxxx..", 2, 1), ("x..x..", 2, 3), ("x....x", 0, 5), ("...xxx", 0, 1)],
)
def test_a_worker_is_behind_by_the_steps_that_others_saved_since_its_newest(pattern: str, behind: int, rhythm: int):
    view = tracked("xxxxxx", pattern).view()

    assert (view.behind.tolist(), view.rhythm.tolist()) == ([0, behind], [1, rhythm])


def test_a_worker_is_not_behind_in_a_mode_in_which_it_does_not_save():
    tracker = tracked("xx", "xx")
    for step in range(2, 6):
        tracker.wrote("a", step, None, Mode.EVAL)

    assert tracker.view().behind.tolist() == [0, 0]


def test_a_worker_that_saves_in_two_modes_is_behind_in_either():
    tracker = tracked("xx", "xx")
    tracker.wrote("a", 2, None, Mode.EVAL)
    tracker.wrote("b", 2, None, Mode.EVAL)
    tracker.wrote("a", 3, None, Mode.EVAL)

    assert tracker.view().behind.tolist() == [0, 1]


def test_pauses_are_those_in_which_no_worker_saved():
    tracker = ProgressTracker()
    for worker, step, at in [
        ("a", 0, 0.0),
        ("b", 0, 5.0),
        ("a", 1, 8.0),
        ("b", 1, 20.0),
        ("b", 2, 21.0),
        ("a", 2, 30.0),
    ]:
        tracker.wrote(worker, step, at)

    assert tracker.view().pauses.tolist() == [3.0, 1.0]


def test_the_order_of_the_files_of_a_step_does_not_matter():
    tracker = ProgressTracker()
    for worker, step, at in [("a", 0, 0.0), ("b", 0, 5.0), ("a", 1, 20.0), ("b", 1, 8.0)]:
        tracker.wrote(worker, step, at)

    assert tracker.view().pauses.tolist() == [3.0]


def test_times_that_go_back_or_are_not_known_make_no_negative_pauses():
    tracker = ProgressTracker()
    for step, at in enumerate([100.0, None, 50.0, 160.0]):
        tracker.wrote("a", step, at)

    assert tracker.view().pauses.tolist() == [0.0, 110.0]


def test_only_the_last_pauses_are_kept():
    tracker = ProgressTracker()
    for step in range(PAUSES + 10):
        tracker.wrote("a", step, float(step * step))

    pauses = tracker.view().pauses
    assert (len(pauses), pauses[-1]) == (PAUSES, 2 * (PAUSES + 9) - 1)


def test_without_times_a_need_of_progress_opens_no_file_to_learn_when_it_was_written(tmp_path: Path):
    trial_from_series(tmp_path, {"w": [1.0, 1.0, 1.0]})
    asked: list[int] = []
    for times in (True, False):
        source = open_run(str(tmp_path))
        evaluate(source, [_watching(times=times)])
        asked.append(source.store.requests.get)

    assert asked[0] - asked[1] == 3


def _watching(*, times: bool) -> RuleConfiguration:
    def judge(progress: ProgressView, _: RuleParameters) -> None:
        assert progress.steps.max() >= 1

    rule = Rule("Watches", "info", RuleParameters, requires=lambda _: [Progress(times=times)], condition=judge)
    return _configured(rule)


@pytest.mark.parametrize(("needs", "asked"), [([Summary("losses")], 2), ([Summary("losses"), Progress()], 3)])
def test_at_the_end_a_rule_is_asked_again_only_if_it_looks_at_progress(tmp_path: Path, needs: list[Need], asked: int):
    trial_from_series(tmp_path, {"loss": [1.0, 1.0]}, collections={"losses": ["loss"]})
    times: list[None] = []
    rule = Rule(
        "Asked",
        "info",
        RuleParameters,
        requires=lambda _: needs,
        condition=lambda *_: times.append(None),
        at=frozenset({"step", "end"}),
    )
    evaluate(str(tmp_path), [_configured(rule)])
    assert len(times) == asked


def test_a_rule_that_is_asked_at_the_end_was_not_evaluated_at_steps_that_did_not_concern_it(tmp_path: Path):
    tensors: dict[str, list[float | None]] = {"loss": [1.0, 1.0, None], "w": [1.0, 1.0, 1.0]}
    trial_from_series(tmp_path, tensors, collections={"losses": ["loss"]})
    rule = Rule(
        "Asked",
        "info",
        RuleParameters,
        requires=lambda _: [Summary("losses"), Progress(triggers=False)],
        condition=lambda *_: None,
        at=frozenset({"step", "end"}),
    )
    status = evaluate(str(tmp_path), [_configured(rule)]).status.DebugRuleEvaluationStatuses[0]

    assert (status.Evaluation.evaluated, status.Evaluation.last_step) == (2, 1)


def _configured(rule: Rule) -> RuleConfiguration:
    configured = configure(RuleRequest(rule.name, {}, "command line", rule.name), rule)
    assert not isinstance(configured, list)
    return configured
