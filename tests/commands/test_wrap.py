"""wrap: a script is run, what it saves is evaluated, and a finding can stop it."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from tests.commands.program import finish, run, start

SCRIPT = """
import signal, sys, time
from pathlib import Path
import numpy as np
from evaluator.writer import TrialWriter

folder, last, code = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
with TrialWriter(folder, collections={"losses": ["loss"]}) as writer:
    for step in range(3):
        writer.save(step, {"loss": np.float32(1.0 if step < 2 else last)})
    print("saved", flush=True)
    if code < 0:
        # goes on until it is stopped
        while not (folder / "STOP").exists():
            time.sleep(0.02)
sys.exit(max(code, 0))
"""
QUICK = ("--set", "poll_min=0.05", "--set", "poll_max=0.1", "--set", "late_grace=0.1", "--rule", "NonFinite")


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path / "train.py"


def words(tmp_path, script, last, code, *more):
    trial = tmp_path / "trial"
    arguments = ("wrap", "--trial", trial, "--output", tmp_path / "out", *QUICK, *more)
    return (*arguments, "--", sys.executable, script, trial, last, code)


def environment():
    return {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.parametrize(
    ("last", "code", "expected"),
    [("1.0", 0, 0), ("nan", 0, 1), ("1.0", 7, 7), ("nan", 7, 7)],
    ids=["healthy", "a finding", "the script fails", "both"],
)
def test_the_exit_code_is_the_scripts_where_it_failed_and_the_verdicts_otherwise(
    tmp_path, script, last, code, expected
):
    ran = run(*words(tmp_path, script, last, code), environment=environment())

    status = json.loads((tmp_path / "out" / "status.json").read_text())
    assert ran.code == expected
    assert ran.out == "saved\n"
    assert status["job"]["steps"]["complete"] == 3
    assert status["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == (
        "IssuesFound" if last == "nan" else "NoIssuesFound"
    )


def test_a_finding_that_is_severe_enough_stops_the_script(tmp_path, script):
    ran = run(*words(tmp_path, script, "nan", -1, "--stop-on", "critical"), environment=environment())

    assert ran.code == 1
    assert (tmp_path / "trial" / "STOP").exists()


def test_a_finding_that_is_not_severe_enough_stops_nothing(tmp_path, script):
    more = ("--stop-on", "critical", "--rule", "NonFinite:severity=info,name=info")
    arguments = ("wrap", "--trial", tmp_path / "trial", "--output", tmp_path / "out", *QUICK[:-2], *more)
    ran = run(*arguments, "--", sys.executable, script, tmp_path / "trial", "nan", 0, environment=environment())

    assert (ran.code, (tmp_path / "trial" / "STOP").exists()) == (1, False)


def test_the_stop_file_of_an_earlier_run_does_not_stop_the_next(tmp_path, script):
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "STOP").touch()
    ran = run(*words(tmp_path, script, "1.0", 0), environment=environment())

    assert (ran.code, (tmp_path / "trial" / "STOP").exists()) == (0, False)


def test_a_signal_is_passed_on_to_the_script_and_what_it_saved_is_judged(tmp_path, script):
    process = start(*words(tmp_path, script, "1.0", -1), environment=environment())
    assert process.stdout is not None
    assert process.stdout.readline() == "saved\n"
    process.send_signal(signal.SIGTERM)
    ran = finish(process)

    status = json.loads((tmp_path / "out" / "status.json").read_text())
    assert ran.code == 128 + signal.SIGTERM
    assert status["job"]["ended_because"] == "watched_process_ended"
    assert status["job"]["steps"]["complete"] == 3


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (("--stop-on", "terrible"), "--stop-on: 'terrible' does not fit"),
        (("--rule", "NonFinit"), "rule 'NonFinit' is not known"),
    ],
)
def test_what_is_wrong_is_said_before_the_script_is_started(tmp_path, script, more, what):
    ran = run(*words(tmp_path, script, "1.0", 0, *more), environment=environment())

    assert (ran.code, ran.out) == (2, "")
    assert what in ran.err
    assert not (tmp_path / "trial").exists()


def test_a_command_that_does_not_exist_is_wrong_input(tmp_path):
    ran = run("wrap", "--trial", tmp_path / "trial", "--output", tmp_path / "out", "--", tmp_path / "no-such-program")

    assert ran.code == 2
    assert "cannot be started" in ran.err
