"""While the storage of a run that is followed does not answer, nothing is lost or concluded, and it is said."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from evaluator.errors import InputError, StorageUnavailable
from evaluator.formats.key_names import END_MARKER
from evaluator.storage import memory
from evaluator.storage.base import Entry
from evaluator.storage.memory import MemoryStore
from tests.s3.jobs import HEALTHY, TINY, VANISHING, Output, make_job, save_run
from tests.s3.traffic import RESET, Asked, Traffic, Wrong
from tests.saved_run import SavedRun, ScriptedClock

Upload = Callable[[Path, str], str]
VALUES = [HEALTHY, TINY, HEALTHY, HEALTHY, TINY, TINY]
FOUND = [(1, "met"), (1, "cleared"), (4, "met"), (4, "cleared")]
STALLED = "StalledTrainingRule:threshold=1200,times=0"


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


class Growing:
    """A run on S3 of which some steps are there, the others come later, and the end last."""

    def __init__(self, tmp_path: Path, upload: Upload, clock: ScriptedClock, bucket: str) -> None:
        self.out = tmp_path / "out"
        self.uri = f"s3://{bucket}/job"
        self._upload = upload
        self._whole = save_run(tmp_path / "whole", VALUES)
        self.put(0, 3)
        self._clock = clock

    def put(self, first: int, last: int, *, end: bool = False) -> None:
        """Upload these steps."""
        part = self._whole.parent / f"part {first} {last}"
        for path in self._whole.rglob("*"):
            step = path.name.split("_")[0]
            wanted = first <= int(step) < last if step.isdigit() and "collections" not in path.parts else first == 0
            if path.is_file() and (end if path.name == "training_job_end.ts" else wanted):
                target = part / path.relative_to(self._whole)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
        self._upload(part, "job")

    def rest_at(self, seconds: float) -> None:
        self._clock.at(seconds, lambda: self.put(3, len(VALUES), end=True))

    @property
    def output(self) -> Output:
        return Output(self.out)


@pytest.fixture
def growing(tmp_path: Path, upload: Upload, clock: ScriptedClock, bucket: str) -> Growing:
    return Growing(tmp_path, upload, clock, bucket)


def between(clock: ScriptedClock, first: float, last: float, *kinds: str, part: str = "", wrong: Wrong | None = None):
    """Requests of these kinds go wrong between two times; those that save the run never do."""

    def fault(asked: Asked) -> Wrong | None:
        concerned = asked.kind in (kinds or ("LIST", "GET", "HEAD")) and part in asked.key
        return (wrong or Wrong()) if concerned and first <= clock.monotonic() < last else None

    return fault


def counts(output: Output) -> tuple[int, int, int]:
    steps = output.status["job"]["steps"]
    return steps["complete"], steps["partial"], steps["unreadable"]


# what passes


@pytest.mark.parametrize("wrong", [Wrong(), RESET], ids=["503", "reset"])
def test_an_outage_of_half_an_hour_costs_nothing_and_is_noted(
    growing: Growing, clock: ScriptedClock, s3: Traffic, wrong: Wrong
):
    s3.fault = between(clock, 100, 1900, wrong=wrong)
    growing.rest_at(1000)
    result = make_job(growing.uri, growing.out, clock).run()

    assert (result.exit_code, result.status.job.ended_because) == (1, "end_marker")
    assert (growing.output.found(), counts(growing.output)) == (FOUND, (6, 0, 0))
    assert "storage of the trial: gave no answer " in growing.output.notes
    assert clock.monotonic() > 1900


@pytest.mark.parametrize("part", ["index/", "events/", "collections/"])
def test_files_that_cannot_be_read_during_an_outage_are_read_after_it(
    growing: Growing, clock: ScriptedClock, s3: Traffic, part: str
):
    s3.fault = between(clock, 0.001, 1500, "GET", part=part)
    growing.rest_at(10)
    result = make_job(growing.uri, growing.out, clock).run()

    assert (result.exit_code, growing.output.found(), counts(growing.output)) == (1, FOUND, (6, 0, 0))


def test_an_end_marker_that_cannot_be_looked_for_is_no_end_and_no_failure(
    growing: Growing, clock: ScriptedClock, s3: Traffic
):
    s3.fault = between(clock, 50, 2000, "HEAD")
    growing.rest_at(500)
    make_job(growing.uri, growing.out, clock).run()

    assert growing.output.status["job"]["ended_because"] == "end_marker"
    assert clock.monotonic() > 2000


def test_the_last_listing_is_repeated_too(growing: Growing, clock: ScriptedClock, s3: Traffic):
    """The end was seen, and then the storage failed before the last steps were taken."""
    growing.rest_at(10)
    looked, ended = [-1.0], list[float]()

    def fault(asked: Asked) -> Wrong | None:
        now = clock.monotonic()
        if asked.kind == "HEAD":
            looked.append(now)
        elif asked.kind == "LIST" and now > 20 and looked[-1] == now:
            # after the look for the marker comes a pause, or the last listing
            ended.append(now)
        return Wrong() if ended and now < ended[0] + 1000 and asked.kind == "LIST" else None

    s3.fault = fault
    result = make_job(growing.uri, growing.out, clock).run()

    assert (result.exit_code, result.status.job.ended_because) == (1, "end_marker")
    assert (growing.output.found(), counts(growing.output)) == (FOUND, (6, 0, 0))
    assert clock.monotonic() > ended[0] + 1000


def test_a_run_that_is_not_there_yet_is_waited_for_through_an_outage(
    tmp_path: Path, upload: Upload, bucket: str, clock: ScriptedClock, s3: Traffic
):
    whole = save_run(tmp_path / "whole", VALUES)
    s3.fault = between(clock, 20, 1500)
    clock.at(1000, lambda: upload(whole, "job"))
    result = make_job(f"s3://{bucket}/job", tmp_path / "out", clock).run()

    assert (result.exit_code, result.status.job.ended_because) == (1, "end_marker")


def test_without_an_outage_nothing_is_noted(growing: Growing, clock: ScriptedClock):
    growing.rest_at(100)
    make_job(growing.uri, growing.out, clock).run()

    assert (growing.output.found(), growing.output.notes) == (FOUND, "")


# what is not concluded


class AwayStore(MemoryStore):
    """A store that does not answer between two times; its files get the test's time, which those of S3 do not."""

    def __init__(self, uri: str, clock: ScriptedClock, first: float, last: float) -> None:
        super().__init__(uri, clock)
        self._test_clock, self._first, self._last = clock, first, last

    def list(self, prefix: str = "", start_after: str = "") -> list[Entry]:
        if self._first <= self._test_clock.monotonic() < self._last:
            raise StorageUnavailable(self.uri, "does not answer")
        return super().list(prefix, start_after)


