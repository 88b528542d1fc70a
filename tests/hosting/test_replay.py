"""A saved run as a class sees it while an example is replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.hosting.replay import Replay
from evaluator.testing import FakeClock, Tensors, trial_from_series
from evaluator.user_rules import surroundings
from evaluator.user_rules.exceptions import StepNotYetAvailable, TensorUnavailableForStep
from evaluator.user_rules.reader import Limits


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replay:
    monkeypatch.setattr(surroundings, "_set", [surroundings.Surroundings(FakeClock(), Limits())])
    series: Tensors = {"w": [1.0, 2.0, 3.0], "v": [1.0, None, 3.0]}
    trial_from_series(tmp_path / "trial", series, steps=[0, 10, 20], collections={"weights": ["w"]})
    trial_from_series(tmp_path / "other", series)
    replay = Replay()
    replay.open(str(tmp_path / "trial"), [str(tmp_path / "other")])
    return replay


@pytest.mark.parametrize(("step", "steps"), [(0, [0]), (9, [0]), (10, [0, 10]), (20, [0, 10, 20])])
def test_only_steps_up_to_the_shown_one_are_there(replay: Replay, step: int, steps: list[int]):
    replay.show(step)
    trial, _ = replay.trials()

    assert trial.steps() == steps
    assert trial.tensor("w").steps() == steps


def test_values_and_collections_are_those_of_the_run(replay: Replay):
    replay.show(10)
    trial, others = replay.trials()

    assert trial.tensor("w").value(10) == 2.0
    assert trial.tensor_names(collection="weights") == ["w"]
    assert [other.steps() for other in others] == [[0, 1, 2]]


def test_what_is_not_shown_is_not_there_yet(replay: Replay):
    replay.show(10)
    trial, _ = replay.trials()

    with pytest.raises(StepNotYetAvailable):
        trial.tensor("w").value(20)
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("v").value(10)
