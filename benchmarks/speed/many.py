"""Workload W: what it costs to follow very many trials of which nothing comes, in one process."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.following import processor_seconds
from benchmarks.speed.measuring import Bench, Row, Workload, seconds, table
from benchmarks.speed.ours import ROOT
from benchmarks.speed.trials import Shape, write_trial
from evaluator.formats.key_names import END_MARKER

TRIALS = 300
SHAPE = Shape(20, 10, 10)
BEGINS = 60.0
"""Seconds in which all of them are read, and the pauses between two looks grow to the longest."""
WATCHED = 30.0
MOST_CORES, MOST_MEMORY = 2.0, 2 * 10**9


def watch(bench: Bench) -> list[Row]:
    """W."""
    with TemporaryDirectory(dir=bench.folder) as folder:
        runs, output = Path(folder, "runs"), Path(folder, "output")
        first = write_trial(runs / "run-0" / "debug-output", SHAPE)
        # the runs go on
        (first / END_MARKER).unlink()
        for number in range(1, TRIALS):
            shutil.copytree(first, runs / f"run-{number}" / "debug-output")
        command = [
            sys.executable,
            "-m",
            "evaluator",
            "watch",
            str(runs / "*" / "debug-output"),
            "--output",
            str(output),
        ]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - the program itself
        try:
            time.sleep(BEGINS)
            before = processor_seconds(process.pid)
            time.sleep(WATCHED)
            share = (processor_seconds(process.pid) - before) / WATCHED
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            followed = len(list(output.glob("*/status.json")))
        finally:
            process.send_signal(signal.SIGTERM)
            begun = time.monotonic()
            process.wait(timeout=120)
            stopped = time.monotonic() - begun
    if followed != TRIALS:
        raise SystemExit(f"watch: {followed} of {TRIALS} trials were followed after {BEGINS:g} s")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    most = 1024 * int(peak[1])
    what = f"{TRIALS} idle trials, every built-in rule"
    return [
        Row("W", f"{what}: cores", f"{share:.2f}", "", f"{share:.2f}", f"at most {MOST_CORES:g}", share <= MOST_CORES),
        Row("W", f"{what}: peak memory", f"{most / 2**20:.0f} MiB", "", f"{most / 1e6:.0f} MB", "at most 2 GB",
            most <= MOST_MEMORY),
        Row("W", f"{what}: from a stop signal to the end", seconds(stopped), "", seconds(stopped)),
    ]  # fmt: skip


WORKLOADS = (Workload("speed-watch", "W", lambda bench: table(watch(bench))),)
