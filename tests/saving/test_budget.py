"""The disk that a writer may take: what is removed when, what is never removed, and what a reader makes of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.config.load import Arguments, load
from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.errors import FormatError, OutputError
from evaluator.formats.key_names import INDEX_PREFIX, parse_index_key
from evaluator.job import Job
from evaluator.modes import Mode
from evaluator.registry import builtin_rules
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.storage.base import Entry
from evaluator.storage.file import FileStore
from evaluator.testing import FakeClock, evaluate
from evaluator.writer import TrialWriter
from tests.saved_run import ScriptedClock

NAME = "VanishingGradient"


def steps(folder: Path, worker: str = "worker_0") -> list[int]:
    """The steps of one worker that have an index file."""
    keys = (path.relative_to(folder).as_posix() for path in folder.rglob("index/*/*.json"))
    parsed = filter(None, map(parse_index_key, keys))
    return sorted(step for step, of in parsed if of == worker)


def size(folder: Path) -> int:
    """The bytes of all steps."""
    return sum(path.stat().st_size for part in ("index", "events") for path in folder.glob(f"{part}/*/*"))


def save(writer: TrialWriter, *numbers: int, elements: int = 10) -> None:
    for number in numbers:
        writer.save(number, {"a": np.full(elements, number, np.float32)})


def test_the_last_steps_are_kept(tmp_path: Path):
    save(TrialWriter(tmp_path, keep_steps=3), *range(10))

    assert steps(tmp_path) == [7, 8, 9]


def test_nothing_of_a_removed_step_is_left(tmp_path: Path):
    save(TrialWriter(tmp_path, keep_steps=1), 0, 1, 2500)

    below = (path for part in ("index", "events") for path in tmp_path.glob(f"{part}/**/*"))

    assert {path.relative_to(tmp_path).as_posix() for path in below} == {
        "events/000000002500",
        "events/000000002500/000000002500_worker_0.tfevents",
        "index/000000002",
        "index/000000002/000000002500_worker_0.json",
    }


def test_the_bytes_are_never_more_than_allowed(tmp_path: Path):
    writer = TrialWriter(tmp_path, keep_bytes=5000)
    sizes = []
    for step in range(50):
        save(writer, step, elements=step * 7 % 300)
        sizes.append(size(tmp_path))

    assert 3000 < max(sizes) <= 5000


def test_a_step_that_is_too_large_is_refused_and_costs_no_other(tmp_path: Path):
    writer = TrialWriter(tmp_path, keep_bytes=5000)
    save(writer, 0)

    with pytest.raises(OutputError, match=r"writer: step 1 takes 8[0-9]{3} bytes; keep_bytes allows 5000"):
        save(writer, 1, elements=2000)

    assert steps(tmp_path) == [0]


def test_workers_share_the_bytes_and_leave_each_other_alone(tmp_path: Path):
    writers = [TrialWriter(tmp_path, worker=f"worker_{n}", num_workers=2, keep_bytes=4000) for n in range(2)]
    save(writers[0], 0)
    for step in range(1, 60):
        save(writers[1], step)

    assert steps(tmp_path) == [0]
    assert len(steps(tmp_path, "worker_1")) > 3
    assert size(tmp_path) <= 4000


def test_what_an_earlier_run_left_counts_oldest_first(tmp_path: Path):
    save(TrialWriter(tmp_path), 0, 10, 20)
    for at, step in enumerate((10, 20, 0)):
        for path in tmp_path.rglob(f"*{step:012d}_worker_0*"):
            os.utime(path, (at, at))

    save(TrialWriter(tmp_path, keep_steps=3), 11)

    assert steps(tmp_path) == [0, 11, 20]


def test_what_a_killed_writer_left_unfinished_goes(tmp_path: Path):
    save(TrialWriter(tmp_path), 0)
    unfinished = tmp_path / "events/000000000000/000000000000_worker_0.tfevents.tmp"
    unfinished.write_bytes(b"half")

    save(TrialWriter(tmp_path, keep_steps=3), 1)

    assert not unfinished.exists()


def test_a_step_that_is_saved_again_is_not_in_its_own_way(tmp_path: Path):
    writer = TrialWriter(tmp_path, keep_steps=2)
    save(writer, 0, 1, 1, 1, 1)

    assert steps(tmp_path) == [0, 1]


@pytest.mark.parametrize("limit", [{"keep_steps": 0}, {"keep_steps": -1}])
def test_a_limit_that_leaves_nothing_is_refused(tmp_path: Path, limit: dict[str, Any]):
    with pytest.raises(FormatError, match="1 or more, or None for no limit"):
        TrialWriter(tmp_path, **limit)


def follow(folder: Path, clock: ScriptedClock) -> Any:
    """Follow a run with a rule whose history is longer than what stays in the folder."""
    rules = ["NonFinite", "WeightUpdateRatio:num_steps=100", "VanishingGradient:parameter_set=sagemaker"]
    arguments = Arguments(trial=str(folder / "trial"), output=str(folder / "out"), follow=True, rules=rules)
    return Job(load(arguments, {}), clock).run()


def test_a_follower_judges_every_step_before_it_goes(tmp_path: Path):
    clock = ScriptedClock()
    writer = TrialWriter(tmp_path / "trial", keep_steps=5, collections={"weights": ["w"], "gradients": ["g"]})

    def one(step: int) -> None:
        value = np.nan if step == 12 else 1.0
        writer.save(step, {"w": np.full(4, value, np.float32), "g": np.ones(4, np.float32)}, mode=Mode.TRAIN)

    for step in range(40):
        clock.at(40.0 * step, partial(one, step))
    clock.at(1600.0, writer.close)
    result = follow(tmp_path, clock)

    rules = {rule.Rule: rule for rule in result.status.rules}
    assert (result.status.job.steps.complete, result.status.job.ended_because) == (40, "end_marker")
    assert rules["NonFinite"].Finding is not None
    assert rules["NonFinite"].Finding.step == 12
    assert rules["VanishingGradient"].Evaluation.evaluated == 40


def test_a_follower_that_is_too_slow_judges_what_is_left_and_is_done(tmp_path: Path):
    clock = ScriptedClock()
    writer = TrialWriter(tmp_path / "trial", keep_steps=2, collections={"weights": ["w"], "gradients": ["g"]})

    def burst(first: int) -> None:
        for step in range(first, first + 30):
            writer.save(step, {"w": np.ones(4, np.float32), "g": np.ones(4, np.float32)}, mode=Mode.TRAIN)

    for first in range(0, 300, 30):
        clock.at(100.0 + 10 * first, partial(burst, first))
    clock.at(5000.0, writer.close)
    result = follow(tmp_path, clock)

    assert result.status.job.ended_because == "end_marker"
    assert {rule.RuleEvaluationStatus for rule in result.status.rules} == {"NoIssuesFound"}
    assert 2 <= result.status.job.steps.complete <= 300


class Moving(FileStore):
    """A folder in which something goes on whenever it was listed."""

    def __init__(self, folder: Path, goes_on: Callable[[], None]) -> None:
        super().__init__(folder)
        self._goes_on = goes_on

    def list(self, prefix: str = "", start_after: str = "") -> list[Entry]:
        found = super().list(prefix, start_after)
        if prefix == INDEX_PREFIX:
            self._goes_on()
        return found


def test_steps_that_go_between_being_listed_and_being_read_are_counted(tmp_path: Path):
    writer = TrialWriter(tmp_path, keep_steps=4, collections={"gradients": ["g"]})

    def one(step: int) -> None:
        writer.save(step, {"g": np.ones(4, np.float32)}, mode=Mode.TRAIN)

    for step in range(4):
        one(step)
    more = iter(range(4, 6))

    def go_on() -> None:
        for step in more:
            one(step)

    source = SmdebugFolder(Moving(tmp_path, go_on))
    made = configure(RuleRequest(NAME, {"parameter_set": "sagemaker"}, "command line", NAME), builtin_rules()[NAME])
    assert isinstance(made, RuleConfiguration)
    result = evaluate(source, [made])

    assert result.failure == ""
    assert result.evaluated == result.status.job.steps.complete
    assert (result.status.job.steps.unreadable, result.status.job.steps.last) == (2, 3)


def test_a_clock_is_not_needed_to_keep_steps(tmp_path: Path):
    save(TrialWriter(tmp_path, keep_steps=1, clock=FakeClock()), 3, 2, 1)

    assert steps(tmp_path) == [1]
