"""Logs on S3: read once, and followed while each object is put anew, longer than before."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evaluator.formats.key_names import END_MARKER
from evaluator.sources.tensorboard import TensorBoardLogs
from evaluator.testing import FakeClock
from evaluator.trial.opening import await_run
from tests.s3.jobs import Output, make_job
from tests.s3.traffic import CUT, RESET, Asked, Traffic, Wrong
from tests.saved_run import ScriptedClock
from tests.sources.event_files import event, scalars, simple, version
from tests.sources.test_verdicts_on_logs import (
    FORMS,
    RUNS,
    Rows,
    as_json_lines,
    as_keras,
    as_lightning,
    as_tensorboard,
)

Upload = Callable[[Path, str], str]
Put = Callable[..., None]
Form = Callable[[Path, Rows], None]

RULES = ("NonFinite", "LossDiverging", "LossNotDecreasing", "Overfit", "MetricFlat")
EVENTS = "events.out.tfevents.1700000000.host"
LOOKS = 12
"""At how many times an object is longer than before."""
PERIOD = 10.0
"""Seconds between them; less than what one folder is waited for by another."""
ENDED = PERIOD * (LOOKS + 1)

by_name = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
that_grow = pytest.mark.parametrize(
    "form", [as_json_lines, as_lightning, as_keras, as_tensorboard], ids=lambda form: form.__name__
)


def told(output: object) -> tuple[Any, Any]:
    """What of a job does not depend on where its run lies, and when it was looked at."""
    found = Output(output)
    status = found.status
    steps = {key: value for key, value in status["job"]["steps"].items() if isinstance(value, int | type(None))}
    rules = [
        (rule["RuleConfigurationName"], rule["RuleEvaluationStatus"], rule["Evaluation"]["evaluated"])
        for rule in status["DebugRuleEvaluationStatuses"]
    ]
    lines = [
        (rule, line["step"], line["mode"], line["tensor"], line["event"])
        for rule in RULES
        for line in found.lines(rule)
    ]
    return (steps, rules), lines


def evaluated(trial: object, output: object, *, follow: bool = False, clock: ScriptedClock | None = None) -> Any:
    """Evaluate a run, and check that nothing had to be noted."""
    make_job(trial, output, clock or ScriptedClock(), *RULES, follow=follow, poll_min=PERIOD / 2).run()
    assert Output(output).notes == ""
    return told(output)


def growing(folder: Path, put: Put, prefix: str, clock: ScriptedClock, *, seed: int = 0) -> None:
    """Put the beginning of each file of a folder, and have them grow piece by piece, cut at any byte, until the end.

    S3 cannot append: each time the object is put anew, longer.
    """
    dice = random.Random(seed)  # noqa: S311 - a test repeats itself
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data, key = path.read_bytes(), f"{prefix}/{path.relative_to(folder).as_posix()}"
        cuts = [int(len(data) * (look + dice.uniform(-0.4, 0.4)) / LOOKS) for look in range(1, LOOKS)]
        put(key, data[: cuts[0]])
        for number, cut in enumerate([*cuts[1:], len(data)], 1):
            clock.at(PERIOD * number, partial(put, key, data[:cut]))
    clock.at(ENDED, partial(put, f"{prefix}/{END_MARKER}"))


# read once


@by_name
@pytest.mark.parametrize("run", ["healthy", "overfit"])
def test_a_log_on_s3_has_the_verdicts_of_the_same_one_in_a_folder(tmp_path: Path, upload: Upload, form: Form, run: str):
    rows, expected = RUNS[run]
    folder = tmp_path / "run"
    folder.mkdir()
    form(folder, rows)
    local = evaluated(folder, tmp_path / "1")
    remote = evaluated(upload(folder, "runs/some one"), tmp_path / "2")

    assert remote == local
    assert expected <= {line[0] for line in remote[1]}
    assert bool(expected) == bool(remote[1])


@pytest.mark.parametrize("key", ["metrics.jsonl", "training.csv", f"train/{EVENTS}"])
def test_one_object_can_be_named_by_itself(tmp_path: Path, upload: Upload, s3: Traffic, key: str):
    rows, _ = RUNS["not finite"]
    folder = tmp_path / "run"
    folder.mkdir()
    for form in (as_json_lines, as_keras, as_tensorboard):
        form(folder, rows)
    uri = upload(folder, "runs/one")
    local = evaluated(folder / key, tmp_path / "1")
    s3.forget()
    remote = evaluated(f"{uri}/{key}", tmp_path / "2")

    assert remote == local
    assert [line[0] for line in remote[1]] == ["NonFinite"]
    assert {asked.key for asked in s3.asked if asked.kind == "GET"} == {f"runs/one/{key}"}


def test_other_runs_below_the_prefix_are_named_and_not_mixed_in(tmp_path: Path, put: Put, bucket: str):
    put(f"runs/train/{EVENTS}", version() + scalars("loss", [1.0, 0.5]))
    put(f"runs/second try/{EVENTS}", version() + scalars("loss", [float("nan")] * 2))
    make_job(f"s3://{bucket}/runs", tmp_path / "out", ScriptedClock(), *RULES, follow=False).run()
    output = Output(tmp_path / "out")

    assert output.found("NonFinite") == []
    assert "second try/: holds event files of another run" in output.notes


def test_a_prefix_beside_whose_name_another_begins_the_same_is_one_run(tmp_path: Path, put: Put, bucket: str):
    put(f"runs/a/{EVENTS}", version() + scalars("loss", [1.0, 0.5]))
    put(f"runs/ab/{EVENTS}", version() + scalars("loss", [float("nan")] * 5))

    (steps, _), lines = evaluated(f"s3://{bucket}/runs/a", tmp_path / "out")

    assert (steps["complete"], lines) == (2, [])


# followed


@that_grow
@pytest.mark.parametrize("run", ["healthy", "not finite"])
def test_a_log_that_is_followed_on_s3_comes_to_what_the_finished_one_comes_to(
    tmp_path: Path, put: Put, bucket: str, form: Form, run: str
):
    folder = tmp_path / "run"
    folder.mkdir()
    form(folder, RUNS[run][0])
    clock = ScriptedClock()
    growing(folder, put, "runs/live", clock)
    live = evaluated(f"s3://{bucket}/runs/live", tmp_path / "live", follow=True, clock=clock)

    assert live == evaluated(folder, tmp_path / "local")
    assert bool(live[1]) == (run != "healthy")
    assert Output(tmp_path / "live").status["job"]["ended_because"] == "end_marker"


def test_a_folder_that_is_far_behind_is_judged_with_the_other_one_in_the_end(tmp_path: Path, put: Put, bucket: str):
    folder = tmp_path / "run"
    folder.mkdir()
    as_tensorboard(folder, RUNS["overfit"][0])
    expected = evaluated(folder, tmp_path / "local")
    late = (folder / "validation" / EVENTS).read_bytes()
    shutil.rmtree(folder / "validation")
    clock = ScriptedClock()
    growing(folder, put, "runs/live", clock)
    clock.at(ENDED - 1, partial(put, f"runs/live/validation/{EVENTS}", late))
    make_job(f"s3://{bucket}/runs/live", tmp_path / "live", clock, *RULES, follow=True).run()

    assert told(tmp_path / "live")[1] == expected[1]
    assert {line[0] for line in expected[1]} >= {"Overfit"}
    assert "judged anew" in Output(tmp_path / "live").notes


@pytest.mark.parametrize("wrong", [Wrong(), RESET, CUT], ids=lambda wrong: wrong.way)
def test_requests_that_go_wrong_on_the_way_change_nothing(
    tmp_path: Path, put: Put, bucket: str, s3: Traffic, wrong: Wrong
):
    folder = tmp_path / "run"
    folder.mkdir()
    as_tensorboard(folder, RUNS["overfit"][0])
    clock = ScriptedClock()
    growing(folder, put, "runs/live", clock)
    s3.fault = lambda asked: wrong if asked.kind != "PUT" and asked.number % 3 == 0 else None
    live = evaluated(f"s3://{bucket}/runs/live", tmp_path / "live", follow=True, clock=clock)
    s3.fault = lambda _: None

    assert live == evaluated(folder, tmp_path / "local")
    assert Output(tmp_path / "live").status["job"]["requests"]["retries"] > 0


def test_a_folder_of_validation_that_appears_later_is_followed_from_then_on(tmp_path: Path, put: Put, bucket: str):
    clock = ScriptedClock()
    train = version() + scalars("loss", [1 / step for step in range(1, 11)])
    validation = version() + scalars("loss", [1 / step for step in range(11, 21)], 10)
    clock.at(1, partial(put, f"run/train/{EVENTS}", train))
    clock.at(100, partial(put, f"run/validation/{EVENTS}", validation))
    clock.at(
        100, partial(put, f"run/train/{EVENTS}", train + scalars("loss", [1 / step for step in range(11, 21)], 10))
    )
    clock.at(200, partial(put, f"run/{END_MARKER}"))
    (steps, rules), lines = evaluated(f"s3://{bucket}/run", tmp_path / "out", follow=True, clock=clock)

    assert (steps["complete"], steps["last"]) == (20, 19)
    assert {name: evaluated for name, _, evaluated in rules}["NonFinite"] == 20
    assert lines == []


def test_looks_at_a_log_that_does_not_grow_read_nothing(tmp_path: Path, put: Put, bucket: str, s3: Traffic):
    clock = ScriptedClock()
    put(f"run/train/{EVENTS}", version() + scalars("loss", [1.0] * 5))
    put(f"run/validation/{EVENTS}", version() + scalars("loss", [1.0] * 5))
    between: list[dict[str, int]] = []
    clock.at(100, s3.forget)
    clock.at(1000, lambda: between.append(s3.counts))
    clock.at(1001, partial(put, f"run/{END_MARKER}"))
    evaluated(f"s3://{bucket}/run", tmp_path / "out", follow=True, clock=clock)

    assert between[0].get("GET", 0) == 0
    assert between[0]["LIST"] > 10


def test_what_was_read_of_an_object_is_not_read_again_when_it_grows(tmp_path: Path, put: Put, bucket: str, s3: Traffic):
    clock = ScriptedClock()
    data = version() + scalars("loss", [1.0] * 5)
    key = f"run/{EVENTS}"
    grown: list[dict[str, int]] = []
    clock.at(1, partial(put, key, data))
    for number in range(1, 6):
        more = data + scalars("loss", [1.0] * number, 5)
        clock.at(100 * number, partial(put, key, more))
        clock.at(100 * number + 99, lambda: grown.append(s3.counts))
    clock.at(600, partial(put, f"run/{END_MARKER}"))
    evaluated(f"s3://{bucket}/run", tmp_path / "out", follow=True, clock=clock)

    assert [counts.get("GET", 0) for counts in grown] == [1] * 5


def test_a_run_that_is_begun_anew_under_the_same_key_is_judged_anew(tmp_path: Path, put: Put, bucket: str):
    clock = ScriptedClock()
    key = f"run/{EVENTS}"
    first = version() + scalars("loss", [1.0] * 20)
    second = version() + b"".join(event(step, simple("loss", float("nan"))) for step in range(5))
    clock.at(1, partial(put, key, first))
    clock.at(200, partial(put, key, second))
    clock.at(400, partial(put, f"run/{END_MARKER}"))
    rule = "NonFinite:on_finding=continue"
    make_job(f"s3://{bucket}/run", tmp_path / "out", clock, rule, follow=True).run()
    output = Output(tmp_path / "out")

    assert output.found("NonFinite")[0] == (0, "met")
    assert output.status["job"]["steps"]["last"] == 4
    assert "restart at step 0" in output.notes


@by_name
@pytest.mark.parametrize("anywhere", ["folder", "s3"])
def test_a_log_with_an_end_marker_is_read_afterwards_as_it_was_followed(
    tmp_path: Path, upload: Upload, form: Form, anywhere: str
):
    folder = tmp_path / "run"
    folder.mkdir()
    form(folder, RUNS["not finite"][0])
    without = evaluated(folder, tmp_path / "without")
    (folder / END_MARKER).touch()
    run = folder if anywhere == "folder" else upload(folder, "runs/one")

    assert evaluated(run, tmp_path / "read") == without
    assert evaluated(run, tmp_path / "followed", follow=True) == without


@pytest.mark.parametrize("at", range(1, 25))
def test_the_folders_of_a_log_that_appear_between_two_looks_are_one_run(put: Put, bucket: str, s3: Traffic, at: int):
    """Whichever request comes just after them."""
    data = version() + scalars("loss", [1.0])
    keys = [f"run/{folder}/{EVENTS}" for folder in ("validation", "train")]

    def appear(asked: Asked) -> None:
        if asked.number == at:
            while keys:
                put(keys.pop(), data)

    s3.fault = appear
    source = await_run(f"s3://{bucket}/run", FakeClock(), start_timeout=60.0, poll=1.0, stopped=lambda: False)

    assert isinstance(source, TensorBoardLogs)
    assert keys == []
