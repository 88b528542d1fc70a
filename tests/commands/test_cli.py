"""The command line itself: help, usage, broken pipes, and that no exception is ever taken for a verdict."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import evaluator
from evaluator.commands import commands, commands_for, rules
from tests.commands.program import HEALTHY, TRIALS, call, finish, run, small_trial, start

NAMES = [
    "run",
    "show",
    "check",
    "rules",
    "status",
    "explain",
    "new-rule",
    "test",
    "settings",
    "schema",
    "end",
    "container",
    "image-uri",
    "support",
    "check-job",
    "diagnose",
    "launch",
    "wrap",
    "watch",
]


@pytest.mark.parametrize("name", NAMES)
def test_each_command_is_found_by_the_name_of_its_module(name: str):
    assert [command.name for command in commands_for([name, "--help"])] == [name]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["base"], ["no-such-command"], ["../run"], ["Run"], ["run.x"]])
def test_what_names_no_command_gives_all_of_them(arguments: list[str]):
    assert [command.name for command in commands_for(arguments)] == [command.name for command in commands()]


def test_the_commands_are_found_in_the_order_of_the_design():
    assert [command.name for command in commands()] == NAMES


def test_version(capsys):
    ran = call(capsys, "--version")

    assert (ran.code, ran.out, ran.err) == (0, f"rule-evaluator {evaluator.__version__}\n", "")


def test_without_arguments_the_help_is_shown_and_the_exit_code_is_2(capsys):
    ran = call(capsys)

    assert (ran.code, ran.err) == (2, "")
    assert all(name in ran.out for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_help_fits_into_80_columns(capsys, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")

    ran = call(capsys, name, "--help")

    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        (["rnu"], "rule-evaluator: command 'rnu' is not known; did you mean 'run'? commands: check, "),
        (["run", "--rul", "x"], "rule-evaluator run: option '--rul' is not known; did you mean '--rule'? options: "),
        (["show"], "rule-evaluator show: TRIAL is missing; see 'rule-evaluator show --help'"),
        (["run", "--output"], "rule-evaluator run: option '--output' requires an argument; see "),
        (["run", "a", "b"], "rule-evaluator run: got unexpected extra argument(s) (b); see "),
        (["run", "a", "--until-pid", "x"], "rule-evaluator run: --until-pid: "),
        (["--verbose"], "rule-evaluator: option '--verbose' is not known; did you mean '--version'? options: "),
        (["explain", "\x1b[2J"], "explain: rule '\\x1b[2J' is not known; rules: "),
    ],
)
def test_wrong_usage_is_exit_2_in_our_form(capsys, arguments, mistake):
    ran = call(capsys, *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(mistake)
    assert len(ran.err.splitlines()) == 1


def test_wrong_usage_is_a_document_under_json(capsys):
    ran = call(capsys, "run", "--rul", "x", "--json")

    assert ran.code == 2
    assert ran.document["errors"][0]["what"] == "option '--rul' is not known"


def test_a_defect_anywhere_is_exit_4_with_the_traceback_in_a_file(capsys, monkeypatch):
    def stumble(**_):
        raise KeyError("a secret")

    monkeypatch.setattr(rules, "known_rules", stumble)
    ran = call(capsys, "rules")

    found = re.fullmatch(r"internal error: KeyError; the traceback is in (.+)\n", ran.err)
    assert (ran.code, ran.out) == (4, "")
    assert found
    path = Path(found[1])
    assert "a secret" in path.read_text()
    path.unlink()


def test_an_interrupt_is_exit_130(capsys, monkeypatch):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(rules, "known_rules", interrupt)

    assert call(capsys, "rules").code == 130


@pytest.mark.parametrize(
    "arguments", [["--help"], ["rules"], ["schema", "status"], ["show", TRIALS / "ddp_two_workers"]]
)
def test_a_reader_that_goes_away_is_no_mistake(arguments):
    process = start(*arguments)
    assert process.stdout is not None
    process.stdout.close()

    assert process.wait(timeout=60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.parametrize("option", ["--json", "--exit-zero"])
def test_a_verdict_stands_although_nobody_reads_the_table(tmp_path, option):
    trial = small_trial(tmp_path / "trial")
    process = start(
        "run", trial, "--rule", "VanishingGradient:parameter_set=sagemaker", "--output", tmp_path / "out", option
    )
    assert process.stdout is not None
    process.stdout.close()

    assert process.wait(timeout=60) == (1 if option == "--json" else 0)
    assert process.stderr is not None
    process.stderr.close()


def test_a_log_that_nobody_reads_does_not_end_a_job(tmp_path):
    trial = small_trial(tmp_path / "trial")
    process = start("run", trial, "--rule", "VanishingGradient:parameter_set=sagemaker", "--output", tmp_path / "out")
    assert process.stderr is not None
    process.stderr.close()
    process.stderr = None

    assert finish(process).code == 1
    assert (tmp_path / "out" / "VanishingGradient" / "findings.jsonl").exists()


def test_an_encoding_without_the_characters_shows_escapes():
    ran = run("explain", "übel", environment={"PYTHONIOENCODING": "ascii"})

    assert ran.code == 2
    assert "'\\xfcbel'" in ran.err


def test_the_console_script_is_the_same_program():
    script = Path(sys.executable).with_name("rule-evaluator")
    if not script.exists():
        pytest.skip("installed without scripts")

    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stdout) == (0, f"rule-evaluator {evaluator.__version__}\n")


def test_a_terminal_gets_a_live_line_that_is_gone_at_the_end_and_no_log_lines(tmp_path):
    trial = small_trial(tmp_path / "trial", [HEALTHY] * 3)
    ours, theirs = pty.openpty()

    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "evaluator",
            "run",
            trial,
            "--output",
            tmp_path / "out",
            "--rule",
            "VanishingGradient:parameter_set=sagemaker",
        ],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm"},
    )
    os.close(theirs)
    drawn = b""
    with contextlib.suppress(OSError):
        # the end of a terminal is an error
        while part := os.read(ours, 4096):
            drawn += part
    os.close(ours)
    out, _ = process.communicate(timeout=60)

    assert (process.returncode, "NoIssuesFound" in out) == (0, True)
    assert b"reading" in drawn
    assert drawn.rindex(b"\x1b[?25h") > drawn.rindex(b"\x1b[?25l")
    assert b"job_started" not in drawn
