"""Runs the zoo: makes healthy and faulty trials, has both sets of rules judge them, and prints what they found.

python -m benchmarks.zoo [--kind NAME]... [--seeds N] [--jobs N] [--write docs/detection.md]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track

from benchmarks.zoo.judging import SETS, Asked, Outcome, outcomes
from benchmarks.zoo.kind import FAULTY_SEEDS, HEALTHY_SEEDS, VARIANT_SEEDS, all_kinds
from benchmarks.zoo.page import markdown, put, show
from benchmarks.zoo.results import collect
from evaluator.registry import builtin_rules

WIDTH = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Make, judge, print, write; 0, or 1 when a rule raised, or 2 when the request is wrong."""
    asked = _parser().parse_args(arguments)
    errors = Console(stderr=True)
    kinds = all_kinds()
    unknown = sorted(set(asked.kind) - {kind.name for kind in kinds})
    if unknown:
        names = ", ".join(kind.name for kind in kinds)
        errors.print(f"--kind: {', '.join(unknown)}: no such kind; kinds: {names}", markup=False)
        return 2
    if asked.write and (asked.kind or asked.seeds):
        errors.print("--write: the page holds the whole zoo; leave --kind and --seeds out", soft_wrap=True)
        return 2
    chosen = [kind for kind in kinds if not asked.kind or kind.name in asked.kind]
    runs = [Asked(kind.name, seed) for kind in chosen for seed in range(asked.seeds or kind.seeds)]
    started = time.monotonic()
    judged = list(track(outcomes(runs, asked.jobs), "zoo", total=len(runs), console=errors, transient=True))
    results = {name: collect(chosen, judged, name, builtin_rules()) for name in SETS}
    console = Console()
    # a file or a pipe has no width of its own, and tables folded to 80 columns are hard to search
    show(results, console if console.is_terminal else Console(width=WIDTH))
    made, spent = sum(one.seconds for one in judged), sum(one.judged_seconds for one in judged)
    print(f"{len(runs)} runs in {time.monotonic() - started:.0f} s: {made:.0f} s to make, {spent:.0f} s to judge")
    if not _sound(judged, errors):
        return 1
    if asked.write:
        put(asked.write, markdown(results, "make zoo"))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.zoo", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kind", action="append", default=[], metavar="NAME", help="only this kind; may be repeated")
    usual = f"{HEALTHY_SEEDS} healthy ({VARIANT_SEEDS} of variants) and {FAULTY_SEEDS} faulty ones"
    parser.add_argument("--seeds", type=int, help=f"runs of every kind, instead of {usual}")
    parser.add_argument("--jobs", type=int, default=2, help="how many runs at a time")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="put the tables into this page, as docs/detection.md"
    )
    return parser


def _sound(judged: Sequence[Outcome], errors: Console) -> bool:
    """Whether no rule raised; what a benchmark with a broken rule measures is void."""
    broken = [(one, rule, text) for one in judged for rule, text in one.raised.items()]
    for one, rule, text in broken[:5]:
        errors.print(f"{one.kind}, seed {one.seed}: {rule} raised, so the benchmark is void:\n{text}", markup=False)
    return not broken


if __name__ == "__main__":
    raise SystemExit(main())
