"""What a rule sees of its trial in its own process is what was saved, read once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from evaluator.isolation.files import Files
from evaluator.testing import trial_from_series
from evaluator.trial.opening import open_run
from evaluator.writer import TrialWriter, write_end_marker
from tests.isolation.jobs import FILES, Asked, rule, run_job, saved

LOOKING = "looking.py"


def step_of(tmp_path: Path, asked: Asked, trial: Path | None = None, settings: tuple[str, ...] = ()) -> int | None:
    result = run_job(trial or saved(tmp_path / "t"), tmp_path / "o", [asked], settings=settings)
    status = rule(result, str(asked.name))
    assert status.RuleEvaluationStatus in {"IssuesFound", "NoIssuesFound"}, status.StatusDetails
    return status.Finding.step if status.Finding is not None else None


def printed(tmp_path: Path, name: str) -> list[str]:
    return (tmp_path / "o" / name / "output.txt").read_text().splitlines()[1:]


def test_earlier_steps_are_read_on_demand(tmp_path: Path):
    assert step_of(tmp_path, Asked(LOOKING, "SeesFirstStep")) == 4


def test_state_is_kept_and_steps_come_in_order(tmp_path: Path):
    assert step_of(tmp_path, Asked(LOOKING, "Remembers")) == 4


def test_a_class_that_overrides_invoke_is_called_through_it(tmp_path: Path):
    assert step_of(tmp_path, Asked(LOOKING, "HasInvoke")) == 4


@pytest.mark.parametrize(("wanted", "step"), [("EVAL", 3), ("PREDICT", None)])
def test_modes_and_their_steps_are_as_saved(tmp_path: Path, wanted: str, step: int | None):
    trial = tmp_path / "t"
    trial_from_series(trial, {"loss": [1.0, 1.0, 1.0, 1.0]}, modes=["TRAIN", "EVAL", "TRAIN", "EVAL"])
    assert step_of(tmp_path, Asked(LOOKING, "CountsModes", {"wanted": wanted}), trial) == step


def test_a_step_with_values_of_two_modes_is_one_step_for_a_class(tmp_path: Path):
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": 1.0, "val_loss": 1.0}}\n' for step in range(3)))
    result = run_job(log, tmp_path / "o", [Asked(LOOKING, "CountsCalls")])
    status = rule(result, "CountsCalls")
    assert (status.RuleEvaluationStatus, status.Evaluation.evaluated) == ("NoIssuesFound", 3)


def test_lists_reach_a_constructor_as_sagemaker_writes_them(tmp_path: Path):
    asked = Asked("misbehaving.py", "OddDefault", {"names": ["gradient", "loss"]}, "ours")
    assert step_of(tmp_path, asked) is None


def test_an_earlier_step_that_was_written_again_with_other_tensors_is_not_mixed_up(tmp_path: Path):
    trial = saved(tmp_path / "t", 2)
    source = open_run(str(trial))
    files = Files(source)
    asked = {"key": source.sightings()[0].key, "step": 0, "worker": "worker_0", "mode": "GLOBAL"}
    right = files.values({**asked, "entries": [[0, "gradient/w", "value"]]})
    wrong = files.values({**asked, "entries": [[0, "gradient/v", "value"]]})
    far = files.values({**asked, "entries": [[99, "gradient/w", "value"]]})
    assert (len(right.joined), right.problems) == (1, {})
    assert list(wrong.problems) == [0]
    assert list(far.problems) == [99]


def test_a_step_that_has_not_come_is_not_waited_for(tmp_path: Path):
    result = run_job(saved(tmp_path / "t", 3), tmp_path / "o", [Asked(LOOKING, "WaitsForNext")])
    evaluation = rule(result, "WaitsForNext").Evaluation
    assert evaluation.skipped_because == {"it asked for a step that was not saved": 3}


@pytest.mark.parametrize(("other", "step"), [([1.0, 2.0, 3.0], None), ([1.0, 2.0, 4.0], 2)])
def test_other_trials_reach_a_constructor_that_takes_them(tmp_path: Path, other: list[float], step: int | None):
    trial = saved(tmp_path / "t", 3)
    trial_from_series(tmp_path / "other", {"gradient/w": other}, collections={"gradients": ["gradient/w"]})
    asked = Asked(LOOKING, "Compares", {"other_trials": str(tmp_path / "other")})
    assert step_of(tmp_path, asked, trial) == step


def test_values_of_every_type_arrive_as_they_were_saved(tmp_path: Path):
    folder = tmp_path / "t"
    values = {
        "bool": np.array([True, False]),
        "half": np.ones((2, 3), np.float16),
        "int": np.arange(4),
        "complex": np.ones(2, np.complex64),
        "empty": np.zeros((0, 3), np.float32),
        "text": np.array(["a", "bc"]),
        "scalar": np.float64(3.0),
    }
    writer = TrialWriter(folder, worker="w", num_workers=1)
    writer.save(0, values)
    writer.close(end=False)
    write_end_marker(folder)
    step_of(tmp_path, Asked(LOOKING, "SeesEverything"), folder)
    seen = dict(line.removeprefix("0 ").split(" w ") for line in printed(tmp_path, "SeesEverything"))
    assert seen == {
        "bool": "bool (2,)",
        "half": "float16 (2, 3)",
        "int": "int64 (4,)",
        "complex": "complex64 (2,)",
        "empty": "float32 (0, 3)",
        "text": "<U2 (2,)",
        "scalar": "float64 (1,)",
    }


def test_a_step_larger_than_the_memory_budget_is_asked_for_tensor_by_tensor(tmp_path: Path):
    trial = tmp_path / "t"
    big = {f"gradient/{name}": [np.full(300_000, step, np.float32) for step in range(5)] for name in "wv"}
    trial_from_series(trial, big, collections={"gradients": list(big)})
    asked = Asked(LOOKING, "SeesFirstStep")
    assert step_of(tmp_path, asked, trial, settings=("memory_budget=2MiB",)) == 4


def test_reading_in_a_process_of_its_own_costs_no_further_requests(tmp_path: Path):
    trial = saved(tmp_path / "t", 6)
    without = run_job(trial, tmp_path / "a", [], ["VanishingGradient", "AllZero"]).status.job.requests
    asked = Asked("large_gradient.py", "LargeGradient")
    together = run_job(trial, tmp_path / "o", [asked], ["VanishingGradient"])
    assert rule(together, "LargeGradient").Evaluation.evaluated == 6
    assert together.status.job.requests.get == without.get


def test_reductions_and_shapes_come_from_values_that_were_sent(tmp_path: Path):
    step_of(tmp_path, Asked(LOOKING, "SeesReductions"))
    assert printed(tmp_path, "SeesReductions")[5] == "5 6.0 (1,) ['worker_0']"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_rules_process_ends_with_a_job_that_is_killed(tmp_path: Path):
    trial = saved(tmp_path / "t")
    file, told = FILES / "misbehaving.py", tmp_path / "children"
    command = [sys.executable, "-m", "evaluator", "run", str(trial), "--output", str(tmp_path / "o"),
               "--rule-file", f"{file}:LeavesChildren", "--rule-file", f"{file}:HangsDeaf"]  # fmt: skip
    job = subprocess.Popen(command, env={**os.environ, "CHILD_FILE": str(told)}, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not told.exists() and time.monotonic() < until:
        os.sched_yield()
    processes = _of_group_leaders(job.pid)
    assert len(processes) == 2
    job.send_signal(signal.SIGKILL)
    job.wait()
    while any(_lives(process) for process in processes) and time.monotonic() < until:
        os.sched_yield()
    assert not any(_lives(process) for process in processes)


def _of_group_leaders(parent: int) -> list[int]:
    """The processes that this one started itself."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children]


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
