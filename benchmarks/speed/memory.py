"""Workload E: what a process takes at most, over a short and over a long run."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.speed.judging import RULE, SMALL
from benchmarks.speed.measuring import Bench, Row, Workload, in_turn, table
from benchmarks.speed.ours import ROOT
from benchmarks.speed.trials import Shape

LONG = Shape(10 * SMALL.steps, SMALL.tensors, SMALL.elements)
MIB = 2**20
MOST = 200 * 10**6
GROWTH = 1.10

# The peak is read by the process itself: what the system tells a parent of a child also counts what the parent was
# when it made the child.
_PROGRAM = """
import json, re, sys
from evaluator.cli import run_command_line
code = run_command_line(sys.argv[1:])
with open("/proc/self/status") as file:
    peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", file.read())[1])
print(json.dumps({"code": code, "peak": peak, "boto3": "boto3" in sys.modules}))
"""


def peak_of(trial: Path, output: Path, *words: str) -> int:
    """The largest resident set of a fresh process that evaluates a trial, in bytes."""
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-c", _PROGRAM, "run", str(trial), "--exit-zero", "--output", str(output), *words]
    ran = subprocess.run(  # noqa: S603 - the program itself
        command, check=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    told = json.loads(ran.stdout.splitlines()[-1])
    if told["code"] != 0 or told["boto3"]:
        raise SystemExit(f"memory of {trial}: {told}; expected code 0 without boto3")
    return int(told["peak"])


def peaks(bench: Bench) -> list[Row]:
    """E, with the rule of A and with every rule."""
    if not Path("/proc/self/status").exists():
        raise SystemExit("workload E reads /proc, which is not here; leave it out with --only")
    short, long = bench.trial(SMALL), bench.trial(LONG)
    output, words = bench.output, ("--rule", RULE)
    rows = []
    for what, chosen in (("VanishingGradient", words), ("every built-in rule", ())):
        ran = in_turn(
            {
                "short": partial(peak_of, short, output, *chosen),
                "long": partial(peak_of, long, output, *chosen),
            },
            min(bench.repeat, 3),
        )
        low, high = (statistics.median(ran[name]) for name in ("short", "long"))
        rows += [
            Row(
                "E", f"peak memory, {what}, {LONG.steps:,} steps", _mib(high), f"{SMALL.steps:,} steps: {_mib(low)}",
                f"{high / low:.2f}x", f"at most {GROWTH:.2f}x", high / low <= GROWTH,
            ),
            Row("E", f"peak memory, {what}", _mib(high), "", f"{high / 1e6:.0f} MB", "at most 200 MB", high <= MOST),
        ]  # fmt: skip
    return rows


def _mib(value: float) -> str:
    return f"{value / MIB:.0f} MiB"


WORKLOADS = (Workload("speed-memory", "E", lambda bench: table(peaks(bench))),)
