"""Point 5 of speed and scale: what a very large run costs, worked out from what small ones were measured to cost."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.marked_page import table_lines
from benchmarks.speed.judging import RULE, SMALL
from benchmarks.speed.measuring import Bench, Workload, in_turn
from benchmarks.speed.memory import LONG, peak_of
from benchmarks.speed.ours import run_here
from benchmarks.speed.requests import ASSUMED, DAY, PRICES
from benchmarks.speed.trials import Shape
from evaluator.config.settings import Settings
from evaluator.trial.trial import LISTED_AT_EASE

MEASURED = (
    Shape(2000, 2, 16, only_gradients=True),
    Shape(200, 1000, 16, only_gradients=True),
    Shape(20, 20, 1_000_000, only_gradients=True),
)
"""Three trials, of which each consists almost only of one of: files, tensors, bytes."""
PAGE = 1000
"""Index files that one LIST tells of. Source: Amazon S3 API reference, ListObjectsV2, MaxKeys."""


@dataclass(frozen=True)
class UnitCosts:
    """What was measured, in seconds of one core and in bytes."""

    a_file: float
    """Per (step, worker), whatever is in it."""
    a_tensor: float
    a_byte: float
    index_bytes: float
    """Of the index, per tensor."""
    event_bytes: float
    """Of the event file beside the values, per tensor."""
    kept: float
    """Memory per (step, worker) that was taken, until the job ends."""
    process: float
    """Memory of a job over a short run."""


@dataclass(frozen=True)
class Run:
    """A run that nobody has here."""

    steps: int
    tensors: int
    workers: int
    elements: int

    @property
    def files(self) -> int:
        """Index files, and as many event files."""
        return self.steps * self.workers


@dataclass(frozen=True)
class Plan:
    """What a run costs to be judged once."""

    gets: int
    full_listing: int
    """LISTs to see all of it once."""
    event_bytes: float
    index_bytes: float
    seconds: float
    """Of one core, without waiting for storage."""
    memory: float
    dollars: float
    """Requests to read all of it once."""
    dollars_of_listing: float
    """A day of full listings over the whole history, at the default of `relist` and what becomes of it there."""


COLUMNS = (
    "steps x tensors x workers", "event files", "index files", "requests, all of it once", "for",
    "of one core", "memory at most", "full listings, a day",
)  # fmt: skip
GREAT = tuple(Run(10_000, 1_000, 64, elements) for elements in (100, 1_000, 10_000))


def unit_costs(bench: Bench) -> UnitCosts:
    """Solve for three unknowns from three trials, and take memory from two lengths of another."""
    trials = [bench.trial(shape) for shape in MEASURED]
    works = {str(at): partial(run_here, trial, bench.output, rules=[RULE]) for at, trial in enumerate(trials)}
    in_turn(works, 1)
    ran = in_turn(works, bench.repeat)
    took = [statistics.median(one.seconds for one in ran[str(at)]) for at in range(len(trials))]
    a_file, a_tensor, a_byte = solved([(one.steps, one.steps * one.tensors, size(one)) for one in MEASURED], took)
    many = MEASURED[1]
    entries = many.steps * many.tensors
    peaks = [peak_of(bench.trial(shape), bench.output, "--rule", RULE) for shape in (SMALL, LONG)]
    return UnitCosts(
        a_file, a_tensor, a_byte,
        index_bytes=_bytes(trials[1], "index") / entries,
        event_bytes=(_bytes(trials[1], "events") - size(many)) / entries,
        kept=max(0, peaks[1] - peaks[0]) / (LONG.steps - SMALL.steps),
        process=peaks[0],
    )  # fmt: skip


def solved(counts: Sequence[tuple[int, int, int]], took: Sequence[float]) -> tuple[float, float, float]:
    """Seconds per file, tensor and byte; what comes out below zero is noise, and nothing."""
    a_file, a_tensor, a_byte = (max(0.0, float(one)) for one in np.linalg.solve(np.array(counts, float), took))
    return a_file, a_tensor, a_byte


def planned(run: Run, costs: UnitCosts) -> Plan:
    """What a run costs."""
    values = 4 * run.elements * run.tensors * run.files
    gets = 2 * run.files
    full = -(-run.files // PAGE)
    a_step = run.workers * run.tensors * (4 * run.elements + costs.event_bytes)
    # the pause between two of them grows with the run
    relists = DAY / (Settings().relist * max(1.0, run.files / LISTED_AT_EASE))
    return Plan(
        gets=gets,
        full_listing=full,
        event_bytes=values + costs.event_bytes * run.tensors * run.files,
        index_bytes=costs.index_bytes * run.tensors * run.files,
        seconds=costs.a_file * run.files + costs.a_tensor * run.tensors * run.files + costs.a_byte * values,
        # values ahead of the loop are held within the budget, or one step where that is larger
        memory=costs.process + costs.kept * run.files + min(a_step, Settings().memory_budget),
        dollars=gets * PRICES["GET"] + full * PRICES["LIST"],
        dollars_of_listing=relists * full * PRICES["LIST"],
    )


def on_paper(bench: Bench) -> str:
    """The unit costs, and the plan for runs with tensors of several sizes."""
    costs = unit_costs(bench)
    units = [
        ["one core, per (step, worker)", f"{1e6 * costs.a_file:.3g} us"],
        ["one core, per tensor", f"{1e6 * costs.a_tensor:.3g} us"],
        ["one core, per MiB of values", f"{1e3 * 2**20 * costs.a_byte:.3g} ms"],
        ["index, per tensor", f"{costs.index_bytes:.0f} bytes"],
        ["event file beside the values, per tensor", f"{costs.event_bytes:.0f} bytes"],
        ["memory, per (step, worker) until the job ends", f"{costs.kept:.0f} bytes"],
        ["memory, of a job over a short run", f"{costs.process / 2**20:.0f} MiB"],
        ["requests", ASSUMED],
    ]
    return "\n".join(
        [*table_lines(["unit", "cost"], units), "", *table_lines(COLUMNS, [_cells(run, costs) for run in GREAT])]
    )


def _cells(run: Run, costs: UnitCosts) -> list[str]:
    plan = planned(run, costs)
    return [
        f"{run.steps:,} x {run.tensors:,} x {run.workers}, {run.elements:,} float32 each",
        f"{plan.event_bytes / 1e12:.3g} TB",
        f"{plan.index_bytes / 1e9:.3g} GB",
        f"{plan.gets:,} GET, {plan.full_listing:,} LIST",
        f"{plan.dollars:.2f} dollars",
        f"{plan.seconds / 3600:.2g} hours",
        f"{plan.memory / 2**20:.0f} MiB",
        f"{plan.dollars_of_listing:.2f} dollars",
    ]


def size(shape: Shape) -> int:
    """The bytes of all values of a trial."""
    return 4 * shape.steps * shape.tensors * shape.elements


def _bytes(trial: Path, part: str) -> int:
    return sum(path.stat().st_size for path in (trial / part).rglob("*") if path.is_file())


WORKLOADS = (Workload("speed-plan", "P", on_paper),)
