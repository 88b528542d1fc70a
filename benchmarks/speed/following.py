"""Workload I: how soon a saved step is judged, and what a job costs while nothing comes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.speed.judging import RULE, SMALL
from benchmarks.speed.measuring import Bench, Row, Workload, seconds, table
from benchmarks.speed.ours import ROOT, findings
from benchmarks.speed.trials import Shape, write_trial
from evaluator.clock import SystemClock
from evaluator.formats.key_names import END_MARKER, index_key
from evaluator.modes import Mode
from evaluator.writer import TrialWriter

POLL = 0.2
"""Seconds between two looks while the lag is measured."""
SAVED = 200
"""Steps; every second one is faulty, so that its verdict is a finding with a time."""
PAUSES = (0.05, 0.35)
"""Least and most seconds between two saved steps, so that they fall anywhere between two looks."""
IDLE_POLL, IDLE = 1.0, 20.0
"""Seconds between two looks, all the time: the shortest of the defaults; and how long the job is watched."""
MOST_LAG, MOST_CPU, MOST_MEMORY = 2.0, 0.01, 100 * 10**6
PATIENCE = 60.0


def lags(folder: Path) -> list[float]:
    """Seconds from the moment that a step's index file was there to the moment that its finding was written."""
    trial, output = folder / "trial", folder / "output"
    random = np.random.default_rng(0)
    gradient = random.standard_normal(100, np.float32)
    saved: dict[int, float] = {}
    with TrialWriter(trial, collections={"gradients": ["gradient"]}) as writer:
        writer.write_collections()
        with job(trial, output, f"poll_min={POLL}", f"poll_max={POLL}"):
            for step in range(SAVED):
                time.sleep(random.uniform(*PAUSES))
                scale = np.float32(1e-11 if step % 2 else 1e-2)
                writer.save(step, {"gradient": scale * gradient}, mode=Mode.TRAIN, mode_step=step)
                if step % 2:
                    saved[step] = (trial / index_key(step, "worker_0")).stat().st_mtime
            await_findings(output, len(saved))
    told = {one["step"]: datetime.fromisoformat(one["recorded_at"]).timestamp() for one in findings(output)}
    if told.keys() != saved.keys():
        raise SystemExit(f"followed: {len(saved)} faulty steps were saved, and {len(told)} found")
    return [told[step] - at for step, at in saved.items()]


def idle(folder: Path, shape: Shape) -> tuple[float, int]:
    """The share of a core and the resident bytes of a job that has read a run and waits for more of it."""
    trial, output = write_trial(folder / "trial", shape), folder / "output"
    # the run goes on
    (trial / END_MARKER).unlink()
    faulty = sum(shape.is_faulty(step) for step in range(shape.steps))
    with job(trial, output, f"poll_min={IDLE_POLL}", f"poll_max={IDLE_POLL}") as process:
        await_findings(output, faulty)
        time.sleep(3 * IDLE_POLL)
        before = processor_seconds(process.pid)
        time.sleep(IDLE)
        used = processor_seconds(process.pid) - before
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        resident = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert resident is not None
        return used / IDLE, 1024 * int(resident[1])


def follow(bench: Bench) -> list[Row]:
    """I."""
    if not Path("/proc/self/stat").exists():
        raise SystemExit("workload I reads /proc, which is not here; leave it out with --only")
    with TemporaryDirectory(dir=bench.folder) as folder:
        measured = np.array(lags(Path(folder)))
    with TemporaryDirectory(dir=bench.folder) as folder:
        share, resident = idle(Path(folder), SMALL)
    rows = []
    for percent, most in ((50, None), (99, MOST_LAG)):
        lag = float(np.percentile(measured, percent))
        met = None if most is None else lag / POLL <= most
        target = "" if most is None else f"at most {most:g} polls"
        what = f"lag from file to finding, p{percent} of {len(measured)}"
        rows.append(Row("I", what, seconds(lag), f"a poll: {seconds(POLL)}", f"{lag / POLL:.2f} polls", target, met))
    looks = f"a look every {seconds(IDLE_POLL)}"
    return [
        *rows,
        Row("I", "idle, share of a core", f"{100 * share:.2f} %", looks, f"{100 * share:.2f} %", "at most 1 %",
            share <= MOST_CPU),
        Row("I", "idle, resident memory", f"{resident / 2**20:.0f} MiB", f"after {SMALL}", f"{resident / 1e6:.0f} MB",
            "at most 100 MB", resident <= MOST_MEMORY),
    ]  # fmt: skip


@contextmanager
def job(trial: Path, output: Path, *settings: str) -> Iterator[subprocess.Popen[Any]]:
    """A process that follows a trial, from the moment that it has begun to look until the block ends."""
    words = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "evaluator", "run", str(trial), "--follow", "--exit-zero", "--rule", RULE, *words]
    process = subprocess.Popen(  # noqa: S603 - the program itself
        [*command, "--output", str(output)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _await((output / "status.json").exists, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=PATIENCE)


def await_findings(output: Path, count: int) -> None:
    """Wait until so many were written."""
    _await(lambda: len(findings(output)) >= count)


def _await(there: Callable[[], object], process: subprocess.Popen[Any] | None = None) -> None:
    clock = SystemClock()
    until = clock.monotonic() + PATIENCE
    while not there():
        if clock.monotonic() > until or (process is not None and process.poll() is not None):
            raise SystemExit(f"the job did not do in {PATIENCE:g} s what is measured; try it by hand")
        time.sleep(0.05)


def processor_seconds(pid: int) -> float:
    """Of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


WORKLOADS = (Workload("speed-following", "I", lambda bench: table(follow(bench))),)
