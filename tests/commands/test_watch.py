"""watch, as it is started: many trials, their lines, and the exit code of the worst."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.commands.program import (
    FAST,
    HEALTHY,
    TINY,
    call,
    check_outputs,
    findings,
    finish,
    log_lines,
    run,
    save,
    small_trial,
    start,
    wait_for,
    writer,
)

ANY = pytest.CaptureFixture[str]
RULE = ("--rule", "VanishingGradient:parameter_set=sagemaker")
QUICK = (*(argument for one in FAST for argument in ("--set", one)), "--look-every", "0.1")


def many(tmp_path: Path, **last: float) -> str:
    """Finished trials, each with the value of its last step; gives the pattern for them."""
    for name, value in last.items():
        small_trial(tmp_path / "runs" / name / "debug-output", [HEALTHY, value])
    return f"{tmp_path}/runs/*/debug-output"


def test_each_trial_is_a_line_when_it_ends_and_a_row_at_the_end(tmp_path: Path):
    pattern = many(tmp_path, good=HEALTHY, bad=TINY)
    (tmp_path / "runs" / "other").mkdir()
    ran = run("watch", pattern, *RULE, *QUICK, "--until-idle", "--output", tmp_path / "out")

    assert ran.code == 1, ran.err
    lines = ran.out.splitlines()
    assert "good: ended: 2 steps; 0 findings (end_marker)" in lines
    assert "bad: ended: 2 steps; 1 finding, first VanishingGradient at step 1 (all_rules_ended)" in lines
    assert lines[-2:] == ["2 outputs: 2 ended", "no trial (yet): other (1)"]
    assert check_outputs(tmp_path / "out" / "good")["job"]["ended_because"] == "end_marker"
    assert [line["step"] for line in findings(tmp_path / "out" / "bad")][:1] == [1]
    logged = [json.loads(line) for line in ran.err.splitlines()]
    assert {line["trial"] for line in logged if line["event"] == "condition_met"} == {
        f"{tmp_path}/runs/bad/debug-output"
    }


@pytest.mark.parametrize(("more", "code"), [([], 1), (["--exit-zero"], 0), (["--fail-on", "critical"], 0)])
def test_json_is_one_document_and_the_exit_code_that_of_the_worst(tmp_path: Path, more: list[str], code: int):
    pattern = many(tmp_path, good=HEALTHY, bad=TINY)
    ran = run("watch", pattern, *RULE, *QUICK, "--until-idle", "--json", *more, "--output", tmp_path / "out")

    assert ran.code == code, ran.err
    assert ran.document["exit_code"] == code
    assert {one["name"]: one["findings"] for one in ran.document["outputs"]} == {"good": 0, "bad": 1}


def test_a_second_run_evaluates_nothing_again_and_says_the_same(tmp_path: Path):
    pattern = many(tmp_path, bad=TINY)
    given = ("watch", pattern, *RULE, *QUICK, "--until-idle", "--output", tmp_path / "out")
    first = run(*given)
    written = (tmp_path / "out" / "bad" / "status.json").stat().st_mtime_ns
    second = run(*given)

    assert (first.code, second.code) == (1, 1)
    assert "bad: ended before: 2 steps; 1 finding" in second.out
    assert (tmp_path / "out" / "bad" / "status.json").stat().st_mtime_ns == written


def test_a_stop_signal_drains_all_trials(tmp_path: Path):
    writers = {name: writer(tmp_path / "runs" / name) for name in ("a", "b")}
    for one in writers.values():
        save(one, 0, TINY)
    slow = ("--set", "poll_min=600", "--set", "poll_max=600", "--set", "late_grace=0")
    rule = ("--rule", "VanishingGradient:parameter_set=sagemaker,on_finding=continue")
    process = start("watch", f"{tmp_path}/runs/*", *rule, *slow, "--output", tmp_path / "out")
    lines = log_lines(process)
    for _ in writers:
        wait_for(lines, "condition_met", step=0)
    save(writers["a"], 1, TINY)
    save(writers["b"], 1, HEALTHY)
    process.send_signal(signal.SIGTERM)
    ran = finish(process)

    assert ran.code == 1
    assert [check_outputs(tmp_path / "out" / name)["job"]["steps"]["complete"] for name in "ab"] == [2, 2]
    assert ran.out.splitlines()[-1] == "2 outputs: 2 ended"
    watched = json.loads((tmp_path / "out" / "watch.json").read_bytes())
    assert watched["trials"] == {"ended": 2}


def test_a_second_signal_ends_the_process(tmp_path: Path):
    raises = tmp_path / "slow.py"
    raises.write_text(
        "import time\nfrom smdebug.rules.rule import Rule\n\n\n"
        "class Slow(Rule):\n    def invoke_at_step(self, step):\n        time.sleep(50)\n"
    )
    pattern = many(tmp_path, a=HEALTHY)
    process = start("watch", pattern, "--rule-file", f"{raises}:Slow", *QUICK, "--output", tmp_path / "out")
    lines = log_lines(process)
    wait_for(lines, "trial_found")
    process.send_signal(signal.SIGTERM)
    wait_for(lines, "signal_received")
    process.send_signal(signal.SIGTERM)

    assert finish(process).code == 130


@pytest.mark.parametrize(
    ("arguments", "mistakes"),
    [
        (["--max-trials", "0"], ["--max-trials: 0 does not fit; expected a number above 0"]),
        (["--look-every", "nan"], ["--look-every: nan does not fit; expected a number above 0"]),
        (
            ["--max-requests-per-second", "-1", "--rule", "Vanishing"],
            ["--rule: rule 'Vanishing' is not known", "--max-requests-per-second: -1 does not fit"],
        ),
        (["--set", "training_job_name=x"], ["training_job_name: is one job's, and many are watched; leave it out"]),
        (
            ["--set", "engine=dask", "--set", "scheduler=tcp://127.0.0.1:1"],
            ["engine: 'dask' is for one trial; local, or use run"],
        ),
        (["--max-trials", "1000000000"], ["--max-trials: 1000000000 trials need more open files than the "]),
    ],
)
def test_all_mistakes_are_said_at_once(tmp_path: Path, capsys: ANY, arguments: list[str], mistakes: list[str]):
    ran = call(capsys, "watch", f"{tmp_path}/*", *arguments)
    lines = ran.err.splitlines()

    assert ran.code == 2
    assert len(lines) == len(mistakes)
    assert all(any(line.startswith(mistake) for line in lines) for mistake in mistakes)


@pytest.mark.parametrize("folders", [[], ["runs"], ["runs/a"]])
def test_nothing_to_evaluate_is_wrong_input_where_nobody_waits_for_more(tmp_path: Path, folders: list[str]):
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    ran = run("watch", f"{tmp_path}/runs/*", "--until-idle", "--output", tmp_path / "out")

    assert ran.code == 2
    assert f"{tmp_path}/runs/*: " in ran.lines[-1]
