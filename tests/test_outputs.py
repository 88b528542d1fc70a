"""Outputs in a folder and on S3 hold the same, and one that fails costs only what cannot be written there."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.errors import InputError, OutputError
from evaluator.output_lock import REFRESH, STALE
from evaluator.sinks.fan_out import LONGEST_LOSS
from evaluator.storage import open_store
from evaluator.storage._s3_connection import make_client
from tests.s3.jobs import EXPLODING, HEALTHY, TINY, VANISHING, Output, make_job, save_run
from tests.s3.traffic import CUT, RESET, Asked, Traffic, Wrong
from tests.saved_run import ScriptedClock

Put = Callable[..., None]
VALUES = [HEALTHY, TINY, HEALTHY, float("inf"), TINY, TINY]
FOUND = [(1, "met"), (1, "cleared"), (4, "met"), (4, "cleared")]
EXPLODED = [(3, "met"), (3, "cleared")]
RAISES = """
from smdebug.rules.rule import Rule

class Raises(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)

    def invoke_at_step(self, step):
        print("looked at", step)
        raise RuntimeError("on purpose")
"""


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """A whole run: the gradient vanishes twice, and explodes once."""
    return save_run(tmp_path / "trial", VALUES)


@pytest.fixture
def out(bucket: str) -> str:
    return f"s3://{bucket}/some/out"


@pytest.fixture(params=["folder", "s3"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An output of each kind."""
    return str(tmp_path / "out") if request.param == "folder" else f"s3://{request.getfixturevalue('bucket')}/out"


def without_times(lines: list[Any]) -> list[Any]:
    return [{key: value for key, value in line.items() if key not in ("recorded_at", "labels")} for line in lines]


def held(status: Any) -> dict[str, Any]:
    """A status without times, requests and what stands for the job itself."""
    job = {key: status["job"][key] for key in ("ended_because", "steps", "workers", "notes")}
    rules = [
        {key: value for key, value in rule.items() if key not in ("LastModifiedTime", "Finding")}
        for rule in status["DebugRuleEvaluationStatuses"]
    ]
    return {"job": job, "rules": rules}


def on(kind: str, key: str, wrong: Wrong) -> Callable[[Asked], Wrong | None]:
    """Requests of a kind for a key go wrong."""
    return lambda asked: wrong if asked.kind == kind and asked.key.endswith(key) else None


# the same in both


@pytest.mark.parametrize("follow", [True, False])
def test_an_output_on_s3_holds_what_one_in_a_folder_holds(
    tmp_path: Path, trial: Path, out: str, clock: ScriptedClock, follow: bool
):
    codes = [
        make_job(trial, output, ScriptedClock(), VANISHING, EXPLODING, follow=follow).run().exit_code
        for output in (tmp_path / "out", out)
    ]
    local, remote = Output(tmp_path / "out"), Output(out)

    assert codes == [1, 1]
    assert (remote.keys, held(remote.status)) == (local.keys, held(local.status))
    assert remote.found() == FOUND
    assert remote.found("ExplodingTensor") == EXPLODED
    assert without_times(remote.lines()) == without_times(local.lines())


@pytest.mark.real_clock
def test_what_rules_leave_is_there_in_both(tmp_path: Path, trial: Path, anywhere: str):
    """A traceback, a printed text, and a report."""
    from evaluator.clock import SystemClock  # noqa: PLC0415 - processes take the machine's time
    from evaluator.config.load import Arguments, load  # noqa: PLC0415
    from evaluator.job import Job  # noqa: PLC0415

    (tmp_path / "mine.py").write_text(RAISES)
    arguments = Arguments(trial=str(trial), output=anywhere, rule_files=[f"{tmp_path / 'mine.py'}:Raises"])
    Job(load(arguments, {}), SystemClock()).run()
    output = Output(anywhere)

    assert output.keys == ["Raises/output.txt", "Raises/traceback.txt", "status.json"]
    assert output.store.read("Raises/traceback.txt").rstrip().endswith(b"on purpose")
    assert b"looked at 0" in output.store.read("Raises/output.txt")
    assert "Raises/traceback.txt" in output.status["DebugRuleEvaluationStatuses"][0]["StatusDetails"]


