"""Workers that are lost, schedulers that go away: the work is done again, or by the job, and nothing waits for ever."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluator.clock import SystemClock
from evaluator.config.load import Arguments, load
from evaluator.job import Job
from tests.engine.dask_jobs import Came, at_step, cluster, faulty_run, kill, processes, run

STEPS = 120
RULES = ("NonFinite", "VanishingGradient", "UnchangedTensor", "WeightUpdateRatio", "WorkersDiverge", "AllZero")
NOBODY = re.compile(r"dask: (\d+) steps were read by the job itself: no worker was there( for 1 s)?$")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty_run(tmp_path_factory.mktemp("faulty") / "run", steps=STEPS, elements=8000)


@pytest.fixture(scope="module")
def local(faulty: Path, tmp_path_factory: pytest.TempPathFactory) -> Came:
    return judge(faulty, tmp_path_factory.mktemp("local"))


def judge(trial: Path, output: Path, scheduler: str | None = None, **given: Any) -> Came:
    """A job whose tasks hold a few steps each, so that some are on their way at any time."""
    return run(trial, output, scheduler, rules=RULES, **given)


def read_alone(came: Came) -> int:
    """How many steps the job says that it read because nobody else was there."""
    return sum(int(found[1]) for note in came.notes if (found := NOBODY.match(note)))


class Program:
    """Dask's own program as a process, which nobody starts again."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, pattern: str) -> str:
        """What it says of this; what it says after that is let go."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(pattern, line):
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return found[1]
        pytest.fail(f"{self.process.args!r} ended without saying {pattern}")

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.wait(timeout=30)
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def programs(workers: int) -> Iterator[tuple[str, Program, list[Program]]]:
    """Address and process of a scheduler, and workers."""
    scheduler = Program(
        "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"
    )
    address = scheduler.until(r"Scheduler at: +(tcp://\S+)")
    started = [worker(address) for _ in range(workers)]
    try:
        yield address, scheduler, started
    finally:
        for one in (scheduler, *started):
            one.end()


def worker(address: str) -> Program:
    found = Program("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    found.until(r"(Registered to)")
    return found


def test_the_tasks_of_a_lost_worker_are_done_again(faulty, local, tmp_path):
    with cluster() as two:
        spread = judge(faulty, tmp_path, two.scheduler_address, watch=at_step(30, lambda: kill(processes(two)[0])))

    assert spread == local


def test_workers_that_are_all_lost_and_come_back_go_on(faulty, local, tmp_path):
    with cluster() as two:
        spread = judge(faulty, tmp_path, two.scheduler_address, watch=at_step(30, lambda: kill(*processes(two))))

    assert spread == local


def test_without_workers_the_job_goes_on_alone_after_a_while(faulty, local, tmp_path):
    with programs(2) as (address, _, workers):

        def lose() -> None:
            for one in workers:
                one.end()

        spread = judge(faulty, tmp_path, address, settings=["worker_timeout=1"], watch=at_step(30, lose))

    assert spread.verdict == local.verdict
    assert [note for note in spread.notes if not NOBODY.match(note)] == []
    assert 0 < read_alone(spread) < STEPS


def test_a_job_to_which_no_worker_ever_comes_reads_alone(faulty, local, tmp_path):
    with programs(0) as (address, _, _):
        spread = judge(faulty, tmp_path, address, settings=["worker_timeout=1"])

    assert spread.verdict == local.verdict
    assert [note for note in spread.notes if not NOBODY.match(note)] == []
    assert read_alone(spread) == STEPS


def test_workers_that_come_late_are_waited_for(faulty, local, tmp_path):
    with programs(0) as (address, _, workers):
        late = threading.Thread(target=lambda: workers.append(worker(address)))
        spread = judge(faulty, tmp_path, address, made=lambda _: late.start())
        late.join()

    assert spread == local


def test_a_scheduler_that_goes_away_leaves_the_job_to_itself(faulty, local, tmp_path):
    with programs(1) as (address, scheduler, _):
        spread = judge(faulty, tmp_path, address, settings=["worker_timeout=1"], watch=at_step(30, scheduler.end))

    assert spread.verdict == local.verdict
    assert spread.notes
    assert all(note.startswith("dask: ") for note in spread.notes)


def test_a_worker_that_hangs_is_given_up(faulty, local, tmp_path, monkeypatch):
    monkeypatch.setattr("evaluator.engine.distributed.connection.LONGEST_TASK", 2.0)
    with programs(1) as (address, _, (one,)):
        spread = judge(faulty, tmp_path, address, watch=at_step(30, lambda: os.kill(one.process.pid, signal.SIGSTOP)))

    assert spread.verdict == local.verdict
    assert any("no answer came within 2 s" in note for note in spread.notes)


def test_a_job_that_is_stopped_does_not_wait_for_workers(faulty, tmp_path):
    with programs(0) as (address, _, _):
        given = [f"scheduler={address}", "engine=dask", "worker_timeout=3600", "stop_grace=0"]
        arguments = Arguments(trial=str(faulty), output=str(tmp_path), set=given)
        job = Job(load(arguments, {}), SystemClock())
        threading.Timer(1, job.stop.request).start()

        status = job.run().status

    assert status.job.ended_because == "stop_signal"
