"""Measures how fast the program is, and writes the tables of docs/performance.md.

    python -m benchmarks.speed [--only AB] [--repeat N] [--data FOLDER] [--peer [PYTHON] [--write docs/performance.md]]

With `--peer` the reference, smdebug 1.0.34, runs in turn with ours on the same trials; its venv is made in
`.conformance/` the first time. All of it takes about half an hour then, most of which is the reference's.
"""

from __future__ import annotations

import argparse
import datetime as dt
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.marked_page import put
from benchmarks.speed import following, judging, many, memory, on_paper, opening, profile, requests, spread
from benchmarks.speed.measuring import Bench, machine
from benchmarks.speed.reference import Reference
from tests.conformance.__main__ import ENVIRONMENT, peer_python

WORKLOADS = tuple(
    workload
    for module in (judging, profile, opening, memory, requests, spread, following, many, on_paper)
    for workload in module.WORKLOADS
)
LETTERS = "".join(workload.letters for workload in WORKLOADS)


def main() -> None:
    """Measure, print, and write where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=LETTERS, help="the letters of the workloads; all by default")
    parser.add_argument("--repeat", type=int, default=5, help="how often each thing runs; the median counts")
    parser.add_argument("--data", type=Path, help="where trials are kept for the next call; 4 GB for B")
    parser.add_argument("--peer", nargs="?", const="", help="compare with smdebug, in this Python or in its own venv")
    parser.add_argument("--write", type=Path, help="the page whose tables are made anew")
    asked = parser.parse_args()
    if asked.write and asked.peer is None:
        parser.error("--write needs --peer, since the page has all rows")
    unknown = set(asked.only) - set(LETTERS)
    if unknown:
        parser.error(f"--only: no workload {', '.join(sorted(unknown))}; known: {LETTERS}")
    with ExitStack() as stack:
        reference = None
        if asked.peer is not None:
            reference = stack.enter_context(Reference(asked.peer or peer_python(), ENVIRONMENT))
        folder = asked.data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="speed-")))
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder, asked.repeat, reference)
        stack.callback(shutil.rmtree, bench.output, ignore_errors=True)
        described = f"{machine(reference)}; {dt.datetime.now(dt.UTC):%Y-%m-%d}, median of {asked.repeat}."
        print(described)
        for workload in WORKLOADS:
            if not set(workload.letters) & set(asked.only):
                continue
            made = workload.measure(bench)
            print(f"\n{made}", flush=True)
            if asked.write:
                put(workload.part, asked.write, f"{made}\n\n{described}")


if __name__ == "__main__":
    main()
