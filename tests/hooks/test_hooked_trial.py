"""What all hooks share: counting, ranks, the end of a run, and a script that nothing can break."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evaluator.hooks._hooked_trial import HookedTrial, by_kind
from evaluator.modes import Mode
from evaluator.saving.environment import rank_and_size
from tests.hooks.trials import collections, saved

ROOT = Path(__file__).parents[2]
MARKER = "training_job_end.ts"


def save(trial: HookedTrial, mode: Mode = Mode.TRAIN) -> None:
    step, mode_step = trial.count(mode)
    trial.save(step, {"a": np.float32(step)}, mode=mode, mode_step=mode_step, collections={"losses": ["a"]})


def test_steps_are_counted_over_all_modes_and_within_each(tmp_path: Path):
    trial = HookedTrial(tmp_path)
    counted = [trial.count(mode) for mode in (Mode.TRAIN, Mode.TRAIN, Mode.EVAL, Mode.TRAIN, Mode.EVAL)]
    trial.close()

    assert counted == [(0, 0), (1, 1), (2, 0), (3, 2), (4, 1)]


def test_what_was_saved_is_there_when_it_is_closed(tmp_path: Path):
    trial = HookedTrial(tmp_path)
    for _ in range(20):
        save(trial)
    trial.close()

    assert list(saved(tmp_path)) == list(range(20))
    assert collections(tmp_path) == {"losses": {"a"}}
    assert (tmp_path / MARKER).exists()


def test_ranks_are_workers_and_the_first_one_ends_the_run(tmp_path: Path):
    trials = [HookedTrial(tmp_path, rank_of=(rank, 2)) for rank in range(2)]
    for trial in reversed(trials):
        save(trial)
    trials[1].close()
    early = (tmp_path / MARKER).exists()
    trials[0].close()

    assert (list(saved(tmp_path)), list(saved(tmp_path, "worker_1"))) == ([0], [0])
    assert (early, (tmp_path / MARKER).exists()) == (False, True)


def test_one_worker_can_save_for_all(tmp_path: Path):
    trials = [HookedTrial(tmp_path, rank_of=(rank, 2), workers="one") for rank in range(2)]
    for trial in trials:
        save(trial)
        trial.close()

    assert [path.name for path in tmp_path.glob("collections/*/*")] == ["worker_0_collections.json"]
    assert saved(tmp_path, "worker_1") == {}


def test_a_new_run_in_the_folder_of_one_that_has_ended_has_not_ended(tmp_path: Path):
    HookedTrial(tmp_path).close()
    trial = HookedTrial(tmp_path)
    before = (tmp_path / MARKER).exists()
    trial.close()

    assert not before


def test_saving_after_the_end_does_nothing(tmp_path: Path):
    trial = HookedTrial(tmp_path)
    trial.close()
    save(trial)
    trial.close()

    assert saved(tmp_path) == {}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 1)),
        ({"RANK": "1", "WORLD_SIZE": "4"}, (1, 4)),
        ({"RANK": "1"}, (0, 1)),
        ({"RANK": "4", "WORLD_SIZE": "4"}, (0, 1)),
        ({"RANK": "one", "WORLD_SIZE": "4"}, (0, 1)),
    ],
)
def test_launchers_say_which_worker_it_is(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: tuple[int, int]
):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert rank_and_size() == expected


SCRIPT = """
import sys
import numpy as np
from evaluator.hooks._hooked_trial import HookedTrial
from evaluator.modes import Mode
trial = HookedTrial(sys.argv[1])
for step in range(5):
    trial.save(step, {"a": np.zeros(100_000, np.float32)}, mode=Mode.TRAIN, mode_step=step)
"""


@pytest.mark.parametrize(
    ("ending", "ended"), [("", True), ("sys.exit(3)", True), ("raise RuntimeError('training failed')", False)]
)
def test_a_script_that_closes_nothing_leaves_a_whole_trial(tmp_path: Path, ending: str, ended: bool):
    subprocess.run(
        [sys.executable, "-c", SCRIPT + ending, str(tmp_path)], cwd=ROOT, check=False, stderr=subprocess.DEVNULL
    )

    assert list(saved(tmp_path)) == [0, 1, 2, 3, 4]
    assert (tmp_path / MARKER).exists() == ended


def test_names_say_what_scalars_are():
    assert by_kind({"loss": 1, "val_accuracy": 1, "lr": 1, "seconds": 1}) == {
        "losses": ["loss"],
        "rising_metrics": ["val_accuracy"],
        "metrics": ["val_accuracy"],
        "learning_rates": ["lr"],
    }
