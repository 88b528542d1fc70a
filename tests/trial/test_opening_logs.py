"""Finding a log by its file or its folder, or saying what is there instead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.errors import InputError
from evaluator.formats.key_names import END_MARKER
from evaluator.modes import Mode
from evaluator.scalar_names import Naming
from evaluator.storage import open_store
from evaluator.trial.opening import Reading, await_run, explain_no_step, open_run, runs_below
from evaluator.writer import TrialWriter
from tests.saved_run import ScriptedClock

ROW = '{"step": 0, "loss": 1}\n'
EVENTS = "events.out.tfevents.1700000000.host.1.0"


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        open_run(str(path))
    return str(caught.value)


@pytest.mark.parametrize("name", ["metrics.jsonl", "log.json", "out.txt", "a b.log"])
def test_a_log_can_be_named_by_its_file(tmp_path: Path, name: str):
    (tmp_path / name).write_text(ROW)
    (tmp_path / "other.jsonl").write_text(ROW)

    assert [sighting.step for sighting in open_run(f"{tmp_path}/{name}").sightings()] == [0]
    assert [sighting.step for sighting in open_run(f"file://{tmp_path}/{name}".replace(" ", "%20")).sightings()] == [0]


def test_a_file_in_the_working_folder_needs_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "m.csv").write_text("step,loss\n3,1\n")
    monkeypatch.chdir(tmp_path)

    assert [sighting.step for sighting in open_run("m.csv").sightings()] == [3]


def test_the_folder_of_a_log_can_be_named(tmp_path: Path):
    (tmp_path / "metrics.csv").write_text("step,loss\n0,1\n")
    (tmp_path / "hparams.yaml").write_text("lr: 0.1\n")

    assert open_run(str(tmp_path)).name == "csv"


def test_a_trial_counts_before_a_log_beside_it(tmp_path: Path):
    with TrialWriter(tmp_path) as writer:
        writer.save(0, {"x": np.ones(1)})
    (tmp_path / "metrics.jsonl").write_text(ROW)

    assert open_run(str(tmp_path)).name == "smdebug"


def test_a_format_can_be_asked_for(tmp_path: Path):
    with TrialWriter(tmp_path) as writer:
        writer.save(0, {"x": np.ones(1)})
    (tmp_path / "metrics.jsonl").write_text(ROW)
    (tmp_path / "metrics.csv").write_text("step,loss\n0,1\n")

    names = ["smdebug", "json_lines", "csv"]
    assert [open_run(str(tmp_path), reading=Reading(source=name)).name for name in names] == names
    with pytest.raises(InputError, match="'jsonlines' is no format of saved runs; did you mean 'json_lines'"):
        open_run(str(tmp_path), reading=Reading(source="jsonlines"))


def test_a_format_that_was_asked_for_must_be_there(tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_text(ROW)

    with pytest.raises(InputError, match="is not a trial"):
        open_run(str(tmp_path), reading=Reading(source="tensorboard"))


def test_what_names_mean_can_be_said(tmp_path: Path):
    (tmp_path / "m.jsonl").write_text(ROW)
    reading = Reading(naming=Naming(modes={Mode.EVAL: ("loss",)}))
    source = open_run(str(tmp_path / "m.jsonl"), reading=reading)

    assert [file.mode for sighting in source.sightings() for file in source.open(sighting)] == [Mode.EVAL]


def test_an_end_marker_does_not_make_a_log_a_trial(tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_text(ROW)
    (tmp_path / END_MARKER).touch()
    source = open_run(str(tmp_path))

    assert (source.name, source.ended()) == ("json_lines", True)


def test_an_end_marker_alone_is_a_trial_without_steps(tmp_path: Path):
    (tmp_path / END_MARKER).touch()

    assert open_run(str(tmp_path)).name == "smdebug"


def test_of_several_logs_one_must_be_named(tmp_path: Path):
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(ROW)

    assert (
        refusal(tmp_path) == f"{tmp_path}: holds several logs; name one of them: {tmp_path}/a.jsonl, {tmp_path}/b.jsonl"
    )


def test_of_several_runs_of_tensorboard_one_must_be_named(tmp_path: Path):
    for name in ("run_a", "run_b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / EVENTS).touch()

    assert refusal(tmp_path).endswith(f"name one of them: {tmp_path}/run_a, {tmp_path}/run_b")


def test_the_folders_of_a_run_of_tensorboard_are_no_runs_below_it(tmp_path: Path):
    for name in ("train", "validation"):
        (tmp_path / name).mkdir()
        (tmp_path / name / EVENTS).touch()

    assert runs_below(open_store(str(tmp_path))) == []


@pytest.mark.parametrize("name", ["no.csv", "a\\b.csv", "folder/no.csv", "x.csv/y"])
def test_what_is_not_there_is_said_not_to_be(tmp_path: Path, name: str):
    assert "does not exist" in refusal(tmp_path / name) or "is empty" in refusal(tmp_path / name)


def test_a_file_that_is_no_log_is_no_trial(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("words")

    assert "is not a folder" in refusal(tmp_path / "notes.txt")


def test_a_log_that_does_not_exist_yet_is_waited_for(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    clock = ScriptedClock()
    clock.at(5, lambda: path.write_text(ROW))
    found = await_run(str(path), clock, start_timeout=60, poll=1, stopped=lambda: False)

    assert found is not None
    assert [sighting.step for sighting in found.sightings()] == [0]


def test_why_a_log_has_no_step_is_told(tmp_path: Path):
    (tmp_path / "trainer_state.json").write_text('{"log_history"')
    source = open_run(str(tmp_path))

    assert source.sightings() == []
    assert str(explain_no_step(str(tmp_path), source.store)) == (
        f"{tmp_path}: holds no saved step; it is a log (trainer_state); trainer_state.json: is not whole JSON; "
        "the Trainer may be writing it; name a trial with at least one step, or --follow to wait for one"
    )
