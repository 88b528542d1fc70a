"""The first process of a container: nothing is left unburied, and every signal arrives, once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluator.clock import SystemClock
from tests.commands.program import log_lines, save, wait_for, writer

ROOT = Path(__file__).parents[1]
DEADLINE = 60.0

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="orphans are given to another process on Linux only")

AS_FIRST = """
import ctypes, os, signal, sys
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
from evaluator.first_process import stand_before
first = os.getpid()
stand_before()
"""
"""Makes a process that inherits orphans, as the first one of a container does."""

ORPHAN = """
orphans, done = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.read(orphans, 1)
        os._exit(0)
    os._exit(0)
os.wait()
"""
"""What daemons do: the one that stays has no parent any more."""

CHILDREN = """
def children(pid):
    states = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid:
            states.append(state)
    return states
"""


def start(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


@pytest.fixture
def ended() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes of a test, which end with it."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("code", "expected"),
    [("sys.exit(0)", 0), ("sys.exit(3)", 3), ("os._exit(130)", 130), ("os.kill(os.getpid(), signal.SIGKILL)", 137)],
)
def test_it_ends_as_the_program_does(code, expected):
    process = start(AS_FIRST + code)
    process.communicate(timeout=DEADLINE)

    assert process.returncode == expected


@linux_only
def test_an_orphan_is_buried_when_it_ends(ended):
    """The pipe tells that the orphan has ended; that its number is gone tells that somebody took note of it."""
    wait = """
print(sorted(children(first)), flush=True)
os.write(done, b"x")
while len(children(first)) > 1:
    os.sched_yield()
print(children(first), flush=True)
"""
    process = start(AS_FIRST + CHILDREN + ORPHAN + wait)
    ended.append(process)
    out, _ = process.communicate(timeout=DEADLINE)

    before, after = out.splitlines()
    assert (before.count("'"), after.count("'"), process.returncode) == (4, 2, 0)


def test_the_program_waits_for_its_own_children_undisturbed():
    code = "import subprocess; sys.exit(subprocess.run([sys.executable, '-c', 'raise SystemExit(7)']).returncode)"
    process = start(AS_FIRST + code)
    process.communicate(timeout=DEADLINE)

    assert process.returncode == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_is_passed_on_once(ended, number):
    code = f"""
came = []
signal.signal({int(number)}, lambda *_: came.append(1))
print("ready", flush=True)
while not came:
    signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(came), os.getsid(0) == os.getpid(), flush=True)
"""
    process = start(AS_FIRST + code)
    ended.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    process.send_signal(number)

    out, _ = process.communicate(timeout=DEADLINE)
    assert (out, process.returncode) == ("1 True\n", 0)


def test_a_program_that_dies_of_a_signal_is_told_as_shells_do(ended):
    process = start(AS_FIRST + "print('ready', flush=True)\nsignal.pause()")
    ended.append(process)
    assert process.stdout is not None
    process.stdout.readline()

    process.terminate()

    process.communicate(timeout=DEADLINE)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_parent_that_ignores_its_children_changes_nothing():
    code = "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n" + AS_FIRST + "sys.exit(5)"
    process = start(code)
    process.communicate(timeout=DEADLINE)

    assert process.returncode == 5


DOUBLE_FORK = """
import os

from smdebug.rules.rule import Rule


class Forks(Rule):
    def __init__(self, base_trial, where):
        super().__init__(base_trial)
        self.where = where

    def invoke_at_step(self, step):
        if os.fork() == 0:
            if os.fork() == 0:
                os.setsid()
                with open(self.where + ".tmp", "w") as file:
                    file.write(str(os.getpid()))
                os.rename(self.where + ".tmp", self.where)
                with open(self.where + ".end") as end:
                    end.read()
                os._exit(0)
            os._exit(0)
        os.wait()
        return True
"""


@linux_only
def test_what_a_rule_leaves_behind_is_buried_and_the_job_goes_on(tmp_path, ended):
    (tmp_path / "forks.py").write_text(DOUBLE_FORK)
    os.mkfifo(tmp_path / "orphan.end")
    with writer(tmp_path / "trial") as one:
        save(one, 0)
        rule = f"{tmp_path}/forks.py:Forks:where={tmp_path}/orphan,on_finding=continue"
        program = "from evaluator.cli import run_command_line\nsys.exit(run_command_line(sys.argv[1:]))"
        options = ["--set", "poll_max=1", "--output", str(tmp_path / "out"), "--rule-file", rule]
        process = subprocess.Popen(
            [sys.executable, "-c", AS_FIRST + program, "run", str(tmp_path / "trial"), "--follow", *options],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        ended.append(process)
        lines = log_lines(process)
        wait_for(lines, "condition_met", step=0)
        # opening waits for the orphan, which then ends as its pipe does
        (tmp_path / "orphan.end").open("w").close()
        orphan = Path("/proc") / (tmp_path / "orphan").read_text()
        wait_until(lambda: not orphan.exists())

        process.terminate()

        wait_for(lines, "job_ended", ended_because="stop_signal")
        process.communicate(timeout=DEADLINE)
    # the finding counts
    assert process.returncode == 1


def wait_until(true: Callable[[], bool]) -> None:
    """Look again and again; nothing tells that a process was buried."""
    clock = SystemClock()
    until = clock.monotonic() + DEADLINE
    while not true():
        assert clock.monotonic() < until, "it never came"
        os.sched_yield()


NAMESPACE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]


def can_be_first() -> bool:
    """Whether this system lets a test start a process as the first one of a container."""
    if shutil.which(NAMESPACE[0]) is None:
        return False
    made = subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True)
    return made.returncode == 0


def test_the_program_itself_is_first_in_a_container_and_drains_at_sigterm(tmp_path, ended):
    """`docker stop` sends SIGTERM to the first process only; one without this would be killed 10 s later."""
    if not can_be_first():
        pytest.skip("no namespaces here")
    command = [sys.executable, "-m", "evaluator", "run", str(tmp_path / "later"), "--follow", "--json"]
    process = subprocess.Popen(
        [*NAMESPACE, *command, "--output", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    ended.append(process)
    assert process.stderr is not None
    assert json.loads(process.stderr.readline())["event"] == "job_started"
    (first,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()

    os.kill(int(first), signal.SIGTERM)

    out, _ = process.communicate(timeout=DEADLINE)
    job = json.loads(out)["job"]
    assert job["ended_because"] == "stop_signal"
    # the number of the process that did the work is in it
    assert not job["id"].startswith("1-")
    assert process.returncode == 0
