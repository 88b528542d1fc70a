"""The life of a job: it shows that it lives, hears from elsewhere that the run is over, and stays where it should."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.config.load import Arguments, load
from evaluator.config.rule_stop import FILE_VARIABLE, GRACE_VARIABLE
from evaluator.job import Job, Result
from evaluator.modes import Mode
from evaluator.outside import Outside
from evaluator.sagemaker.training_job import NoAnswer, TrainingJob
from evaluator.writer import TrialWriter
from tests.saved_run import ScriptedClock

RULE = "VanishingGradient:parameter_set=sagemaker"

STALE = 300.0
"""Seconds after which who watches a status file may think that the job is dead."""


class Watched(ScriptedClock):
    """A clock that keeps how old the status was at the end of each wait."""

    def __init__(self) -> None:
        super().__init__()
        self.path: Path | None = None
        self.ages: list[float] = []
        self._written, self._since = "", self.monotonic()

    def wait(self, seconds: float) -> bool:
        woken = super().wait(seconds)
        assert self.path is not None
        written = json.loads(self.path.read_bytes())["job"]["updated_at"] if self.path.exists() else ""
        # the file has the time of when it was written, which is before this wait
        if written != self._written:
            self._written, self._since = written, self.monotonic() - seconds
        self.ages.append(self.monotonic() - self._since)
        return woken


class Lived:
    """A job over a folder, and what its status file said whenever it waited."""

    def __init__(self, folder: Path, clock: Watched, *, environment: Mapping[str, str] | None = None, **given: Any):
        self.trial, self.output = folder / "trial", folder / "out"
        self.clock = clock
        after_end = given.pop("after_end", "exit")
        arguments = Arguments(
            trial=str(self.trial), output=str(self.output), follow=True, rules=[RULE],
            after_end=after_end, set=[f"{name}={value}" for name, value in given.items()],
        )  # fmt: skip
        self.config = load(arguments, environment or {})
        self.writer: TrialWriter | None = None
        clock.path = self.output / "status.json"

    def save(self, step: int, value: float = 1e-3) -> None:
        if self.writer is None:
            self.writer = TrialWriter(self.trial, collections={"gradients": ["g"]})
        self.writer.save(step, {"g": np.full(3, value, np.float32)}, mode=Mode.TRAIN, wall_time=0.0)

    def job(self, describe: Callable[[str], str] | None = None) -> Job:
        if describe is None:
            return Job(self.config, self.clock)
        training_job = TrainingJob("job-1", self.clock, describe, aside=lambda work: work())
        return Job(self.config, self.clock, outside=Outside(training_job=training_job))

    def run(self, describe: Callable[[str], str] | None = None) -> Result:
        return self.job(describe).run()

    @property
    def status(self) -> Any:
        return json.loads((self.output / "status.json").read_bytes())


@pytest.fixture
def clock() -> Watched:
    return Watched()


# signs of life


@pytest.mark.parametrize("poll_max", [30, 47, 700], ids="polls every {} s".format)
def test_the_status_is_never_older_than_300_seconds_while_nothing_comes(tmp_path, clock, poll_max):
    lived = Lived(tmp_path, clock, poll_max=poll_max)
    lived.save(0)
    lived.run()

    assert lived.status["job"]["ended_because"] == "idle_timeout"
    assert 3600 <= clock.monotonic() <= 3600 + 2 * poll_max
    assert STALE - 100 <= max(clock.ages) <= STALE


def test_the_status_is_never_older_than_300_seconds_while_a_trial_is_waited_for(tmp_path, clock):
    lived = Lived(tmp_path, clock)
    result = lived.run()

    assert (result.exit_code, lived.status["job"]["ended_because"]) == (3, "start_timeout")
    assert STALE - 100 <= max(clock.ages) <= STALE


# the training job


def test_the_end_of_the_training_job_ends_the_run_when_what_was_saved_is_taken(tmp_path, clock):
    lived = Lived(tmp_path, clock)
    asked: list[float] = []

    def describe(_: str) -> str:
        asked.append(clock.monotonic())
        return "Completed" if clock.monotonic() >= 1000 else "InProgress"

    lived.save(0)
    clock.at(1020, lambda: lived.save(1))
    result = lived.run(describe)

    assert (result.status.job.ended_because, result.status.job.steps.complete) == ("training_job_status", 2)
    # after the last step the grace of 30 s, and then at most two looks
    assert 1050 <= clock.monotonic() <= 1020 + 30 + 2 * 30
    assert "training job 'job-1': Completed" in result.status.job.notes
    assert min(np.diff(asked)) >= 30
    assert [rule.RuleEvaluationStatus for rule in result.status.rules] == ["NoIssuesFound"]


@pytest.mark.parametrize("status", ["InProgress", "Stopping", "Deleting", "Unheard"])
def test_while_the_training_job_is_not_over_the_idle_timeout_holds(tmp_path, clock, status):
    lived = Lived(tmp_path, clock, idle_timeout=600)
    lived.save(0)

    assert lived.run(lambda _: status).status.job.ended_because == "idle_timeout"


def test_a_training_job_that_ended_before_it_saved_anything_ends_the_wait(tmp_path, clock):
    result = Lived(tmp_path, clock).run(lambda _: "Failed")

    assert (result.status.job.ended_because, result.exit_code) == ("training_job_status", 3)
    assert 30 <= clock.monotonic() <= 32


def test_questions_that_are_not_answered_end_nothing_and_are_one_note(tmp_path, clock):
    def refuse(_: str) -> str:
        raise NoAnswer("its status may not be asked for", "permission sagemaker:DescribeTrainingJob")

    lived = Lived(tmp_path, clock, idle_timeout=2000)
    lived.save(0)
    result = lived.run(refuse)

    (note,) = [note for note in result.status.job.notes if "training job" in note]
    assert result.status.job.ended_because == "idle_timeout"
    assert note.startswith("training job 'job-1': its status may not be asked for; permission sagemaker:Describe")
    # 0, 60, 180, 420, 720, ... and never more often than the longest pause later
    assert note.endswith(" (9 of 9 times its status could not be asked for)")


# the signal for rules


def signal_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "trial" / "signals").mkdir(parents=True, exist_ok=True)
    (tmp_path / "trial" / "signals" / "stop").write_text(content)


STOP = {FILE_VARIABLE: "signals/stop"}


@pytest.mark.parametrize(("grace", "seconds"), [({}, 60), ({GRACE_VARIABLE: "200"}, 200)])
def test_the_stop_file_ends_the_job_after_the_grace_and_what_is_saved_until_then_counts(
    tmp_path, clock, grace, seconds
):
    lived = Lived(tmp_path, clock, environment={**STOP, **grace})
    lived.save(0)
    clock.at(100, lambda: signal_file(tmp_path, f"{clock.now()}\n"))
    clock.at(100 + seconds - 5, lambda: lived.save(1))
    result = lived.run()

    assert (result.status.job.ended_because, result.status.job.steps.complete) == ("rule_stop_signal", 2)
    assert 100 + seconds < clock.monotonic() <= 100 + seconds + 30
    assert [rule.RuleEvaluationStatus for rule in result.status.rules] == ["NoIssuesFound"]


def test_the_stop_file_ends_the_wait_for_a_trial_too(tmp_path, clock):
    lived = Lived(tmp_path, clock, environment=STOP)
    clock.at(100, lambda: signal_file(tmp_path, f"{clock.now()}"))
    result = lived.run()

    assert (result.status.job.ended_because, result.exit_code) == ("rule_stop_signal", 3)
    assert 160 < clock.monotonic() <= 162


# after the end


def ended(tmp_path: Path, clock: Watched, after_end: str, value: float) -> tuple[Lived, Job, Result]:
    lived = Lived(tmp_path, clock, after_end=after_end)
    lived.save(0, value)
    assert lived.writer is not None
    lived.writer.close()
    job = lived.job()
    return lived, job, job.run()


def test_a_job_that_stays_has_a_final_status_that_is_not_written_again(tmp_path, clock):
    lived, job, result = ended(tmp_path, clock, "wait", 1e-9)
    before = (lived.output / "status.json").stat(), lived.status
    at = clock.monotonic()
    clock.at(at + 50_000, job.stop.request)
    job.stay()

    after = (lived.output / "status.json").stat(), lived.status
    assert (before[0].st_mtime_ns, before[0].st_ino, before[1]) == (after[0].st_mtime_ns, after[0].st_ino, after[1])
    assert (result.exit_code, after[1]["job"]["ended_because"]) == (1, "all_rules_ended")
    assert clock.monotonic() == at + 50_000


def test_a_job_that_stays_waits_in_few_long_waits(tmp_path, clock):
    _, job, _ = ended(tmp_path, clock, "wait", 1e-3)
    del clock.waits[:]
    clock.at(clock.monotonic() + 50_000, job.stop.request)
    job.stay()

    assert len(clock.waits) < 20


def test_a_job_that_stays_holds_its_output_folder_no_longer(tmp_path, clock):
    lived, job, _ = ended(tmp_path, clock, "wait", 1e-3)
    free = []

    def take_lock() -> None:
        with (lived.output / ".lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free.append(True)
        job.stop.request()

    clock.at(clock.monotonic() + 10, take_lock)
    job.stay()

    assert free == [True]


def test_without_being_asked_no_job_stays(tmp_path, clock):
    _, job, _ = ended(tmp_path, clock, "exit", 1e-3)
    del clock.waits[:]
    job.stay()

    assert clock.waits == []


def test_a_job_that_a_signal_ended_does_not_wait_for_another_one(tmp_path, clock):
    lived = Lived(tmp_path, clock, after_end="wait")
    lived.save(0)
    job = lived.job()
    clock.at(100, job.stop.request)
    result = job.run()
    job.stay()

    assert (result.status.job.ended_because, clock.monotonic()) == ("stop_signal", 100)
