"""A file that is uploaded twice, by a store that tells whole seconds only, costs no step."""

from __future__ import annotations

import math
import random
from functools import partial
from pathlib import Path

import pytest

from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.storage.memory import MemoryStore
from evaluator.trial.completeness import Waits
from evaluator.trial.trial import Step, Trial
from tests.reliability.runs import STEPS, finished_run
from tests.reliability.writer_process import plan
from tests.saved_run import ScriptedClock


class WholeSeconds(MemoryStore):
    """A store whose times are as coarse as those of S3."""

    def write(self, key: str, data: bytes) -> None:
        self._objects[key] = (bytes(data), float(math.floor(self._clock.now())))


@pytest.mark.parametrize("phase", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("seed", [1, 4, 6, 7, 22, 24, 28, 30, 31])
def test_every_step_is_taken_however_its_files_are_uploaded(tmp_path: Path, seed: int, phase: float):
    clock = ScriptedClock()
    clock.advance(phase)
    store = WholeSeconds(clock=clock)
    dice = random.Random(7 * seed + 1)  # noqa: S311 - a test repeats itself
    began, stretch = clock.monotonic(), dice.choice([1, 2, 4])
    acts = plan(finished_run(tmp_path, seed), seed, 0.05)
    for act in acts:
        clock.at(began + act.at * stretch, partial(store.write, act.key, act.content))
    trial = Trial(SmdebugFolder(store), clock, Waits(4, 8), following=True, relist=1)
    taken: list[int] = []

    def note(step: Step) -> None:
        if step.restarted:
            taken.clear()
        taken.append(step.number)
        trial.judged(step)

    while clock.monotonic() < began + acts[-1].at * stretch + 20:
        for step in trial.poll():
            note(step)
        clock.wait(dice.uniform(0.05, 0.4) * stretch)
    for step in trial.finish():
        note(step)

    assert taken == [3 * number for number in range(STEPS)]
    assert trial.counts.late_files == 0
