"""Workloads A, B, C and H: whole trials that have ended, judged as fast as possible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.speed.limit import bare_pass
from benchmarks.speed.measuring import Bench, Row, Workload, against, check_verdicts, in_turn, median_seconds, table
from benchmarks.speed.ours import ROOT, Judged, run_here, run_process
from benchmarks.speed.trials import THRESHOLD, Shape

SMALL = Shape(1000, 200, 100)
LARGE = Shape(20, 50, 1_000_000, only_gradients=True)

RULE = f"VanishingGradient:parameter_set=sagemaker,threshold={THRESHOLD},on_finding=continue"
CLASS_FILE = ROOT / "benchmarks" / "peer" / "mean_gradient.py"
CLASS_RULE = f"{CLASS_FILE}:MeanGradient:threshold={THRESHOLD},on_finding=continue"

LIMIT, HERE, PROCESS, EVERY, CLASS = "bare pass", "ours", "our process", "every rule", "class rule"
THEIRS, THEIR_PROCESS = "smdebug", "smdebug's process"


def small_tensors(bench: Bench) -> list[Row]:
    """A, C and H, which share the trial and the runs of the reference."""
    trial = bench.trial(SMALL)
    limit, judged = _measure(bench, trial, classes=True, every=True)
    ours = judged[HERE]
    rows = [
        *_with_reference("A", judged, inside=1 / 60, process=1 / 25),
        against("A", "inside the process", ours, "bare pass", limit, 8),
        against("C", "every built-in rule that applies", judged[EVERY], "A", ours, 2.5),
    ]
    if bench.reference is not None:
        rows.append(against("H", "a class rule, in its own process", judged[CLASS], "smdebug", judged[THEIRS], 1 / 5))
    rows.append(against("H", "a class rule, in its own process", judged[CLASS], "A", ours))
    return rows


def large_tensors(bench: Bench) -> list[Row]:
    """B."""
    limit, judged = _measure(bench, bench.trial(LARGE), classes=False, every=False)
    rows = _with_reference("B", judged, inside=1 / 12, process=None)
    return [*rows, against("B", "inside the process", judged[HERE], "bare pass", limit, 1.5)]


def _measure(bench: Bench, trial: Path, *, classes: bool, every: bool) -> tuple[float, dict[str, float]]:
    """The median seconds of the bare pass, and of everything else."""
    output, reference = bench.output, bench.reference
    works: dict[str, Callable[[], Judged]] = {
        LIMIT: lambda: Judged(bare_pass(trial), 0, []),
        HERE: lambda: run_here(trial, output, rules=[RULE]),
        PROCESS: lambda: run_process(trial, output, "--rule", RULE),
    }
    if every:
        works[EVERY] = lambda: run_here(trial, output)
    if classes:
        works[CLASS] = lambda: run_here(trial, output, files=[CLASS_RULE])
    if reference is not None:
        works[THEIRS] = lambda: reference.judge(trial, THRESHOLD)
        works[THEIR_PROCESS] = lambda: reference.judge_process(trial, THRESHOLD)
    # what is loaded and what the disk is asked for the first time is nobody's time
    in_turn({name: work for name, work in works.items() if name not in {PROCESS, THEIRS, THEIR_PROCESS}}, 1)
    ran = in_turn(works, bench.repeat)
    check_verdicts({name: runs for name, runs in ran.items() if name not in {LIMIT, EVERY}})
    medians = {name: median_seconds(runs) for name, runs in ran.items()}
    return medians.pop(LIMIT), medians


def _with_reference(letter: str, judged: dict[str, float], inside: float, process: float | None) -> list[Row]:
    if THEIRS not in judged:
        return []
    return [
        against(letter, "inside the process", judged[HERE], "smdebug", judged[THEIRS], inside),
        against(letter, "the whole process", judged[PROCESS], "smdebug", judged[THEIR_PROCESS], process),
    ]


WORKLOADS = (
    Workload("speed-small", "ACH", lambda bench: table(small_tensors(bench))),
    Workload("speed-large", "B", lambda bench: table(large_tensors(bench))),
)
