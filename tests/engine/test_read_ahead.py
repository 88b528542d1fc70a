"""Steps that were read ahead are judged as if each had been read in its turn."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.ending import StopSignal
from evaluator.engine.local import LocalEngine
from evaluator.engine.partners import Partners
from evaluator.errors import StorageUnavailable
from evaluator.evaluation import Evaluation
from evaluator.loop import Loop, Pace
from evaluator.rule import (
    Accumulator,
    Measure,
    OtherWorker,
    Previous,
    Rule,
    RuleParameters,
    Selection,
    Summary,
    Verdict,
    Window,
)
from evaluator.segments import Floats, Segments
from evaluator.sources.base import Sighting, StepFile
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.storage.file import FileStore
from evaluator.testing import FakeClock
from evaluator.trial.completeness import Waits
from evaluator.trial.trial import Trial
from evaluator.writer import TrialWriter

STEPS = 60
GRACE = 30.0


class Folder(SmdebugFolder):
    """A trial of which one index file cannot be asked for."""

    def __init__(self, folder: Path, unanswered: int | None = None) -> None:
        super().__init__(FileStore(str(folder)))
        self._unanswered = unanswered

    def open(self, sighting: Sighting) -> Sequence[StepFile]:
        if sighting.step == self._unanswered:
            raise StorageUnavailable("index", "EIO", "no answer")
        return super().open(sighting)


class Job:
    """A trial and rules, with the loop around them."""

    def __init__(self, source: SmdebugFolder, *rules: Rule, clock: FakeClock | None = None, **loop: Any) -> None:
        clock = clock or FakeClock()
        following = clock.now() > 0
        self.trial = Trial(source, clock, Waits(late_grace=GRACE, worker_quorum=0), following=following)
        self.partners = Partners(source, 2**28, lambda *_: None)
        configured = [_configured(rule, **(loop if rule.name == "First" else {})) for rule in rules]
        self.evaluation = Evaluation(configured, self.trial, self.partners, following=following)
        self.engine = LocalEngine(source, 2**28)
        stop = StopSignal("stop", 10, clock)
        self.loop = Loop(self.trial, self.evaluation, self.engine, clock, stop, Pace(1, 5, GRACE), lambda _: None)

    def read(self) -> dict[str, tuple[int | None, str | None]]:
        """Read once; per rule its last step and what ended it."""
        try:
            self.loop.read_once()
        finally:
            self.engine.close()
        return {run.configuration.name: (run.counts.last_step, run.failure) for run in self.evaluation.runs}


def _configured(rule: Rule, **loop: Any) -> RuleConfiguration:
    found = configure(RuleRequest(rule.name, loop, "ours", rule.name, rule.name), rule)
    assert isinstance(found, RuleConfiguration), found
    return found


def rule(need: Summary, condition: Callable[..., Verdict] | None = None, *, name: str = "First") -> Rule:
    return Rule(name, "warning", RuleParameters, lambda _: [need], condition or (lambda *_: None))


def of(tensor: str, by: Measure | str = "max", **more: Any) -> Summary:
    return Summary(Selection(names=(tensor,)), by=by, **more)


def written(folder: Path, workers: int = 1) -> Path:
    """`a` is the step, `b` stays, `c` is of the same size as `b`."""
    for worker in range(workers):
        with TrialWriter(folder, worker=f"worker_{worker}", num_workers=workers) as writer:
            for step in range(STEPS):
                values = {"a": np.full(4, float(step)), "b": np.full(3, -1.0), "c": np.full(3, float(step))}
                writer.save(step, values, wall_time=1.0 + step)
    return folder


def met_at(step: int) -> Callable[..., Verdict]:
    return lambda window, _: window.met(window.saved[-1]) if window.values[-1, 0] == step else None


def test_what_only_an_ended_rule_wanted_fails_no_other_rule(tmp_path: Path):
    def strict(segments: Segments) -> Floats:
        if bool((segments.flat == 40).any()):
            raise ValueError("for the first rule only")
        return segments.max(segments.flat)

    measure = Measure(strict)
    ended = Job(
        Folder(written(tmp_path)), rule(of("a", measure), met_at(33)), rule(of("b", measure), name="Second")
    ).read()

    assert ended == {"First": (33, None), "Second": (STEPS - 1, None)}


@pytest.mark.parametrize("ends", [{"end_step": 20}, {}], ids=["end_step", "finding"])
def test_the_history_of_an_ended_rule_ends_with_it(tmp_path: Path, ends: dict[str, Any]):
    last = 20 if ends else 33
    folds: list[int] = []

    def add(state: dict[str, Any], row: Any) -> dict[str, Any]:
        folds.append(row.step)
        return state

    folded = of("a", state=Accumulator(dict, add))
    compared = of("b", Measure(lambda now, before: now.max(now.flat - before.flat)), partner=Previous())
    first = Rule(
        "First",
        "warning",
        RuleParameters,
        lambda _: [of("a"), folded, compared],
        lambda window, *_: met_at(33)(window, None),
    )
    job = Job(Folder(written(tmp_path)), first, rule(of("c"), name="Second"), **ends)

    job.read()

    assert folds == list(range(last + 1))
    (window, *_) = job.evaluation.runs[0].arguments(job.evaluation.progress.view())  # type: ignore[union-attr]
    assert isinstance(window, Window)
    assert window.steps.tolist() == [last]
    assert job.partners._held == {}


def test_numbers_of_a_rule_do_not_depend_on_what_others_want(tmp_path: Path):
    random = np.random.default_rng(0)
    with TrialWriter(tmp_path) as writer:
        for step in range(STEPS):
            sizes = {"a": 4999, "b": 300, "c": 77, "d": 300}
            values = {name: random.standard_normal(size) * 1e3 for name, size in sizes.items()}
            writer.save(step, values | {"e": random.standard_normal(9001)}, wall_time=1.0 + step)

    def seen(*others: Rule, reduction: str) -> list[bytes]:
        rows: list[bytes] = []

        def note(window: Window, _: Any) -> None:
            rows.append(np.ascontiguousarray(window.values).tobytes())

        need = Summary(Selection(regexes=("[ae]$",)), by=reduction)
        Job(Folder(tmp_path), rule(need, note, name="Second"), *others).read()
        return rows

    for reduction in ("sum", "variance", "l2"):
        beside = rule(Summary(Selection(), by=reduction), met_at(10**6))
        assert seen(reduction=reduction) == seen(beside, reduction=reduction)


def test_event_files_that_come_while_others_are_waited_for_are_read(tmp_path: Path):
    written(tmp_path)
    events = {step: next(tmp_path.glob(f"events/{step:012d}/*.tfevents")) for step in (3, 4, 5)}
    late = {step: path.read_bytes() for step, path in events.items()}
    for path in events.values():
        path.unlink()

    class Clock(FakeClock):
        """While step 3 is waited for, the files of later ones come."""

        def wait(self, seconds: float) -> bool:
            for step in (4, 5):
                events[step].write_bytes(late[step])
            return super().wait(seconds)

    judged: list[int] = []
    clock = Clock(events[4].parent.stat().st_mtime)
    note = rule(of("a"), lambda window, _: judged.append(int(window.steps[-1])))
    job = Job(Folder(tmp_path), note, clock=clock)
    try:
        for _ in range(2):
            job.loop._take(job.trial.poll())
            clock.advance(2 * GRACE)
    finally:
        job.engine.close()

    assert judged == [step for step in range(STEPS) if step != 3]


@pytest.mark.parametrize("unanswered", [0, 1, 2, 25, 59])
def test_steps_before_one_that_the_storage_does_not_tell_of_are_judged(tmp_path: Path, unanswered: int):
    judged: list[int] = []
    job = Job(
        Folder(written(tmp_path), unanswered), rule(of("a"), lambda window, _: judged.append(int(window.steps[-1])))
    )

    with pytest.raises(StorageUnavailable, match="EIO"):
        job.read()

    assert judged == list(range(unanswered))


def test_workers_that_were_only_read_ahead_are_not_told_of(tmp_path: Path):
    writers = [TrialWriter(tmp_path, worker=f"worker_{at}", num_workers=2) for at in range(2)]
    for step in range(STEPS):
        for at, writer in enumerate(writers):
            if at == 0 or step >= 25:
                writer.save(step, {"a": np.full(4, float(step))}, wall_time=1.0 + step)
    job = Job(Folder(tmp_path), rule(of("a")), end_step=22)

    job.read()

    assert job.trial.writers == ["worker_0"]


def test_a_comparison_fails_only_the_rule_that_asked_for_it(tmp_path: Path):
    def of_fours(now: Segments, other: Segments) -> Floats:
        if any(count != 4 for count in now.counts):
            raise ValueError("not of four")
        return now.max(np.abs(now.flat - other.flat))

    def moved(now: Segments, other: Segments) -> Floats:
        return now.max(np.abs(now.flat - other.flat))

    ended = Job(
        Folder(written(tmp_path, workers=2)),
        rule(of("a", Measure(of_fours), partner=OtherWorker())),
        rule(of("b", Measure(moved), partner=Previous()), name="Second"),
        rule(of("a", Measure(of_fours), partner=Previous()), name="Third"),
    ).read()

    assert ended == dict.fromkeys(("First", "Second", "Third"), (STEPS - 1, None))


@pytest.mark.parametrize(
    "of_two", [lambda low, high: np.stack([low, high]), lambda low, _: low], ids=["turned", "flat"]
)
def test_results_of_a_wrong_shape_are_not_mixed_up_between_steps(tmp_path: Path, of_two: Callable[..., Any]):
    def wrong(segments: Segments) -> Any:
        return of_two(segments.min(segments.flat), segments.max(segments.flat))

    rows: list[list[list[float]]] = []
    need = Summary(Selection(names=("b", "c")), by=Measure(wrong, width=2))
    ended = Job(Folder(written(tmp_path)), rule(need, lambda window, _: rows.append(window.values[-1].tolist()))).read()

    assert ended["First"][1] is None
    # as they are put in one step after the other: minima of both tensors, then maxima, or both in one row
    assert rows == [[[-1.0, float(step)], [-1.0, float(step)]] for step in range(STEPS)]


def test_results_of_many_steps_are_within_the_budget(tmp_path: Path):
    values = {f"w{at}": np.float32(at) for at in range(2000)}
    with TrialWriter(tmp_path) as writer:
        for step in range(64):
            writer.save(step, values, wall_time=1.0 + step)

    def wide(segments: Segments) -> Floats:
        return np.zeros((len(segments), 100))

    source = Folder(tmp_path)
    job = Job(source, rule(of("w7", Measure(wide, width=100))))
    job.engine.close()
    job.engine = LocalEngine(source, 2**22)
    list(job.engine.ahead([], job.evaluation.plan_of))
    tracemalloc.start()
    try:
        for summary in job.engine.ahead(job.trial.finish(), job.evaluation.plan_of):
            del summary
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        job.engine.close()

    # one step alone takes 1.6 MB
    assert peak < 12 * 2**20


@pytest.mark.parametrize("within", [None, 1, 5])
def test_earlier_values_that_are_held_hold_no_others_in_memory(tmp_path: Path, within: int | None):
    def moved(now: Segments, before: Segments) -> Floats:
        return now.max(np.abs(now.flat - before.flat))

    job = Job(Folder(written(tmp_path)), rule(of("a", Measure(moved), partner=Previous(within))))
    for summary in job.engine.ahead(job.trial.finish(), job.evaluation.plan_of):
        job.evaluation.judge(summary)
    job.engine.close()

    held = [older.kept for several in job.partners._held.values() for older in several]
    assert len(held) == (within or 0) + 1 if within else len(held) == 1
    for kept in held:
        assert kept is not None
        for _, segments in kept.joined:
            base = segments.flat.base
            assert base is None or base.nbytes <= 2 * segments.flat.nbytes
