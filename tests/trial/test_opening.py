"""Finding the run that a path means, or saying what is there instead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.errors import InputError
from evaluator.sources.base import Source
from evaluator.storage.file import FileStore
from evaluator.trial.opening import await_run, explain_no_step, open_run
from evaluator.writer import TrialWriter
from tests.saved_run import ScriptedClock


def save(folder: Path) -> None:
    with TrialWriter(folder) as writer:
        writer.save(0, {"x": np.ones(1)})


def refusal(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        open_run(str(path))
    return str(caught.value)


def test_a_run_is_opened(tmp_path: Path):
    save(tmp_path)

    assert [sighting.step for sighting in open_run(f"{tmp_path}/").sightings()] == [0]


def test_an_absent_path_is_said_to_be_absent(tmp_path: Path):
    assert f"{tmp_path}/no: does not exist" in refusal(tmp_path / "no")


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path):
    assert refusal(tmp_path) == f"{tmp_path}: is empty; a trial has folders index/, events/ and collections/"


def test_a_trial_one_level_below_is_named(tmp_path: Path):
    save(tmp_path / "debug-output")

    assert refusal(tmp_path) == f"{tmp_path}: is not a trial; there is one a level below: {tmp_path}/debug-output"


def test_several_trials_below_are_listed(tmp_path: Path):
    save(tmp_path / "a")
    save(tmp_path / "b")

    assert refusal(tmp_path) == f"{tmp_path}: holds several trials; name one of them: {tmp_path}/a, {tmp_path}/b"


@pytest.mark.parametrize("below", ["index", "index/", "events", "collections"])
def test_a_trial_one_level_above_is_named(tmp_path: Path, below: str):
    save(tmp_path)

    assert refusal(f"{tmp_path}/{below}").endswith(f"there is a trial one level above: {tmp_path}")


def test_what_is_there_is_listed_without_going_through_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A home folder, or the root of a disk, given by mistake must not be walked."""
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "file").touch()
    monkeypatch.setattr(FileStore, "list", lambda *_: pytest.fail("walked"))

    assert refusal(tmp_path).endswith("there is: src/")


def test_names_that_could_steer_a_terminal_are_escaped(tmp_path: Path):
    (tmp_path / "\x1b[31m").mkdir()
    (tmp_path / "b").mkdir()
    save(tmp_path / "b" / "x\u202e")

    assert refusal(tmp_path).isprintable()
    assert refusal(tmp_path / "b").isprintable()


def wait(path: Path, clock: ScriptedClock, *, stopped: bool = False) -> Source | None:
    return await_run(str(path), clock, start_timeout=100, poll=10, stopped=lambda: stopped)


def test_a_run_that_begins_later_is_waited_for(tmp_path: Path):
    clock = ScriptedClock()
    clock.at(55, lambda: save(tmp_path / "later"))

    assert wait(tmp_path / "later", clock) is not None
    assert 55 <= clock.monotonic() <= 65


def test_waiting_ends_at_the_timeout_or_a_signal(tmp_path: Path):
    clock = ScriptedClock()
    soon = wait(tmp_path, clock, stopped=True), clock.monotonic()
    late = wait(tmp_path, clock), clock.monotonic()

    assert (soon, late) == ((None, 0), (None, 100))


def test_a_parent_folder_is_not_waited_for(tmp_path: Path):
    save(tmp_path / "run")

    with pytest.raises(InputError, match="a level below"):
        wait(tmp_path, ScriptedClock())


# a run without a step


def no_step(path: Path) -> str:
    return str(explain_no_step(str(path), FileStore(path))).removeprefix(str(path))


def made(path: Path, *keys: str) -> Path:
    for key in keys:
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).touch()
    return path


def test_unfinished_files_are_told(tmp_path: Path):
    """A job that was killed while it saved left .tmp files only, and was told that it had saved no step (A2)."""
    keys = ["index/0/1_w.json.tmp", "events/0/1_w.tfevents.tmp", "events/0/2_w.tfevents.tmp"]

    assert no_step(made(tmp_path, *keys)) == (
        ": holds no saved step; there is index/ with 1 unfinished file, events/ with 2 unfinished files, "
        "no collections/, no end marker, being written or left over: events/0/1_w.tfevents.tmp, ...; "
        "name a trial with at least one step, or --follow to wait for one"
    )


def test_a_run_that_ended_before_its_first_step_is_told_so(tmp_path: Path):
    (tmp_path / "index").mkdir()

    assert no_step(made(tmp_path, "training_job_end.ts", "collections/0/w_collections.json")).startswith(
        ": holds no saved step; there is index/ without a file, no events/, collections/ with 1 file, the end marker; "
    )


def test_values_without_an_index_are_told(tmp_path: Path):
    assert no_step(made(tmp_path, "events/0/1_w.tfevents", "events/0/2_w.tfevents", "events/0/3_w.tmp")).startswith(
        ": holds no saved step; there is no index/, events/ with 2 files and 1 unfinished file, no collections/, "
    )


def test_a_folder_of_unfinished_files_is_not_empty(tmp_path: Path):
    assert refusal(made(tmp_path, "x.tmp")).endswith("there is: x.tmp")


def test_a_log_one_level_above_is_no_explanation(tmp_path: Path):
    (tmp_path / "metrics.csv").write_text("step,loss\n0,1.0\n")
    (tmp_path / "empty").mkdir()

    assert "one level above" not in refusal(tmp_path / "empty")
