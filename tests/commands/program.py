"""Starts the program as a person does, or calls it in this process; and small trials to run it on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from evaluator.cli import run_command_line
from evaluator.modes import Mode
from evaluator.status import schema
from evaluator.writer import TrialWriter

TRIALS = Path(__file__).parents[1] / "data" / "trials"
DEADLINE = 60.0
"""Seconds after which a program that does not end is a failed test."""

HEALTHY, TINY = 1e-3, 1e-9
STARTED: list[subprocess.Popen[str]] = []
"""The processes of the present test."""

FAST = ("late_grace=0.1", "poll_min=0.05", "poll_max=0.1")


@dataclass(frozen=True)
class Ran:
    """What a run of the program came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as the one JSON document it must be."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """The lines of standard error that are no log lines."""
        return [line for line in self.err.splitlines() if not line.startswith('{"time"')]


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> Ran:
    """Run the command line in this process."""
    capsys.readouterr()
    code = run_command_line([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err)


def start(
    *arguments: object, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.Popen[str]:
    """Start the program as a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "evaluator", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
    )
    STARTED.append(process)
    return process


def clean_up() -> None:
    """End what a failed test left running, so that it does not fail other tests too."""
    while STARTED:
        process = STARTED.pop()
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def finish(process: subprocess.Popen[str]) -> Ran:
    """Wait for the end of a process."""
    try:
        out, err = process.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Ran(process.returncode, out, err)


def run(*arguments: object, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ran:
    """Run the program as a process of its own, to its end."""
    return finish(start(*arguments, environment=environment, cwd=cwd))


def log_lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """The log lines of a process as they come; a process that says nothing more in time is killed."""
    assert process.stderr is not None
    timer = threading.Timer(DEADLINE, process.kill)
    timer.daemon = True
    timer.start()
    try:
        for line in process.stderr:
            if line.startswith("{"):
                yield json.loads(line)
    finally:
        timer.cancel()


def wait_for(lines: Iterator[dict[str, Any]], event: str, **keys: object) -> dict[str, Any]:
    """The next log line of this event with these values."""
    for line in lines:
        if line["event"] == event and all(line.get(key) == value for key, value in keys.items()):
            return line
    pytest.fail(f"the program ended without a log line {event} {keys}")


def writer(folder: Path) -> TrialWriter:
    """A writer of a trial with two gradients and a loss."""
    return TrialWriter(folder, collections={"gradients": ["g0", "g1"], "losses": ["loss"]})


def save(one: TrialWriter, step: int, g1: float = HEALTHY) -> None:
    """One step of it."""
    values = {"loss": np.float32(1), "g0": np.full(3, HEALTHY, np.float32), "g1": np.full((2, 2), g1, np.float32)}
    one.save(step, values, mode=Mode.TRAIN, wall_time=1_700_000_000.0 + step)


def small_trial(folder: Path, g1: Sequence[float] = (HEALTHY, HEALTHY, TINY)) -> Path:
    """A finished trial whose second gradient has these values."""
    with writer(folder) as one:
        for step, value in enumerate(g1):
            save(one, step, value)
    return folder


def check_outputs(folder: Path) -> dict[str, Any]:
    """The status in an output folder; it and every finding there are as the schemas say."""
    status: dict[str, Any] = json.loads((folder / "status.json").read_bytes())
    jsonschema.validate(status, schema("status"))
    for path in folder.rglob("findings.jsonl"):
        for line in path.read_text().splitlines():
            jsonschema.validate(json.loads(line), schema("finding"))
    return status


def findings(folder: Path, configuration: str = "VanishingGradient") -> list[dict[str, Any]]:
    """The findings of a configuration, without the times at which they were written."""
    lines = (folder / configuration / "findings.jsonl").read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "recorded_at"} for line in lines]
