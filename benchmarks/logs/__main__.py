"""Judges labelled logs of public training runs, with the recommended parameters and with SageMaker's defaults.

python -m benchmarks.logs [--logs DIR] [--set recommended|sagemaker|both] [--run ID]... [--write docs/detection.md]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track

from benchmarks.logs.load import NoLogs, labels
from benchmarks.logs.page import Results, markdown, put, show
from benchmarks.logs.run import judge_all
from benchmarks.logs.score import JudgedLog
from evaluator.rule import ParameterSet

DEFAULT = Path(__file__).parents[2].parent / "shared" / "logs"
WIDTH = 180
SETS: tuple[ParameterSet, ...] = ("recommended", "sagemaker")


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, print, write; 0, or 1 when a rule raised, or 2 when there are no logs or the request is wrong."""
    asked = _parser().parse_args(arguments)
    errors = Console(stderr=True)
    try:
        known = labels(asked.logs)
    except NoLogs as error:
        errors.print(str(error), markup=False, soft_wrap=True)
        return 2
    unknown = sorted(set(asked.run) - set(known))
    if unknown:
        errors.print(f"--run: {', '.join(unknown)}: no such log in {asked.logs}", markup=False, soft_wrap=True)
        return 2
    if asked.write and (asked.run or asked.set != "both"):
        errors.print("--write: the page holds both sets over all logs; leave --run and --set out", soft_wrap=True)
        return 2
    chosen = [known[run] for run in asked.run] if asked.run else list(known.values())
    sets = SETS if asked.set == "both" else (asked.set,)
    started = time.monotonic()
    tasks = [(asked.logs, label, parameter_set) for parameter_set in sets for label in chosen]
    judged = list(track(judge_all(tasks, asked.processes), "logs", total=len(tasks), console=errors, transient=True))
    results = {one: judged[at * len(chosen) : (at + 1) * len(chosen)] for at, one in enumerate(sets)}
    console = Console()
    # a file or a pipe has no width of its own, and tables folded to 80 columns are hard to search
    show(results, console if console.is_terminal else Console(width=WIDTH))
    print(f"{len(tasks)} judged in {time.monotonic() - started:.0f} s")
    if not _sound(results, errors):
        return 1
    if asked.write:
        put(asked.write, markdown(results))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.logs", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--logs", type=Path, default=DEFAULT, metavar="DIR", help="the folder of labelled logs")
    parser.add_argument("--set", choices=[*SETS, "both"], default="both", help="which parameters")
    parser.add_argument("--run", action="append", default=[], metavar="ID", help="only this log; may be repeated")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="put the tables into this page, as docs/detection.md"
    )
    parser.add_argument("--processes", type=int, default=2, help="how many logs at a time")
    return parser


def _sound(results: Results, errors: Console) -> bool:
    """Whether no rule raised; what a benchmark with a broken rule measures is void."""
    broken: list[tuple[JudgedLog, str, str]] = [
        (log, rule, text) for logs in results.values() for log in logs for rule, text in (log.raised or {}).items()
    ]
    for log, rule, text in broken[:5]:
        errors.print(f"{log.label.run}: {rule} raised, so the benchmark is void:\n{text}", markup=False)
    return not broken


if __name__ == "__main__":
    sys.exit(main())
