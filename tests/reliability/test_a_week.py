"""A job that follows a run for a week neither grows nor asks more than the first day."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

from evaluator.config.job_config import configure_rules
from evaluator.config.request import RuleRequest
from evaluator.ending import Ending, Limits, StopSignal
from evaluator.engine.local import LocalEngine
from evaluator.engine.partners import Partners
from evaluator.errors import KeyMissing
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.formats.collection_file import SavedCollection, encode_collections
from evaluator.formats.key_names import END_MARKER, collections_key, event_key, index_key
from evaluator.loop import Loop, Pace
from evaluator.outside import Outside
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.storage.base import Entry
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from evaluator.trial.completeness import Waits
from evaluator.trial.trial import Trial
from tests.saved_run import SavedRun

STEPS, SECONDS = 100_000, 7 * 86_400
INTERVAL = SECONDS / STEPS
WORKER = "worker_0"
RELIST = 86_400.0
POLL = 30.0
MIB = 2**20


class Endless(MemoryStore):
    """A run that saves a step every few seconds; files are made when they are read, so that they take no memory."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock=clock)
        self._began = clock.now()
        self._run = SavedRun(clock)
        self._fake = clock
        self._made: tuple[int, dict[str, bytes]] = (-1, {})

    @property
    def saved(self) -> int:
        """How many steps there are by now."""
        return min(STEPS, int((self._fake.now() - self._began) / INTERVAL))

    def list(self, prefix: str = "", start_after: str = "") -> list[Entry]:
        if not prefix.startswith("index"):
            return super().list(prefix, start_after)
        self.requests.list += 1
        first = _step(start_after) if start_after else 0
        keys = ((step, index_key(step, WORKER)) for step in range(first, self.saved))
        return [Entry(key, self._size(step), self._began + step * INTERVAL) for step, key in keys if key > start_after]

    def stat(self, key: str) -> Entry | None:
        if key == END_MARKER and self.saved == STEPS:
            return Entry(key, 0, self._began + SECONDS)
        return super().stat(key)

    def _held(self, key: str) -> bytes:
        if key.startswith("collections"):
            return super()._held(key)
        step = _step(key)
        if step >= self.saved:
            raise KeyMissing(key, "is not there yet")
        if self._made[0] != step:
            loss = np.float32(1.0 / math.log(step + 3))
            files = self._run.files(step, values={"loss": loss, "gradient/w": np.full(8, 0.1, np.float32)})
            self._made = (step, files)
        return self._made[1][key]

    def _size(self, step: int) -> int:
        """Of an index file; numbers of equal length make files of equal size, which is all that a listing needs."""
        digits = len(str(step))
        size = self._sizes.get(digits)
        if size is None:
            files = self._run.files(step, values={"loss": np.float32(1), "gradient/w": np.full(8, 0.1, np.float32)})
            size = self._sizes[digits] = len(files[index_key(step, WORKER)])
        return size

    _sizes: dict[int, int] = {}  # noqa: RUF012 - the same for all runs


def _step(key: str) -> int:
    found = re.search(r"(\d{12})_|(\d{12})", key)
    return int(found[1] or found[2]) if found else 0


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_a_week_of_a_hundred_thousand_steps_costs_what_its_first_day_does():
    clock = FakeClock()
    store = Endless(clock)
    named = {"losses": ["loss"], "gradients": ["gradient/w"]}
    saved = {name: SavedCollection(name, (), tuple(tensors)) for name, tensors in named.items()}
    store.write(collections_key(WORKER), encode_collections(saved, 1))
    names = ("NonFinite", "VanishingGradient", "LossNotDecreasing", "ExplodingTensor", "LossDiverging")
    rules, _, mistakes = configure_rules([RuleRequest(name, {}, "command line", name) for name in names], None, [])
    assert mistakes == []
    trial = Trial(SmdebugFolder(store), clock, Waits(30, 300), following=True, relist=RELIST)
    evaluation = Evaluation(rules, trial, Partners(trial.source, 2**26, lambda *_: None), following=True)
    engine, stop = LocalEngine(trial.source, 2**26), StopSignal("drain", 8, clock)
    marks: dict[int, tuple[int, int, int]] = {}

    def tell(findings: list[Finding]) -> None:
        assert findings == []
        day = int(clock.monotonic() // 86_400)
        marks.setdefault(day, (_resident(), len(list(Path("/proc/self/fd").iterdir())), store.requests.list))

    loop = Loop(trial, evaluation, engine, clock, stop, Pace(POLL, POLL, 30), tell)
    because = loop.follow(Ending(trial, clock, Limits(3600, 3600, 30), stop, Outside()))
    engine.close()

    memory, files, lists = zip(*(marks[day] for day in sorted(marks)), strict=True)
    per_day = np.diff(lists)
    assert (because, trial.counts.complete, trial.counts.late_files) == ("end_marker", STEPS, 0)
    assert memory[-1] - memory[1] < 32 * MIB
    # fewer is no fault: what tests before this one left open is closed at some time
    assert max(files) == files[0]
    # two listings and one look for the end marker per poll, two files per step, one whole listing a day
    polls = SECONDS / POLL
    assert per_day.max() <= 1.01 * 2 * 86_400 / POLL
    assert store.requests.get <= 1.01 * (2 * STEPS + polls)
    print({"memory MiB": [round(one / MIB) for one in memory], "lists per day": per_day.tolist()})  # noqa: T201


def test_the_collections_file_is_the_only_file_that_is_kept():
    store = Endless(FakeClock())
    store.write(collections_key(WORKER), b"{}")
    assert [entry.key for entry in store.list("collections")] == [collections_key(WORKER)]
    with pytest.raises(KeyMissing):
        store.read(event_key(5, WORKER))
