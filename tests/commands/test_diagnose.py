"""diagnose as a user runs it: lines, evidence, remedies and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluator.sagemaker.diagnose import checks
from evaluator.testing import trial_from_series
from tests.commands.program import call, run


def uneven(folder: Path) -> Path:
    """A run whose second worker has a step less, and its third three."""
    lengths = {"worker_0": 6, "worker_1": 5, "worker_2": 3}
    workers: dict[str, dict[str, list[Any]]] = {
        worker: {"w": [1.0] * length + [None] * (6 - length)} for worker, length in lengths.items()
    }
    trial_from_series(folder, workers, workers=True)
    return folder


def test_ranks_with_fewer_steps_are_named_and_the_exit_code_is_1(capsys, tmp_path):
    ran = call(capsys, "diagnose", "--trial", uneven(tmp_path / "trial"))

    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (1, "")
    assert (
        "found: StallAtEnd: workers ended before the others, in saved steps: worker_1 by 1 step, worker_2 by 3 steps"
        in lines
    )
    assert "    worker_2: 3 saved steps, the last one 2" in lines
    assert any(line.startswith("    remedy: Give every rank the same number of samples") for line in lines)
    assert lines[-1] == "1 finding; 3 of 13 checks could be made"


def test_every_check_has_one_line(capsys, tmp_path):
    ran = call(capsys, "diagnose", "--trial", uneven(tmp_path / "trial"))

    told = [
        line.split(": ")[1] for line in ran.out.splitlines() if line.startswith(("found: ", "ok: ", "not checked: "))
    ]
    assert told == [check.name for check in checks()]


def test_nothing_wrong_is_0(capsys, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("rank 0 step 1\nrank 1 step 1\n")

    assert call(capsys, "diagnose", "--log", log).code == 0


def test_nothing_that_could_be_checked_is_3(capsys, tmp_path):
    keys = tmp_path / "keys.json"
    keys.write_text("[]")

    ran = call(capsys, "diagnose", "--checkpoint", keys)

    assert ran.code == 3
    assert "0 findings; 0 of 13 checks could be made" in ran.out


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ([], "diagnose: there is nothing to look at; give at least one of --training-job, "),
        (["--start-limit", "5"], "diagnose: there is nothing to look at; give at least one of "),
        (["--training-job", "x", "--request", "y"], "--request: the job is described by --training-job already"),
        (["--log", "/nowhere.log"], "/nowhere.log: there is no such file"),
        (["--trial", "/nowhere"], "/nowhere: "),
        (
            ["--checkpiont", "x"],
            "rule-evaluator diagnose: option '--checkpiont' is not known; did you mean '--checkpoint'?",
        ),
    ],
)
def test_wrong_input_is_2(capsys, arguments, mistake):
    ran = call(capsys, "diagnose", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(mistake)


def test_json_holds_the_same(capsys, tmp_path):
    ran = call(capsys, "diagnose", "--trial", uneven(tmp_path / "trial"), "--json")

    document = ran.document
    assert (ran.code, document["schema"], document["notes"]) == (1, 1, [])
    by_name = {one["check"]: one for one in document["checks"]}
    assert list(by_name) == [check.name for check in checks()]
    assert by_name["StallAtEnd"]["result"] == "found"
    assert by_name["StallAtEnd"]["evidence"][0] == "worker_1: 5 saved steps, the last one 4"
    assert by_name["StallAtEnd"]["remedy"]
    assert by_name["OutOfMemory"] == {"check": "OutOfMemory", "result": "not checked", "what": "needs a log"}


def test_wrong_input_is_a_document_under_json(capsys):
    ran = call(capsys, "diagnose", "--log", "/nowhere.log", "--json")

    assert ran.code == 2
    assert ran.document["errors"][0]["what"] == "there is no such file"


def test_nothing_in_a_file_can_steer_the_terminal(capsys, tmp_path):
    log, keys = tmp_path / "train.log", tmp_path / "keys.json"
    log.write_bytes(b"rank 1: CUDA out of memory \x1b[2J\x1b]0;owned\x07 [red]x[/red]\r\n")
    keys.write_text(json.dumps(["module.\x1b[31mx\u202e", "module.[bold]y"]))

    ran = call(capsys, "diagnose", "--log", log, "--checkpoint", keys)

    assert ran.code == 1
    assert not any(character in ran.out for character in "\x1b\x07\u202e")
    assert "\\x1b[2J" in ran.out
    assert "[red]x[/red]" in ran.out
    assert "module.[bold]y -> [bold]y" in ran.out


def test_a_time_out_and_its_causes_are_told_together(tmp_path):
    log = tmp_path / "train.log"
    log.write_text(
        "[rank0]: step 5\n[rank1]: step 5\n[rank1]: torch.OutOfMemoryError: CUDA out of memory.\n"
        "[rank0]:[E] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9) ran for 600029 ms\n"
    )
    ran = run("diagnose", "--log", log)

    assert ran.code == 1
    assert "found: OutOfMemory: rank 1 is out of memory, 1 other is not" in ran.out
    assert "found: CollectiveTimeout: a collective timed out on rank 0" in ran.out
    assert "remedy: Begin with rank 1: the log has no time-out of it." in ran.out
