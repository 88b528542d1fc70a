"""Runs the program: as a job in this process, or as a process of its own; gives the seconds and what was found."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator import logs
from evaluator.clock import SystemClock
from evaluator.config.load import Arguments, load
from evaluator.job import Job

ROOT = Path(__file__).parents[2]

Met = tuple[int, str | None, float | None]
"""Step, tensor and measured value of a finding; a class rule tells the step only."""


@dataclass(frozen=True)
class Judged:
    """What a run came to."""

    seconds: float
    judged: int
    """Steps at which the first rule was evaluated."""
    met: list[Met]


def run_here(trial: Path | str, output: Path, *, rules: Sequence[str] = (), files: Sequence[str] = ()) -> Judged:
    """A whole job in this process, as `run` makes it, from its configuration on; statuses and findings are written."""
    shutil.rmtree(output, ignore_errors=True)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        logs.configure(SystemClock(), stream=nowhere)
        begin = time.perf_counter()
        arguments = Arguments(trial=str(trial), rules=rules, rule_files=files, output=str(output))
        Job(load(arguments, {}), SystemClock()).run()
        seconds = time.perf_counter() - begin
    return judged(output, seconds)


def run_process(trial: Path | str, output: Path, *words: str) -> Judged:
    """The command, its start and end included."""
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "evaluator", "run", str(trial), "--exit-zero", "--output", str(output), *words]
    begin = time.perf_counter()
    # as the reference's: with byte code that is kept, as any installed program has it
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    ended = subprocess.run(  # noqa: S603 - the program itself
        command, check=False, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    seconds = time.perf_counter() - begin
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {ended.returncode}\n{ended.stderr}")
    return judged(output, seconds)


def judged(output: Path, seconds: float) -> Judged:
    """What the first rule found, from the files of a job."""
    rule = _first_rule(output)
    met = [(one["step"], one["tensor"], one["measured"]) for one in findings(output)]
    return Judged(seconds, rule["Evaluation"]["evaluated"], met)


def findings(output: Path) -> list[Any]:
    """The findings of the first rule, of a job that may still be running."""
    file = output / _first_rule(output)["RuleConfigurationName"] / "findings.jsonl"
    data = file.read_bytes() if file.exists() else b""
    # the last line may be on its way
    lines = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
    return [one for one in lines if one["event"] == "met"]


def _first_rule(output: Path) -> Any:
    return json.loads((output / "status.json").read_bytes())["DebugRuleEvaluationStatuses"][0]
