"""Makes the runs of the zoo one by one, in several processes, and has each judged by both sets of rules."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from benchmarks.evaluate import candidates, judge
from benchmarks.zoo.kind import Kind, all_kinds
from benchmarks.zoo.score import Found
from evaluator import logs
from evaluator.clock import SystemClock
from evaluator.config.parameters import RuleConfiguration
from evaluator.rule import ParameterSet
from evaluator.trial.opening import open_run

SETS: tuple[ParameterSet, ...] = ("recommended", "sagemaker")
MEMORY_FILES = Path("/dev/shm")  # noqa: S108 -- a folder of a random name is made in it
ROOM = 256 * 2**20
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Asked:
    """One run to be made and judged."""

    kind: str
    seed: int


@dataclass
class Outcome:
    """What became of it."""

    kind: str
    seed: int
    begins: int | None
    steps: list[int]
    found: dict[str, list[Found]] = field(default_factory=dict)
    """Set of rules -> what it found."""
    raised: dict[str, str] = field(default_factory=dict)
    """Rule -> why it broke; a zoo with any of these is void."""
    seconds: float = 0.0
    """To make the run."""
    judged_seconds: float = 0.0


@cache
def _fast_folder() -> str | None:
    """The memory file system if there is room in it, as a trial is hundreds of files; None for the usual place."""
    usable = MEMORY_FILES.is_dir() and os.access(MEMORY_FILES, os.W_OK)
    return str(MEMORY_FILES) if usable and shutil.disk_usage(MEMORY_FILES).free > ROOM else None


@cache
def _kinds() -> dict[str, Kind]:
    return {kind.name: kind for kind in all_kinds()}


def make_and_judge(asked: Asked) -> Outcome:
    """Train, write the trial folder, and judge it by both sets; nothing is left behind."""
    started = time.perf_counter()
    run = _kinds()[asked.kind].run(asked.seed)
    with tempfile.TemporaryDirectory(prefix="zoo-", dir=_fast_folder()) as folder:
        trial, other = Path(folder, "trial"), Path(folder, "other")
        run.write(trial)
        if run.other is not None:
            run.other.write(other)
        outcome = Outcome(asked.kind, asked.seed, run.begins, run.steps, seconds=time.perf_counter() - started)
        both = _configurations([] if run.other is None else [str(other)])
        judged = judge(open_run(str(trial)), both)
        outcome.raised = judged.raised
        for name in SETS:
            own = [finding for finding in judged.findings if finding.rule_configuration.startswith(f"{name}:")]
            outcome.found[name] = [Found.of(finding) for finding in own]
    outcome.judged_seconds = time.perf_counter() - started - outcome.seconds
    return outcome


def _configurations(other_trials: Sequence[str]) -> list[RuleConfiguration]:
    """Both sets under names that tell them apart, so that the trial is read once for both."""
    return [
        replace(configuration, name=f"{name}:{configuration.name}")
        for name in SETS
        for configuration in candidates(name, other_trials)
    ]


def _quiet() -> None:
    """What a fresh process needs: only errors are logged."""
    logs.configure(SystemClock(), level="error")


def outcomes(asked: Sequence[Asked], jobs: int) -> Iterator[Outcome]:
    """Each as it gets ready."""
    # one thread per process is faster for small arrays, and adds up in the same order on every machine
    os.environ.update(dict.fromkeys(THREADS, "1"))
    with multiprocessing.get_context("spawn").Pool(jobs, _quiet) as pool:
        yield from pool.imap_unordered(make_and_judge, asked, chunksize=2)
