"""Asking a script to end by a file, which our writer obeys."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.actions.base import NotDone, Surroundings
from evaluator.actions.stop_file import ACTION, StopFileParameters, check
from evaluator.writer import TrialWriter
from tests.actions.receivers import do
from tests.sinks.made import make_finding


def test_a_writer_in_that_folder_is_told_to_stop(tmp_path):
    writer = TrialWriter(tmp_path)
    writer.save(0, {"loss": np.float32(1)})
    before = writer.should_stop
    details = do(ACTION, around=Surroundings(str(tmp_path)))
    again = TrialWriter(tmp_path)
    again.save(1, {"loss": np.float32(1)})

    assert details == {"file": str(tmp_path / "STOP")}
    assert (before, again.should_stop) == (False, True)


def test_one_that_is_there_stays(tmp_path):
    (tmp_path / "STOP").write_text("mine")
    details = do(ACTION, around=Surroundings(str(tmp_path)))

    assert (details["was"], (tmp_path / "STOP").read_text()) == ("there", "mine")


def test_the_file_says_why(tmp_path):
    finding = make_finding()
    do(ACTION, finding=finding, around=Surroundings(f"file://{tmp_path}"))

    assert finding.id in (tmp_path / "STOP").read_text()


def test_a_folder_of_its_own_can_be_named(tmp_path):
    do(ACTION, around=Surroundings("s3://bucket/run"), folder=str(tmp_path))

    assert (tmp_path / "STOP").exists()


def test_the_folder_of_a_log_is_meant(tmp_path):
    (tmp_path / "log.csv").write_text("step,loss\n")
    do(ACTION, around=Surroundings(str(tmp_path / "log.csv")))

    assert (tmp_path / "STOP").exists()


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(NotDone, match="there is no folder"):
        do(ACTION, around=Surroundings(str(tmp_path / "none")))

    assert not (tmp_path / "none").exists()


def test_a_trial_on_s3_needs_a_folder_and_that_is_said_at_once():
    ((what, right),) = check(StopFileParameters(), Surroundings("s3://bucket/run"))

    assert what == "the trial is at s3://bucket/run, where no script looks for a file STOP"
    assert "folder" in right
    assert check(StopFileParameters(folder="/x"), Surroundings("s3://bucket/run")) == ()
    assert check(StopFileParameters(), Surroundings("/trials/one")) == ()
