"""What is followed while it is written, in whatever disorder, is judged as what lies there in the end."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evaluator.formats.key_names import END_MARKER
from tests.reliability.runs import (
    DEADLINE,
    STEPS,
    available,
    differences,
    end,
    finished_run,
    rules_of,
    start,
    verdicts,
    write_live,
)

Verdicts = dict[str, Any]
SEEDS = range(20)
PACE = 0.05


def target_of(store: str, folder: Path, seed: int, request: pytest.FixtureRequest) -> str:
    """Where the run is written to."""
    if store == "file":
        return str(folder / f"trial-{seed}")
    return f"s3://{request.getfixturevalue('bucket')}/runs/trial-{seed}"


@pytest.mark.parametrize("store", ["file", "s3"])
def test_a_run_that_is_followed_is_judged_as_the_finished_run_is(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
):
    def follow(seed: int) -> tuple[Verdicts, Verdicts]:
        target = targets[seed]
        writer = write_live(finished_run(tmp_path / f"finished-{seed}", seed), target, seed, PACE)
        live = start(target, tmp_path / f"live-{seed}", "--follow")
        try:
            end(live)
        finally:
            end(writer)
        end(start(target, tmp_path / f"after-{seed}"))
        return verdicts(tmp_path / f"live-{seed}"), verdicts(tmp_path / f"after-{seed}")

    targets = {seed: target_of(store, tmp_path, seed, request) for seed in SEEDS}
    with ThreadPoolExecutor(2 * available()) as pool:
        results = dict(zip(SEEDS, pool.map(follow, SEEDS), strict=True))

    assert {seed: found for seed, (live, after) in results.items() if (found := differences(live, after))} == {}
    assert sum(bool(rule["findings"]) for _, after in results.values() for rule in rules_of(after)) > len(SEEDS)


@pytest.mark.parametrize("store", ["file", "s3"])
def test_an_evaluator_that_is_killed_again_and_again_comes_to_the_same(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
):
    dice = random.Random(store)  # noqa: S311 - a test repeats itself
    target = target_of(store, tmp_path, 1, request)
    writer = write_live(finished_run(tmp_path / "finished", 1, 60), target, 1, 0.5)
    undisturbed = start(target, tmp_path / "undisturbed", "--follow")
    try:
        for _ in range(30):
            process = start(target, tmp_path / "killed", "--follow")
            _wait(process, dice.uniform(0.1, 1.5))
            process.send_signal(signal.SIGKILL)
            end(process)
        end(start(target, tmp_path / "killed", "--follow"))
        end(undisturbed)
    finally:
        end(writer)

    assert differences(verdicts(tmp_path / "killed"), verdicts(tmp_path / "undisturbed")) == []
    assert any(rule["findings"] for rule in rules_of(verdicts(tmp_path / "killed")))


@pytest.mark.parametrize("seed", range(4))
def test_a_stop_signal_at_any_moment_loses_no_saved_step(tmp_path: Path, seed: int):
    dice = random.Random(seed)  # noqa: S311 - a test repeats itself
    trial = finished_run(tmp_path / "trial", seed)
    (trial / END_MARKER).unlink()
    process = start(str(trial), tmp_path / "output", "--follow")
    while not (tmp_path / "output" / "status.json").exists():
        _wait(process, 0.05)
    _wait(process, dice.uniform(0.0, 1.0))
    process.send_signal(signal.SIGTERM)
    end(process)

    status = json.loads((tmp_path / "output" / "status.json").read_text())
    assert status["job"]["ended_because"] == "stop_signal"
    assert status["job"]["steps"]["complete"] == STEPS
    assert status["job"]["steps"]["last"] == 3 * (STEPS - 1)


def _wait(process: subprocess.Popen[str], seconds: float) -> None:
    """Let a process work for a while."""
    until = time.monotonic() + min(seconds, DEADLINE)
    while time.monotonic() < until and process.poll() is None:
        time.sleep(0.01)