def test_what_is_written_is_counted_and_has_a_content_type(trial: Path, out: str, s3: Traffic, clock: ScriptedClock):
    make_job(trial, out, clock).run()
    puts = s3.counts["PUT"]
    bucket, _, prefix = out.removeprefix("s3://").partition("/")
    client = make_client("test")
    kinds = {
        name: client.head_object(Bucket=bucket, Key=f"{prefix}/{name}")["ContentType"]
        for name in ("status.json", "VanishingGradient/findings.jsonl")
    }

    # the last status does not know of its own request, nor of the lock that is given back after it
    assert Output(out).status["job"]["requests"]["put"] == puts - 2
    assert kinds == {"status.json": "application/json", "VanishingGradient/findings.jsonl": "application/jsonl"}


def test_an_output_at_the_root_of_a_bucket(trial: Path, bucket: str, clock: ScriptedClock):
    make_job(trial, f"s3://{bucket}", clock).run()

    assert Output(f"s3://{bucket}/").keys == ["VanishingGradient/findings.jsonl", "status.json"]


def test_an_idle_job_writes_little(tmp_path: Path, out: str, s3: Traffic, clock: ScriptedClock):
    """Nothing new for a day: a status every five minutes, and the lock every minute."""
    trial = save_run(tmp_path / "trial", VALUES, end=False)
    make_job(trial, out, clock, idle_timeout=86_400).run()

    assert clock.monotonic() >= 86_400
    assert s3.counts["PUT"] <= 86_400 / 250 + 86_400 / REFRESH + 30
    assert sum(asked.kind != "PUT" for asked in s3.asked) <= 86_400 / REFRESH + 30


# former jobs


def unfinish(output: Output) -> None:
    """Make the status that of a job which was killed."""
    output.store.write(
        "status.json", output.store.read("status.json").replace(b'"ended_at": "', b'"ended_at": null, "x": "')
    )


def test_an_unfinished_job_is_resumed_and_nothing_written_twice(trial: Path, anywhere: str):
    make_job(trial, anywhere, ScriptedClock()).run()
    output = Output(anywhere)
    lines = output.store.read("VanishingGradient/findings.jsonl")
    unfinish(output)
    kept = b"".join(lines.splitlines(keepends=True)[:3])
    output.store.write("VanishingGradient/findings.jsonl", kept + lines.splitlines(keepends=True)[3][:40])
    make_job(trial, anywhere, ScriptedClock()).run()

    assert output.found() == FOUND
    assert output.store.read("VanishingGradient/findings.jsonl").startswith(kept)
    assert output.status["job"]["ended_at"] is not None


def test_an_ended_job_is_started_over_and_only_what_is_ours_is_removed(trial: Path, anywhere: str):
    make_job(trial, anywhere, ScriptedClock(), VANISHING, EXPLODING).run()
    output = Output(anywhere)
    for key in ("notes.txt", "ExplodingTensor/mine.txt", "ExplodingTensor/traceback.txt", "other/findings.jsonl"):
        output.store.write(key, b"mine")
    make_job(trial, anywhere, ScriptedClock(), VANISHING).run()

    assert output.keys == [
        *("ExplodingTensor/mine.txt", "ExplodingTensor/traceback.txt", "VanishingGradient/findings.jsonl"),
        *("notes.txt", "other/findings.jsonl", "status.json"),
    ]
    assert output.found() == FOUND


def test_an_unfinished_job_with_other_rules_is_refused_or_begun_anew(trial: Path, anywhere: str):
    make_job(trial, anywhere, ScriptedClock()).run()
    output = Output(anywhere)
    unfinish(output)

    with pytest.raises(InputError, match="holds an unfinished job with other rules or parameters; name another"):
        make_job(trial, anywhere, ScriptedClock(), EXPLODING).run()
    make_job(trial, anywhere, ScriptedClock(), EXPLODING, restart=True).run()
    assert output.keys == ["ExplodingTensor/findings.jsonl", "status.json"]


@pytest.mark.parametrize("key", ["status.json", "VanishingGradient/findings.jsonl"])
def test_somebody_else_s_file_is_refused_and_left(trial: Path, anywhere: str, key: str):
    open_store(anywhere).write(key, b"theirs")

    with pytest.raises(
        OutputError, match=f"{key}: was not written by rule-evaluator; an output folder without a {key}"
    ):
        make_job(trial, anywhere, ScriptedClock()).run()
    assert open_store(anywhere).read(key) == b"theirs"


