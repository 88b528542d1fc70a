"""Judges one log after the other, on as many processes as there is room for."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path

from benchmarks.evaluate import Judged, candidates, judge
from benchmarks.logs.load import Label, load_log
from benchmarks.logs.score import Found, JudgedLog
from evaluator import logs
from evaluator.clock import SystemClock
from evaluator.config.parameters import RuleConfiguration
from evaluator.finding import Finding
from evaluator.rule import ParameterSet

Task = tuple[Path, Label, ParameterSet]


def judge_all(tasks: Iterable[Task], processes: int) -> Iterator[JudgedLog]:
    """The logs in the order of the tasks."""
    everything = list(tasks)
    # spawn: the same on every platform, and no thread of this process is copied
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=quiet) as pool:
        yield from pool.map(judge_log, everything, chunksize=4)


def judge_log(task: Task) -> JudgedLog:
    """Judge one log with every built-in rule that can be a candidate in the parameter set."""
    folder, label, parameter_set = task
    judged = judge(load_log(folder / f"{label.run}.jsonl"), _candidates(parameter_set))
    return as_log(label, judged)


def as_log(label: Label, judged: Judged) -> JudgedLog:
    """What is kept of a judged run."""
    found = [_found(finding) for finding in judged.findings]
    return JudgedLog(label, found, frozenset(judged.evaluated), dict(judged.raised))


def quiet() -> None:
    """Only errors are logged in this process."""
    logs.configure(SystemClock(), level="error")


@lru_cache(maxsize=2)
def _candidates(parameter_set: ParameterSet) -> tuple[RuleConfiguration, ...]:
    return tuple(candidates(parameter_set))


def _found(finding: Finding) -> Found:
    measured = finding.measured
    text = "" if measured is None else measured if isinstance(measured, str) else f"{measured:.4g}"
    return Found(finding.rule, finding.step, finding.tensor, text, finding.message)
