"""Jobs on a Dask cluster of real processes, and runs for them in which rules fire."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from distributed import LocalCluster

from evaluator.clock import SystemClock
from evaluator.config.load import Arguments, load
from evaluator.job import Job
from evaluator.modes import Mode
from evaluator.status import JobStatus
from evaluator.writer import TrialWriter
from tests.s3.jobs import Output

WORKERS = 2


@contextmanager
def cluster(workers: int = WORKERS) -> Iterator[LocalCluster]:
    """A scheduler and workers with one thread each, in processes of their own that are started again when they end."""
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as found:
        yield found


def processes(found: LocalCluster) -> list[int]:
    """The numbers of the workers' processes."""
    return [worker.pid for worker in found.workers.values() if worker.pid is not None]


def kill(*numbers: int) -> None:
    """End processes without giving them a chance to say so."""
    for number in numbers:
        os.kill(number, signal.SIGKILL)


@dataclass(frozen=True)
class Came:
    """What a job came to, without what differs between two runs of the same job."""

    rules: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    steps: dict[str, Any]
    notes: list[str]

    @property
    def verdict(self) -> tuple[object, ...]:
        """Everything but the notes."""
        return self.rules, self.findings, self.steps


def run(
    trial: object,
    output: object,
    scheduler: str | None = None,
    *,
    rules: Sequence[str] = (),
    rule_files: Sequence[str] = (),
    settings: Sequence[str] = (),
    watch: Callable[[JobStatus, int], None] | None = None,
    made: Callable[[Job], None] | None = None,
) -> Came:
    """Run a job over what is there, on the cluster or (without a scheduler) by the local engine."""
    given = [] if scheduler is None else ["engine=dask", f"scheduler={scheduler}"]
    arguments = Arguments(
        trial=str(trial), output=str(output), rules=rules, rule_files=rule_files,
        set=[*given, "status_interval=0", *settings],
    )  # fmt: skip
    job = Job(load(arguments, {}), SystemClock(), watch=watch)
    if made is not None:
        made(job)
    status = job.run().status
    document = status.document()
    rules_told = [_without(rule, "LastModifiedTime", "Finding") for rule in document["DebugRuleEvaluationStatuses"]]
    findings = [_without(line, "recorded_at") for rule in job_rules(document) for line in Output(output).lines(rule)]
    return Came(rules_told, findings, document["job"]["steps"], document["job"]["notes"])


def job_rules(document: dict[str, Any]) -> list[str]:
    """The configurations in a status."""
    return [rule["RuleConfigurationName"] for rule in document["DebugRuleEvaluationStatuses"]]


def at_step(step: int, action: Callable[[], None]) -> Callable[[JobStatus, int], None]:
    """Does something once so many steps were judged."""
    left = [action]

    def watch(status: JobStatus, _: int) -> None:
        if left and status.job.steps.last is not None and status.job.steps.last >= step:
            left.pop()()

    return watch


def faulty_run(folder: Path, *, steps: int = 150, elements: int = 50, workers: int = 2, end: bool = True) -> Path:
    """Two workers that save weights and gradients, of which one stops to change, one vanishes and one is not finite."""
    random = np.random.default_rng(7)
    names = [f"layer{number}.weight" for number in range(6)]
    # different sizes, so that sums of tensors that are laid end to end are not those of a matrix
    sizes = [elements + 3 * number for number in range(len(names))]
    collections = {"weights": names, "gradients": [f"gradient/{name}" for name in names], "losses": ["loss"]}
    writers = [
        TrialWriter(folder, worker=f"worker_{number}", num_workers=workers, collections=collections)
        for number in range(workers)
    ]
    weights = [random.normal(0, 0.1, size).astype(np.float32) for size in sizes]
    for step in range(steps):
        values: dict[str, object] = {"loss": np.float32(1 / (1 + 0.02 * step))}
        for number, (name, size) in enumerate(zip(names, sizes, strict=True)):
            gradient = random.normal(0, 1e-2, size).astype(np.float32)
            if number == 1 and step > steps // 2:
                gradient *= np.float32(1e-8)
            if number == 2 and step % 40 == 33:
                gradient[0] = np.nan
            if number != 3 or step < steps // 3:
                weights[number] = weights[number] - np.float32(1e-2) * gradient
            values |= {name: weights[number], f"gradient/{name}": gradient}
        for number, writer in enumerate(writers):
            changed = {names[4]: weights[4] + np.float32(number)} if step > steps - 20 else {}
            writer.save(step, values | changed, mode=Mode.TRAIN, mode_step=step)
    for writer in writers:
        writer.close(end=end)
    return folder


def _without(document: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in keys}
