# ruff: noqa: T201 - a program that says what it does
"""Fuzzes everything that reads a trial, for a bounded time.

    python -m tests.fuzz [--seconds 600] [--target NAME ...] [--guided auto|no|only] [--work FOLDER]

Half of the time goes to structured inputs (hypothesis), half to coverage-guided ones (atheris, where there is a wheel
of it for this Python: it is installed into the work folder, not into the environment). A failing case is written to a
file whose path is printed; put it into tests/fuzz/found/NAME/ and it is a test. Exits with 1 when there is one.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.bounds import bounded
from tests.fuzz.strategies import STRATEGIES
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
ATHERIS = "atheris==3.0.0"
ROUND = 50
"""Structured inputs between two looks at the clock."""
WEIGHTS = {"trial": 2}
"""Shares of the time; the whole program has the most to go through."""


def install(work: Path) -> Path | None:
    """Where atheris is, installed there if need be; None where there is none for this Python."""
    folder = work / f"atheris-{sys.version_info[0]}.{sys.version_info[1]}"
    if not (folder / "complete").exists():
        print(f"installing {ATHERIS} into {folder}", flush=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--only-binary=:all:",
            "--no-deps",
            "--upgrade",
            "--target",
            str(folder),
        ]
        if subprocess.run([*command, ATHERIS], check=False).returncode:
            return None
        (folder / "complete").touch()
    return folder


def keep(found: Path, data: bytes, why: str) -> Path:
    """Write a failing case down."""
    found.mkdir(parents=True, exist_ok=True)
    path = found / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    print(f"FAILED, see {path}\n{why}", flush=True)
    return path


def structured(name: str, seconds: float, work: Path) -> tuple[int, bool]:
    """Give a target structured inputs: how many, and whether one failed."""
    until = time.monotonic() + seconds
    target, cases, last = TARGETS[name], 0, b""

    @settings(
        max_examples=ROUND, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink), print_blob=False,
    )  # fmt: skip
    @given(STRATEGIES[name])
    def run(data: bytes) -> None:
        nonlocal cases, last
        cases += 1
        try:
            bounded(target.case, data, target.seconds)
        except Exception:
            last = data
            raise

    while time.monotonic() < until:
        try:
            run()
        except Exception:  # noqa: BLE001 - whatever a case raises is what is looked for
            keep(work / name / "found", last, _why(name, last))
            return cases, True
    return cases, False


def _why(name: str, data: bytes) -> str:
    """The traceback of a failing case."""
    try:
        bounded(TARGETS[name].case, data, TARGETS[name].seconds)
    except Exception:  # noqa: BLE001 - the same
        return traceback.format_exc(limit=-4)
    return "it does not fail again: perhaps it took long only once"


def guided(name: str, seconds: float, work: Path, atheris: Path) -> tuple[int, bool]:
    """Let atheris fuzz a target in a process of its own: how many inputs, and whether one failed."""
    folder = work / name
    before = set(folder.glob("found/*"))
    log = folder / "guided.log"
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.guided", name, str(folder), f"-max_total_time={max(1, int(seconds))}"]
    path = os.pathsep.join([str(ROOT), str(atheris)])
    with log.open("wb") as output:
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdout=output, stderr=output, check=False
        )
    text = log.read_text(encoding="utf-8", errors="backslashreplace")
    units = re.search(r"number_of_executed_units:\s*(\d+)", text)
    for new in sorted(set(folder.glob("found/*")) - before):
        print(f"FAILED, see {new}\n{_why(name, new.read_bytes())}", flush=True)
    if done.returncode:
        print(f"atheris ended with {done.returncode}, see {log}", flush=True)
    return int(units[1]) if units else 0, bool(done.returncode)


def main() -> int:
    """Share the time among the targets, and tell what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="in all")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="only this one; can be repeated")
    parser.add_argument("--guided", choices=["auto", "no", "only"], default="auto")
    parser.add_argument("--work", type=Path, default=ROOT / ".fuzz", help="for atheris, its corpus and failing cases")
    options = parser.parse_args()
    names = options.target or list(TARGETS)
    atheris = None if options.guided == "no" else install(options.work)
    if atheris is None and options.guided == "only":
        print(f"{ATHERIS} cannot be installed")
        return 1
    halves = 1 if atheris is None or options.guided == "only" else 2
    share = options.seconds / halves / sum(WEIGHTS.get(name, 1) for name in names)
    failures = 0
    for name in names:
        seconds = share * WEIGHTS.get(name, 1)
        if options.guided != "only":
            cases, failed = structured(name, seconds, options.work)
            failures += failed
            print(f"{name}: {cases} structured inputs, {'FAILED' if failed else 'clean'}", flush=True)
        if atheris is not None:
            cases, failed = guided(name, seconds, options.work, atheris)
            failures += failed
            print(f"{name}: {cases} coverage-guided inputs, {'FAILED' if failed else 'clean'}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