@pytest.mark.parametrize("wrong", [Wrong(), Wrong(403, "AccessDenied")], ids=["outage", "refused"])
def test_a_former_status_that_cannot_be_read_is_not_taken_for_none(trial: Path, out: str, s3: Traffic, wrong: Wrong):
    make_job(trial, out, ScriptedClock()).run()
    unfinish(Output(out))
    s3.fault = on("GET", "status.json", wrong)

    with pytest.raises(OutputError, match=r"status.json: (S3 did not answer|may not be read)"):
        make_job(trial, out, ScriptedClock()).run()
    s3.fault = lambda _: None
    assert Output(out).found() == FOUND


# what passes


@pytest.mark.parametrize("wrong", [Wrong(), RESET, CUT], ids=["503", "reset", "cut"])
def test_every_third_request_may_go_wrong(trial: Path, out: str, s3: Traffic, clock: ScriptedClock, wrong: Wrong):
    s3.fault = lambda asked: wrong if asked.number % 3 == 0 else None
    result = make_job(trial, out, clock, VANISHING, EXPLODING).run()
    s3.fault = lambda _: None
    output = Output(out)

    assert (result.exit_code, output.found(), output.found("ExplodingTensor")) == (1, FOUND, EXPLODED)
    assert output.status["job"]["requests"]["retries"] > 0
    assert output.notes == ""


@pytest.mark.parametrize("first", [0, 5, 40])
def test_an_outage_of_a_minute_passes_at_any_time(
    tmp_path: Path, out: str, s3: Traffic, clock: ScriptedClock, first: float
):
    trial = save_run(tmp_path / "trial", VALUES[:3], end=False)
    clock.at(10, lambda: save_run(trial, VALUES[3:], first=3))
    s3.fault = lambda _: Wrong() if first <= clock.monotonic() < first + 60 else None
    result = make_job(trial, out, clock).run()

    assert (result.exit_code, Output(out).found()) == (1, FOUND)
    assert Output(out).status["job"]["ended_because"] == "end_marker"


def test_the_trial_is_evaluated_while_the_output_does_not_answer(
    tmp_path: Path, out: str, s3: Traffic, clock: ScriptedClock
):
    """Ten minutes without the output: the status is late, and then tells all, with the failure in its notes."""
    trial = save_run(tmp_path / "trial", VALUES[:3], end=False)
    clock.at(100, lambda: save_run(trial, VALUES[3:], first=3, end=False))
    job = make_job(trial, out, clock)
    clock.at(1000, job.stop.request)
    s3.fault = lambda _: Wrong() if 60 <= clock.monotonic() < 660 else None
    job.run()
    output = Output(out)

    assert output.found() == FOUND
    assert "status file: failed " in output.notes
    assert "S3 did not answer the request within " in output.notes


# what fails


def test_findings_that_may_not_be_written_are_kept_until_they_may_be(
    tmp_path: Path, out: str, s3: Traffic, clock: ScriptedClock
):
    """One key is refused for ten minutes; the other rule's findings, and the status, are written meanwhile."""
    trial = save_run(tmp_path / "trial", VALUES, end=False)
    denied = on("PUT", "VanishingGradient/findings.jsonl", Wrong(403, "AccessDenied"))
    s3.fault = lambda asked: denied(asked) if clock.monotonic() < 600 else None
    meanwhile: dict[str, Any] = {}

    def look() -> None:
        output = Output(out)
        meanwhile.update(notes=output.notes, found=output.found(), exploded=output.found("ExplodingTensor"))

    clock.at(500, look)
    result = make_job(trial, out, clock, VANISHING, EXPLODING, idle_timeout=1000).run()
    output = Output(out)

    assert (meanwhile["found"], meanwhile["exploded"]) == ([], EXPLODED)
    assert "findings file: failed " in meanwhile["notes"]
    assert f"{out}/VanishingGradient/findings.jsonl: may not be written (AccessDenied)" in meanwhile["notes"]
    assert "; allow s3:PutObject for this key; not written: 3 findings" in meanwhile["notes"]
    assert (result.exit_code, output.found(), output.found("ExplodingTensor")) == (1, FOUND, EXPLODED)
    assert "not written" not in output.notes


def test_findings_that_can_never_be_written_are_named_in_the_final_status(
    trial: Path, out: str, s3: Traffic, clock: ScriptedClock
):
    s3.fault = on("PUT", "findings.jsonl", Wrong(403, "AccessDenied"))
    result = make_job(trial, out, clock).run()
    output = Output(out)

    assert (result.exit_code, output.keys) == (1, ["status.json"])
    assert output.status["job"]["ended_because"] == "end_marker"
    assert "not written: 4 findings, 0 reports" in output.notes


