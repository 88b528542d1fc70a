"""Running a program for a finding: no shell, the finding on standard input, never for longer than it may."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from evaluator.actions.base import NotDone, Surroundings
from evaluator.actions.command import ACTION, CommandParameters, check
from tests.actions.receivers import do
from tests.sinks.made import make_finding

HERE = Surroundings("/trials/one")


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def test_it_gets_the_finding_on_standard_input(tmp_path):
    finding = make_finding(last_healthy_step=2)
    code = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    details = do(ACTION, finding=finding, argv=python(code, str(tmp_path / "got")))

    assert details == {"exit_code": 0}
    assert json.loads((tmp_path / "got").read_text()) == finding.document()


def test_no_shell_sees_the_arguments(tmp_path):
    code = "import sys; open(sys.argv[1], 'w').write('|'.join(sys.argv[2:]))"
    do(ACTION, argv=python(code, str(tmp_path / "got"), "$HOME", "a b", ";", "*"))

    assert (tmp_path / "got").read_text() == "$HOME|a b|;|*"


def test_one_that_reads_nothing_is_no_problem():
    assert do(ACTION, argv=["true"], finding=make_finding(message="x" * 1_000_000)) == {"exit_code": 0}


def test_what_it_prints_goes_nowhere(capfd):
    do(ACTION, argv=["echo", "hello"])

    assert capfd.readouterr() == ("", "")


def test_one_that_fails_is_told_with_the_last_that_it_said():
    code = "import sys; sys.exit('first\\nno \\x1b[2J such pager')"
    with pytest.raises(NotDone) as told:
        do(ACTION, argv=python(code))

    assert str(told.value) == f"{sys.executable!r}: exit code 1: no \\x1b[2J such pager"


def test_one_that_says_much_is_cut():
    with pytest.raises(NotDone) as told:
        do(ACTION, argv=python("import sys; sys.stderr.write('x' * 10**6); sys.exit(3)"))

    assert len(str(told.value)) < 400


def test_one_that_is_killed_is_told():
    with pytest.raises(NotDone, match="ended by signal 9"):
        do(ACTION, argv=python("import os; os.kill(os.getpid(), 9)"))


def test_one_that_hangs_is_ended_with_what_it_started(tmp_path):
    started = tmp_path / "pid"
    code = (
        "import subprocess, sys, time, os\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open(sys.argv[1] + '.new', 'w').write(str(p.pid)); os.rename(sys.argv[1] + '.new', sys.argv[1])\n"
        "time.sleep(60)"
    )
    with pytest.raises(NotDone, match=r"was ended after 2 s"):
        do(ACTION, argv=python(code, str(started)), timeout=2)

    assert _ended(int(started.read_text()))


def test_one_that_leaves_something_running_holds_up_nothing():
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(5)'])"

    assert do(ACTION, argv=python(code), timeout=4) == {"exit_code": 0}


def test_one_that_cannot_be_started_is_told(tmp_path):
    path = tmp_path / "program"
    path.write_text("no program")
    path.chmod(0o755)

    with pytest.raises(NotDone, match="cannot be started: Exec format error"):
        do(ACTION, argv=[str(path)])


@pytest.mark.parametrize(
    ("given", "argv"),
    [
        (["a", "b c"], ["a", "b c"]),
        ("a 'b c' d", ["a", "b c", "d"]),
        ('["a", "b,c"]', ["a", "b,c"]),
    ],
)
def test_arguments_are_a_list_or_words(given: object, argv: list[str]):
    assert list(CommandParameters.model_validate({"argv": given}).argv) == argv


@pytest.mark.parametrize("given", ["", "'a", "[1", [], [1], {"a": 1}])
def test_what_is_neither_is_refused(given: object):
    with pytest.raises(ValueError, match="argv"):
        CommandParameters.model_validate({"argv": given})


def test_a_program_that_is_not_there_is_said_before_anything_is_found():
    assert check(CommandParameters(argv=["true"]), HERE) == ()
    ((what, _),) = check(CommandParameters(argv=["no-such-program"]), HERE)
    assert what == "there is no program 'no-such-program' that may be run"


def _ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be forgotten by whoever took it over."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return True
