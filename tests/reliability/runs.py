"""A run of three workers with faults in it, written live, followed, and compared with what is there in the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.modes import Mode
from evaluator.writer import TrialWriter, write_end_marker

ROOT = Path(__file__).parents[2]
WORKERS, STEPS = 3, 30
DEADLINE = 120.0

# waits that are long against the disorder of the writer, also on a loaded machine
PATIENT = ("late_grace=4", "worker_quorum=8", "poll_min=0.05", "poll_max=0.2", "relist=1")
RULES = (
    "VanishingGradient:parameter_set=sagemaker,name=vanishing,on_finding=continue",
    "ExplodingTensor:parameter_set=sagemaker,name=exploding",
    "LossNotDecreasing:parameter_set=sagemaker,name=flat,num_steps=5",
    "NonFinite",
    "WorkersDiverge",
    "AllZero:parameter_set=sagemaker,name=zero,collection_names=gradients",
)


def finished_run(folder: Path, seed: int, steps: int = STEPS) -> Path:
    """The run as it will lie there when all of it is written."""
    dice = np.random.default_rng(seed)
    vanishes, explodes = dice.integers(5, steps - 5, 2)
    names = {"gradients": ["gradient/a", "gradient/b"], "weights": ["a", "b"], "losses": ["loss"]}
    weights = dice.normal(0, 1, (2, 8)).astype(np.float32)
    for worker in range(WORKERS):
        with TrialWriter(folder, worker=f"worker_{worker}", num_workers=WORKERS, collections=names) as writer:
            for step in range(steps):
                small = 1e-9 if vanishes <= step < vanishes + 4 and worker == 1 else 1e-2
                value = np.inf if step >= explodes and worker == 0 else 1.0
                writer.save(
                    step * 3,
                    {
                        "a": weights[0],
                        "b": weights[1],
                        "gradient/a": np.full(8, small, np.float32),
                        "gradient/b": np.full(8, 1e-2 * value, np.float32),
                        "loss": np.float32(1.0 / (1 + step) if step < vanishes else 1.0),
                    },
                    mode=Mode.TRAIN,
                    mode_step=step,
                    wall_time=1_700_000_000.0 + step,
                )
    write_end_marker(folder)
    return folder


def write_live(finished: Path, target: str, seed: int, pace: float) -> subprocess.Popen[bytes]:
    """Start the process that writes the run."""
    command = [sys.executable, "-m", "tests.reliability.writer_process", str(finished), target, str(seed), str(pace)]
    return subprocess.Popen(command, cwd=ROOT)


def start(target: str, output: Path, *more: str) -> subprocess.Popen[str]:
    """Start the evaluator."""
    words = [word for rule in RULES for word in ("--rule", rule)]
    words += [word for setting in PATIENT for word in ("--set", setting)]
    command = [sys.executable, "-m", "evaluator", "run", target, "--output", str(output), *words, *more]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[Any]) -> int:
    """Wait for a process."""
    try:
        _, errors = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
    assert process.returncode in {0, 1, 3, -9}, errors
    return process.returncode


def verdicts(output: Path) -> dict[str, Any]:
    """What was found, without times and counts of requests."""
    status = json.loads((output / "status.json").read_text())
    steps = status["job"]["steps"]
    found: dict[str, Any] = {"steps": steps, "notes": status["job"]["notes"] if steps["late_files"] else []}
    for rule in status["DebugRuleEvaluationStatuses"]:
        name = rule["RuleConfigurationName"]
        written = output / name / "findings.jsonl"
        lines = [json.loads(line) for line in written.read_text().splitlines()] if written.exists() else []
        told = [(one["id"], one["event"]) for one in lines]
        assert len(told) == len(set(told)), f"{name}: a finding was written twice"
        found[name] = {
            "word": rule["RuleEvaluationStatus"],
            "details": rule["StatusDetails"],
            "evaluation": rule["Evaluation"],
            "findings": sorted((_timeless(one) for one in lines), key=lambda one: (one["step"], one["event"])),
        }
    return found


def rules_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The verdict of each rule."""
    return [one for name, one in found.items() if name not in {"steps", "notes"}]


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """What differs between two documents, a line each."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = dict.fromkeys([*one, *other])
        return [line for key in keys for line in differences(one.get(key), other.get(key), f"{where}/{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for at, pair in pairs for line in differences(*pair, f"{where}/{at}")]
    return [] if one == other else [f"{where}: {one!r} is not {other!r}"]


def _timeless(finding: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in finding.items() if key not in {"recorded_at", "trial"}}


def available() -> int:
    """How many runs at a time."""
    return max(2, os.cpu_count() or 2)