def test_a_status_that_may_not_be_written_any_more_ends_the_job_and_is_named(
    tmp_path: Path, out: str, s3: Traffic, clock: ScriptedClock, capfd: pytest.CaptureFixture[str]
):
    trial = save_run(tmp_path / "trial", [HEALTHY] * 3, end=False)
    refused = on("PUT", "status.json", Wrong(403, "AccessDenied"))
    s3.fault = lambda asked: refused(asked) if clock.monotonic() >= 30 else None
    result = make_job(trial, out, clock, idle_timeout=50_000).run()
    (rule,) = result.status.rules

    assert (result.exit_code, result.status.job.ended_because) == (3, "failed")
    assert rule.StatusDetails is not None
    assert rule.StatusDetails.startswith(f"ClientError: {out}/status.json: may not be written (AccessDenied); nothing")
    assert LONGEST_LOSS <= clock.monotonic() < LONGEST_LOSS + 800
    assert f"{out}/status.json: may not be written" in capfd.readouterr().out


def test_a_status_that_is_refused_for_a_while_only_costs_nothing(
    tmp_path: Path, out: str, s3: Traffic, clock: ScriptedClock
):
    trial = save_run(tmp_path / "trial", VALUES, end=False)
    refused = on("PUT", "status.json", Wrong(403, "AccessDenied"))
    s3.fault = lambda asked: refused(asked) if 30 <= clock.monotonic() < 700 else None
    result = make_job(trial, out, clock, idle_timeout=3000).run()

    assert (result.exit_code, Output(out).status["job"]["ended_because"]) == (1, "idle_timeout")
    assert Output(out).found() == FOUND


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("AccessDenied", 403, r"may not be written \(AccessDenied\); allow s3:PutObject"),
        ("NoSuchBucket", 404, r"there is no such bucket \(NoSuchBucket\); s3://BUCKET/PREFIX"),
        ("SlowDown", 503, "S3 did not answer the request within"),
    ],
)
def test_an_output_that_cannot_be_written_at_the_start_is_refused(
    trial: Path, out: str, s3: Traffic, clock: ScriptedClock, code: str, status: int, said: str
):
    s3.fault = lambda asked: Wrong(status, code) if asked.kind == "PUT" else None

    with pytest.raises(OutputError, match=said):
        make_job(trial, out, clock).run()


def test_former_files_that_may_not_be_removed_are_named(trial: Path, out: str, s3: Traffic):
    make_job(trial, out, ScriptedClock()).run()
    s3.fault = on("DELETE", "", Wrong(403, "AccessDenied"))

    with pytest.raises(OutputError, match=r"may not be removed \(AccessDenied\); allow s3:DeleteObject for this key"):
        make_job(trial, out, ScriptedClock()).run()


def test_a_fresh_output_needs_no_right_to_remove_anything(trial: Path, out: str, s3: Traffic, clock: ScriptedClock):
    s3.fault = on("DELETE", "", Wrong(403, "AccessDenied"))

    assert make_job(trial, out, clock).run().exit_code == 1
    assert "DELETE" not in s3.counts


# folders


LIBC = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MNT_DETACH = 1, 2


def mount(kind: bytes | None, where: Path, options: bytes | None, flags: int = 0) -> None:
    """Mount something, where that is allowed."""
    if LIBC.mount(kind, bytes(where), kind, flags, options) != 0:
        pytest.skip(f"nothing may be mounted: {os.strerror(ctypes.get_errno())}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with room for little."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount(b"tmpfs", disk, b"size=128k")
    try:
        yield disk
    finally:
        LIBC.umount2(bytes(disk), MNT_DETACH)


def fill(disk: Path) -> None:
    """Leave no byte free."""
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 1024):
                pass
        except OSError:
            return


def test_a_disk_that_is_full_for_a_while_costs_nothing(tmp_path: Path, small_disk: Path, clock: ScriptedClock):
    trial = save_run(tmp_path / "trial", VALUES[:3], end=False)
    out = small_disk / "out"
    clock.at(50, lambda: fill(small_disk))
    clock.at(50, lambda: save_run(trial, VALUES[3:], first=3, end=False))
    clock.at(600, (small_disk / "filler").unlink)
    result = make_job(trial, out, clock, VANISHING, EXPLODING, idle_timeout=2000).run()
    output = Output(out)

    assert (result.exit_code, output.status["job"]["ended_because"]) == (1, "idle_timeout")
    assert (output.found(), output.found("ExplodingTensor")) == (FOUND, EXPLODED)
    assert f"{out}/status.json: No space left on device" in output.notes


