"""Workload G: A and B on a Dask cluster of this machine, with one worker and with two."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster, get_task_stream

from benchmarks.speed.judging import LARGE, RULE, SMALL
from benchmarks.speed.measuring import Bench, Row, Workload, against, check_verdicts, in_turn, median_seconds, table
from benchmarks.speed.ours import Judged, run_process

FASTER = 1.5
"""How many times as fast two workers are to be as one, on B."""


@dataclass(frozen=True)
class Cluster:
    """A scheduler in this process, workers in their own, one thread each."""

    address: str
    client: Any

    def judge(self, trial: Path, output: Path) -> Judged:
        """A job on it; the seconds are those from the begin of the first task to the end of the last."""
        with get_task_stream(client=self.client) as stream:
            ran = run_process(trial, output, "--rule", RULE, "--engine", "dask", "--scheduler", self.address)
        computed = [one for record in stream.data for one in record["startstops"] if one["action"] == "compute"]
        if not computed:
            raise SystemExit("dask: no worker did anything of the job; the notes of its status say why")
        spent = max(one["stop"] for one in computed) - min(one["start"] for one in computed)
        return Judged(spent, ran.judged, ran.met)


@contextmanager
def cluster(workers: int) -> Iterator[Cluster]:
    """A cluster that ends with the block."""
    options: dict[str, Any] = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.ERROR}
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, **options) as started,  # type: ignore[no-untyped-call]
        Client(started, set_as_default=False) as client,  # type: ignore[no-untyped-call]
    ):
        yield Cluster(started.scheduler_address, client)


def on_dask(bench: Bench) -> list[Row]:
    """G."""
    rows = []
    with cluster(1) as one, cluster(2) as two:
        for letter, shape, at_most in (("A", SMALL, None), ("B", LARGE, 1 / FASTER)):
            trial, output = bench.trial(shape), bench.output
            works = {
                "two workers": partial(two.judge, trial, output),
                "one worker": partial(one.judge, trial, output),
                "local engine": partial(run_process, trial, output, "--rule", RULE),
            }
            # workers import what they need at their first task
            in_turn(works, 1)
            ran = in_turn(works, bench.repeat)
            check_verdicts(ran)
            seconds = {name: median_seconds(runs) for name, runs in ran.items()}
            what = f"{letter}, two workers, first task to last result"
            rows.append(against("G", what, seconds["two workers"], "one worker", seconds["one worker"], at_most))
    return rows


WORKLOADS = (Workload("speed-dask", "G", lambda bench: table(on_dask(bench))),)
