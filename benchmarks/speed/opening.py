"""Workload D: a run of many small files, opened, and looked at while nothing comes."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.speed.measuring import Bench, Row, Workload, against, in_turn, once, seconds, table
from benchmarks.speed.trials import write_many
from evaluator.clock import SystemClock
from evaluator.trial.completeness import Waits
from evaluator.trial.opening import open_run
from evaluator.trial.trial import Trial

WORKERS = 10
SIZES = (1_000, 10_000, 100_000)
"""Index files."""
COMPARED = 8_000
"""Index files of the trial that the reference opens too: it takes quadratic time."""
POLLS = 20
LINEAR = 1.25
"""How much more a file may take in a trial ten times as large, to be called linear."""


@dataclass(frozen=True)
class Opened:
    """What it took to open a trial and to look once more."""

    seconds: float
    poll: float
    files: int
    listings: int
    """Requests for a listing in one poll."""
    listed: int
    """Entries that one poll was given."""


def open_trial(folder: Path | str, polls: int = POLLS) -> Opened:
    """Take every step of a run that is still followed, its index files read; then look again, in vain."""
    begin = time.perf_counter()
    source = open_run(str(folder))
    # nothing is waited for: all that is there is whole
    trial = Trial(source, SystemClock(), Waits(0, 0), following=True)
    files = sum(len(step.files) for step in trial.poll())
    took = time.perf_counter() - begin
    listings = source.store.requests.list
    begin = time.perf_counter()
    for _ in range(polls):
        assert not list(trial.poll())
    poll = (time.perf_counter() - begin) / polls
    listings = (source.store.requests.list - listings) // polls
    last = max(trial.progress(worker)[0] for worker in trial.workers)
    return Opened(took, poll, files, listings, len(source.sightings(from_step=last)))


def many_files(bench: Bench) -> list[Row]:
    """D."""
    trials = {size: _trial(bench, size) for size in SIZES}
    for trial in trials.values():
        open_trial(trial)
    opened = in_turn({str(size): partial(open_trial, trial) for size, trial in trials.items()}, bench.repeat)
    rows = []
    before: float | None = None
    for size in SIZES:
        runs = opened[str(size)]
        assert all(one.files == size for one in runs)
        took = statistics.median(one.seconds for one in runs)
        each = took / size
        growth = None if before is None else each / before
        rows.append(
            Row(
                "D",
                f"open {size:,} index files",
                seconds(took),
                "a tenth of the files",
                f"{1e6 * each:.3g} us a file" + ("" if growth is None else f", {growth:.2f}x"),
                "" if growth is None else f"linear: at most {LINEAR}x",
                None if growth is None else growth <= LINEAR,
            )
        )
        before = each
    rows += _against_reference(bench)
    # both end with a full folder of a thousand steps, which is what a look lists
    little, much = (statistics.median(one.poll for one in opened[str(size)]) for size in SIZES[1:])
    return [*rows, against("D", f"idle poll, {SIZES[2]:,} index files", much, f"{SIZES[1]:,}", little, LINEAR)]


def _against_reference(bench: Bench) -> list[Row]:
    reference = bench.reference
    if reference is None:
        return []
    trial = _trial(bench, COMPARED)

    def theirs() -> Opened:
        answer = reference.ask(do="look", trial=str(trial), polls=POLLS)
        return Opened(answer["seconds"], answer["poll"], answer["steps"] * WORKERS, 0, 0)

    ran = in_turn({"ours": lambda: open_trial(trial), "theirs": theirs}, bench.repeat)
    assert {one.files for runs in ran.values() for one in runs} == {COMPARED}
    took = {name: statistics.median(one.seconds for one in runs) for name, runs in ran.items()}
    poll = {name: statistics.median(one.poll for one in runs) for name, runs in ran.items()}
    return [
        against("D", f"open {COMPARED:,} index files", took["ours"], "smdebug", took["theirs"], 1 / 10),
        against("D", f"idle poll, {COMPARED:,} index files", poll["ours"], "smdebug", poll["theirs"]),
    ]


def _trial(bench: Bench, size: int) -> Path:
    # without an end: the run is followed
    def write(folder: Path) -> None:
        write_many(folder, steps=size // WORKERS, workers=WORKERS, ended=False)

    return once(bench.folder / f"many{size}", write)


WORKLOADS = (Workload("speed-opening", "D", lambda bench: table(many_files(bench))),)