def test_a_disk_that_stays_full_ends_the_job_with_the_last_whole_status_left(
    tmp_path: Path, small_disk: Path, clock: ScriptedClock
):
    trial = save_run(tmp_path / "trial", [HEALTHY] * 3, end=False)
    out = small_disk / "out"
    clock.at(50, lambda: fill(small_disk))
    result = make_job(trial, out, clock, idle_timeout=50_000).run()
    (rule,) = result.status.rules

    assert (result.exit_code, result.status.job.ended_because) == (3, "failed")
    assert f"{out}/status.json: No space left on device" in str(rule.StatusDetails)
    assert Output(out).status["job"]["ended_at"] is None


def test_a_disk_that_is_full_from_the_start_is_refused(trial: Path, small_disk: Path, clock: ScriptedClock):
    fill(small_disk)

    with pytest.raises(OutputError, match="cannot be written: No space left on device; a folder with room"):
        make_job(trial, small_disk, clock).run()


def test_a_disk_that_becomes_read_only_is_named(tmp_path: Path, small_disk: Path, clock: ScriptedClock):
    trial = save_run(tmp_path / "trial", [HEALTHY] * 3, end=False)
    out = small_disk / "out"
    clock.at(50, lambda: mount(b"tmpfs", out, None, MS_RDONLY))
    result = make_job(trial, out, clock, idle_timeout=50_000).run()

    assert (result.exit_code, result.status.job.ended_because) == (3, "failed")
    assert f"{out}/status.json: Read-only file system" in str(result.status.rules[0].StatusDetails)


def test_something_in_the_place_of_the_status_is_named(tmp_path: Path, clock: ScriptedClock):
    trial = save_run(tmp_path / "trial", [HEALTHY] * 3, end=False)
    out = tmp_path / "out"
    clock.at(50, lambda: (out / "status.json").rename(out / "former"))
    clock.at(50, (out / "status.json").mkdir)
    result = make_job(trial, out, clock, idle_timeout=50_000).run()

    assert (result.exit_code, result.status.job.ended_because) == (3, "failed")
    assert f"{out}/status.json: Is a directory" in str(result.status.rules[0].StatusDetails)


def test_one_rule_whose_folder_is_replaced_by_a_file_costs_only_itself_and_for_a_while(
    tmp_path: Path, clock: ScriptedClock
):
    trial = save_run(tmp_path / "trial", VALUES[:1], end=False)
    out = tmp_path / "out"
    # nothing was found until then, so that the folder is not there yet
    clock.at(10, lambda: (out / "VanishingGradient").write_text("in the way"))
    clock.at(20, lambda: save_run(trial, VALUES[1:], first=1, end=False))
    job = make_job(trial, out, clock, VANISHING, EXPLODING, idle_timeout=2000)
    notes: list[str] = []
    clock.at(500, lambda: notes.append(Output(out).notes))
    clock.at(500, (out / "VanishingGradient").unlink)
    job.run()
    output = Output(out)

    assert f"{out}/VanishingGradient/findings.jsonl: Not a directory; not written: 3 findings" in notes[0]
    assert (output.found(), output.found("ExplodingTensor")) == (FOUND, EXPLODED)


# two evaluators


def test_a_second_evaluator_is_kept_out_of_an_output_on_s3(trial: Path, out: str, clock: ScriptedClock):
    first = make_job(trial, out, clock)
    first._outputs.prepare()

    with pytest.raises(OutputError, match=rf"{out}: another evaluator is writing to it \(pid {os.getpid()} on "):
        make_job(trial, out, clock).run()
    first._outputs.release()
    assert make_job(trial, out, clock).run().exit_code == 1


def test_what_another_evaluator_took_meanwhile_is_not_written_any_more(tmp_path: Path, out: str, clock: ScriptedClock):
    """The machine slept for so long that the output was given to somebody else."""
    trial = save_run(tmp_path / "trial", VALUES, end=False)
    theirs: list[bytes] = []

    def sleep_long() -> None:
        clock.advance(STALE)
        other = make_job(trial, out, clock)
        other._outputs.prepare()
        Output(out).store.write("status.json", b"theirs")
        theirs.append(Output(out).store.read(".lock"))

    clock.at(100, sleep_long)

    with pytest.raises(OutputError, match="another evaluator is writing to it"):
        make_job(trial, out, clock, idle_timeout=50_000).run()
    assert (Output(out).store.read("status.json"), Output(out).store.read(".lock")) == (b"theirs", theirs[0])