def status_of_stalled(
    tmp_path: Path, clock: ScriptedClock, monkeypatch: pytest.MonkeyPatch, first: float, last: float, *saved: float
) -> str:
    """What the rule says of a run whose steps are saved at these times, with an outage between two others."""
    run = SavedRun(clock)
    run.store = AwayStore("memory://away", clock, first, last)
    monkeypatch.setitem(memory._open, "memory://away", run.store)
    run.announce(losses=["loss"])
    run.save(0)
    for step, at in enumerate(saved, 1):
        clock.at(at, partial(run.save, step))
    make_job("memory://away", tmp_path / "out", clock, STALLED, idle_timeout=2000).run()
    (rule,) = Output(tmp_path / "out").status["DebugRuleEvaluationStatuses"]
    return str(rule["RuleEvaluationStatus"])


def test_an_outage_is_no_silence_of_the_run(tmp_path: Path, clock: ScriptedClock, monkeypatch: pytest.MonkeyPatch):
    saved = [float(at) for at in range(100, 3000, 100)]
    clock.at(3000, lambda: memory._open["memory://away"].write(END_MARKER, b""))

    assert status_of_stalled(tmp_path, clock, monkeypatch, 190, 1900, *saved) == "NoIssuesFound"


def test_a_run_that_is_silent_after_an_outage_is_silent(
    tmp_path: Path, clock: ScriptedClock, monkeypatch: pytest.MonkeyPatch
):
    assert status_of_stalled(tmp_path, clock, monkeypatch, 190, 400, 100.0) == "IssuesFound"


# its ends


def test_an_outage_longer_than_the_idle_time_out_ends_the_job_and_is_named(
    growing: Growing, clock: ScriptedClock, s3: Traffic
):
    s3.fault = between(clock, 60, 90_000)
    result = make_job(growing.uri, growing.out, clock, "ExplodingTensor", idle_timeout=1800).run()
    (rule,) = growing.output.status["DebugRuleEvaluationStatuses"]

    assert (result.exit_code, result.status.job.ended_because) == (3, "failed")
    assert rule["RuleEvaluationStatus"] == "Error"
    assert rule["StatusDetails"].startswith(f"ClientError: {growing.uri}/")
    assert 1800 <= clock.monotonic() < 60 + 1800 + 2 * 330


def test_a_stop_signal_ends_the_wait(growing: Growing, clock: ScriptedClock, s3: Traffic):
    s3.fault = between(clock, 60, 90_000)
    job = make_job(growing.uri, growing.out, clock)
    clock.at(700, job.stop.request)
    result = job.run()

    assert result.status.job.ended_because == "stop_signal"
    assert (growing.output.found(), counts(growing.output)) == (FOUND[:2], (3, 0, 0))
    assert clock.monotonic() < 710


def test_a_stop_signal_ends_the_wait_for_a_file_that_cannot_be_read(
    growing: Growing, clock: ScriptedClock, s3: Traffic
):
    s3.fault = between(clock, 1, 90_000, "GET", part="events/")
    growing.rest_at(10)
    job = make_job(growing.uri, growing.out, clock)
    clock.at(700, job.stop.request)
    result = job.run()

    assert (result.status.job.ended_because, counts(growing.output)[2]) == ("stop_signal", 0)


def test_a_run_that_is_read_once_does_not_come_out_without_what_could_not_be_read(
    growing: Growing, clock: ScriptedClock, s3: Traffic
):
    s3.fault = lambda asked: (
        Wrong() if asked.kind == "GET" and asked.key.endswith("000000000002_worker_0.json") else None
    )
    result = make_job(growing.uri, growing.out, clock, "ExplodingTensor", follow=False).run()

    assert (result.exit_code, result.status.job.ended_because) == (3, "failed")


def test_storage_that_never_answered_is_rather_a_mistake(
    bucket: str, tmp_path: Path, clock: ScriptedClock, s3: Traffic
):
    s3.fault = lambda _: Wrong(403, "AccessDenied")

    with pytest.raises(InputError, match="allow s3:ListBucket"):
        make_job(f"s3://{bucket}/job", tmp_path / "out", clock, VANISHING, follow=False).run()
    assert make_job(f"s3://{bucket}/job", tmp_path / "out", clock, VANISHING).run().exit_code == 3
    assert clock.monotonic() < 60
