"""Saved runs: who ended early, who has NaN, whose names are missing, and how long steps take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.errors import InputError
from evaluator.sagemaker.diagnose import Found, Inputs, NotChecked, Ok, checks
from evaluator.sagemaker.diagnose._trial import _pieces
from evaluator.testing import BEGIN, FakeClock, trial_from_series
from evaluator.trial.opening import open_run
from evaluator.writer import TrialWriter
from tests.sagemaker.diagnose.examples import gather, of

CHECKS = {check.name: check for check in checks()}
SHARED = Path(__file__).parents[4] / "shared" / "trials" / "ddp_two_workers"


def trial(folder: Path, workers: Mapping[str, Mapping[str, Sequence[Any]]], **options: Any) -> str:
    trial_from_series(folder, workers, workers=True, collections={"weights": ["w"]}, **options)
    return str(folder)


def test_workers_that_ended_early_are_named_with_their_difference(tmp_path: Path):
    whole = {"w": [1.0] * 10}
    path = trial(
        tmp_path / "trial",
        {"worker_0": whole, "worker_1": {"w": [1.0] * 9 + [None]}, "worker_2": {"w": [1.0] * 7 + [None] * 3}},
    )
    result = of(CHECKS["StallAtEnd"], Inputs(trial=path))

    assert isinstance(result, Found)
    assert result.what == "workers ended before the others, in saved steps: worker_1 by 1 step, worker_2 by 3 steps"
    assert result.evidence[0] == "worker_1: 9 saved steps, the last one 8"
    assert result.evidence[-1] == "worker_0: 10 saved steps, the last one 9"


def test_without_an_end_one_step_may_be_on_its_way(tmp_path: Path):
    workers: dict[str, dict[str, list[Any]]] = {"worker_0": {"w": [1.0, 1.0]}, "worker_1": {"w": [1.0, None]}}

    going_on = of(CHECKS["StallAtEnd"], Inputs(trial=trial(tmp_path / "going on", workers, end=False)))
    over = of(CHECKS["StallAtEnd"], Inputs(trial=trial(tmp_path / "over", workers)))

    assert isinstance(going_on, Ok)
    assert isinstance(over, Found)


def test_a_healthy_run_of_two_workers_has_nothing():
    if not SHARED.exists():
        pytest.skip("the shared trials are not here")
    evidence = gather(Inputs(trial=str(SHARED)))

    assert [check.name for check in checks() if isinstance(check.check(evidence), Found)] == []


def test_the_tensors_with_nan_are_named(tmp_path: Path):
    nan = float("nan")
    path = trial(
        tmp_path / "trial",
        {"worker_0": {"w": [1.0, 1.0], "b": [1.0, 1.0]}, "worker_1": {"w": [1.0, 1.0], "b": [1.0, nan]}},
        end=False,
    )
    evidence = gather(Inputs(trial=path), FakeClock(BEGIN + 3600))
    result = CHECKS["RankNotFinite"].check(evidence)

    assert isinstance(result, Found)
    assert result.evidence == ("worker_1: step 1, in b",)


def test_nan_in_a_run_that_went_on_to_its_end_is_no_stall(tmp_path: Path):
    path = trial(tmp_path / "trial", {"worker_0": {"w": [1.0, 1.0]}, "worker_1": {"w": [1.0, float("nan")]}})
    result = of(CHECKS["RankNotFinite"], Inputs(trial=path))

    assert result == Ok("worker_1 ended with values that are not finite, and the run went on to its end; see NonFinite")


def test_a_trial_that_is_older_than_the_job_is_that_of_another_attempt(tmp_path: Path):
    path = trial(tmp_path / "trial", {"worker_0": {"w": [1.0, 1.0]}})
    job = tmp_path / "job.json"
    job.write_text(f'{{"TrainingJobStatus": "InProgress", "TrainingJobName": "x", "TrainingStartTime": {BEGIN + 100}}}')

    assert of(CHECKS["NoFirstStep"], Inputs(trial=path, request=str(job))) == NotChecked(
        "the first step is older than the training job's start"
    )


def test_a_large_step_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("evaluator.sagemaker.diagnose._trial.PIECE", 1000)
    bad = np.ones(100, np.float32)
    bad[50] = np.inf
    with TrialWriter(tmp_path / "trial") as writer:
        writer.save(0, {f"t{at}": bad if at == 17 else np.ones(100, np.float32) for at in range(30)})
    evidence = gather(Inputs(trial=str(tmp_path / "trial")))
    source = open_run(str(tmp_path / "trial"))
    (file,) = source.open(source.sightings()[0])

    assert len(list(_pieces(source, file))) > 10
    assert evidence.trial is not None
    assert evidence.trial.not_finite == {"worker_0": ["t17"]}


def test_a_step_that_cannot_be_read_is_no_nan(tmp_path: Path):
    path = trial(tmp_path / "trial", {"worker_0": {"w": [1.0]}, "worker_1": {"w": [1.0]}})
    for file in Path(path).rglob("*worker_1.tfevents"):
        file.write_bytes(b"garbage")
    evidence = gather(Inputs(trial=path))

    assert evidence.trial is not None
    assert evidence.trial.not_finite == {}
    assert evidence.trial.unreadable


def test_the_bottleneck_is_named_only_where_the_file_system_is_at_its_limit(tmp_path: Path):
    steps = {"w": [1.0] * 5}
    slow = trial(tmp_path / "four", {f"worker_{at}": steps for at in range(4)}, seconds=[0, 3, 6, 9, 12])
    fast = trial(tmp_path / "one", {"worker_0": steps}, seconds=[0, 1, 2, 3, 4])
    result = of(CHECKS["ScalingLoss"], Inputs(trial=slow, other_trials=[fast]))

    assert isinstance(result, Found)
    assert result.what == "steps take longer on more workers"
    assert result.evidence[0].startswith("3 s per step on 4 workers")
    assert "not known" in result.evidence[-1]


def test_a_run_that_is_faster_on_more_workers_is_no_loss(tmp_path: Path):
    steps = {"w": [1.0] * 5}
    four = trial(tmp_path / "four", {f"worker_{at}": steps for at in range(4)})
    one = trial(tmp_path / "one", {"worker_0": steps}, seconds=[0, 3, 6, 9, 12])

    assert isinstance(of(CHECKS["ScalingLoss"], Inputs(trial=four, other_trials=[one])), Ok)
    assert isinstance(of(CHECKS["ScalingLoss"], Inputs(trial=one, other_trials=[four])), Ok)


def test_a_trial_that_is_not_there_is_wrong_input_with_all_other_mistakes(tmp_path: Path):
    with pytest.raises(InputError) as refusal:
        gather(Inputs(trial=str(tmp_path / "none"), logs=[str(tmp_path / "none.log")]))

    assert len(refusal.value.mistakes) == 2


def test_a_run_of_which_nothing_was_saved_yet_can_be_asked_about(tmp_path: Path):
    (tmp_path / "trial" / "collections").mkdir(parents=True)
    evidence = gather(Inputs(trial=str(tmp_path / "trial")))

    assert evidence.trial is not None
    assert evidence.trial.steps == 0
    results = {check.name: check.check(evidence) for check in checks()}
    assert all(isinstance(result, NotChecked) for result in results.values()), results
