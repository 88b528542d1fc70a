"""Following a run to its end: what is taken when, what ends it, and that no wait is without a bound."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration
from evaluator.ending import Ending, Limits, StopSignal
from evaluator.engine.local import LocalEngine
from evaluator.engine.partners import Partners
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.formats.key_names import END_MARKER, event_key, index_key
from evaluator.loop import Loop, Pace
from evaluator.needs import Progress, Selection, Summary
from evaluator.outside import Outside
from evaluator.rule import LoopParameters, Rule, RuleParameters
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.status import EndedBecause
from evaluator.storage.memory import MemoryStore
from evaluator.trial.completeness import Waits
from evaluator.trial.trial import Trial
from evaluator.window import Met, ProgressView, Verdict, Window
from tests.saved_run import SavedRun, ScriptedClock

POLL_MIN, POLL_MAX = 1.0, 30.0
GRACE, QUORUM = 30.0, 300.0
START, IDLE = 3600.0, 1800.0
STOP_GRACE = 8.0
MEMORY = 2**28
INTERVAL = 10.0
"""Seconds between two steps of the runs that are saved here."""

LOOP = LoopParameters.model_validate({"on_finding": "continue"})

Row = tuple[int, tuple[tuple[str, str, float], ...]]


class Watching:
    """One job over a run, with a rule that fires above 100 and rules that note what they are shown."""

    def __init__(self, run: SavedRun, *, following: bool = True, mode: Literal["drain", "stop"] = "drain") -> None:
        self.run = run
        self.clock = run.clock
        self.rows: list[Row] = []
        self.idle: list[float] = []
        self.ends: list[bool] = []
        self.findings: list[Finding] = []
        self.process_lives = True
        self.stop = StopSignal(mode, STOP_GRACE, self.clock)
        self.trial = Trial(SmdebugFolder(run.store), self.clock, Waits(GRACE, QUORUM), following=following)
        partners = Partners(self.trial.source, MEMORY, lambda *_: None)
        self.evaluation = Evaluation(self._rules(), self.trial, partners, following=following)
        self.after_step: Callable[[int], object] = lambda _: None

    def follow(self, *, watched: bool = False) -> EndedBecause:
        ending = Ending(
            self.trial,
            self.clock,
            Limits(START, IDLE, GRACE),
            self.stop,
            Outside((lambda: self.process_lives) if watched else None),
        )
        return self._with_loop(lambda loop: loop.follow(ending))

    def read_once(self) -> EndedBecause:
        return self._with_loop(Loop.read_once)

    @property
    def steps(self) -> list[int]:
        return [step for step, _ in self.rows]

    @property
    def told(self) -> list[tuple[Any, ...]]:
        """What was found, without times."""
        return [
            (
                one.id,
                one.event,
                one.step,
                one.worker,
                one.tensor,
                one.measured,
                one.affected.tensors if one.affected else 0,
            )
            for one in self.findings
        ]

    def _with_loop(self, run: Callable[[Loop], EndedBecause]) -> EndedBecause:
        engine = LocalEngine(self.trial.source, MEMORY)
        pace = Pace(POLL_MIN, POLL_MAX, GRACE)
        try:
            return run(Loop(self.trial, self.evaluation, engine, self.clock, self.stop, pace, self.findings.extend))
        finally:
            engine.close()

    def _rules(self) -> Sequence[RuleConfiguration]:
        everything = [Summary(Selection(), by="max")]
        rules = [
            Rule("Above", "error", RuleParameters, lambda _: everything, above),
            Rule("Notes", "info", RuleParameters, lambda _: everything, self._note),
            Rule(
                "Waits", "info", RuleParameters, lambda _: [Progress()], self._note_idle, at=frozenset({"idle", "end"})
            ),
        ]
        return [RuleConfiguration(rule.name, rule, RuleParameters(), LOOP, "error") for rule in rules]

    def _note(self, window: Window, _: RuleParameters) -> Verdict:
        step = int(window.steps[-1])
        saved = np.flatnonzero(window.saved[-1]).tolist()
        columns = [(window.columns[at].tensor, window.columns[at].worker, float(window.values[-1, at])) for at in saved]
        self.rows.append((step, tuple(columns)))
        self.after_step(step)
        return None

    def _note_idle(self, progress: ProgressView, _: RuleParameters) -> Verdict:
        (self.ends if progress.ended else self.idle).append(True)
        return None


def above(window: Window, _: RuleParameters) -> Met | None:
    """The newest value is above 100."""
    high = window.saved[-1] & (window.values[-1] > 100)
    return window.met(high, limit=100.0) if high.any() else None


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


@pytest.fixture
def run(clock: ScriptedClock) -> SavedRun:
    run = SavedRun(clock)
    run.announce()
    return run


@pytest.fixture
def pair(clock: ScriptedClock) -> SavedRun:
    run = SavedRun(clock, num_workers=2)
    run.announce("worker_0", "worker_1")
    return run


# reading once


def test_reading_once_judges_everything_and_waits_for_nothing(pair: SavedRun, clock: ScriptedClock):
    for step in range(5):
        pair.save(step, "worker_0")
    job = Watching(pair, following=False)

    assert (job.read_once(), job.steps, clock.waits, len(job.ends)) == ("read_once", [0, 1, 2, 3, 4], [], 1)


def test_reading_an_empty_run_once_ends(run: SavedRun):
    job = Watching(run, following=False)

    assert (job.read_once(), job.rows) == ("read_once", [])


def test_an_issue_that_is_still_there_is_closed_at_the_end(run: SavedRun):
    run.save(0, values={"x": np.full(1, 500.0)})
    job = Watching(run, following=False)
    job.read_once()

    assert [(finding.event, finding.step) for finding in job.findings] == [("met", 0), ("cleared", 0)]


@pytest.mark.parametrize("following", [False, True])
def test_a_stop_signal_while_steps_are_judged_closes_what_is_open(run: SavedRun, following: bool):
    for step in range(5):
        run.save(step, values={"x": np.full(1, 500.0)})
    job = Watching(run, following=following, mode="stop")
    job.after_step = lambda step: job.stop.request() if step == 2 else None
    because = job.follow() if following else job.read_once()

    assert (because, job.steps, [one.event for one in job.findings]) == ("stop_signal", [0, 1, 2], ["met", "cleared"])


# the end marker


def test_the_end_marker_ends_a_run_after_the_grace_time_and_two_quiet_listings(run: SavedRun, clock: ScriptedClock):
    run.save(0)
    clock.at(100, lambda: run.save(1))
    clock.at(100, run.end)
    job = Watching(run)

    assert (job.follow(), job.steps) == ("end_marker", [0, 1])
    assert 100 + GRACE <= clock.monotonic() <= 100 + GRACE + 2 * POLL_MAX


def test_one_worker_s_end_marker_does_not_end_the_others(pair: SavedRun, clock: ScriptedClock):
    """Each local worker writes the marker; the reference drops all that comes a second after the first one."""
    for step in range(20):
        clock.at(step * 20, lambda step=step: pair.save(step, "worker_0"))  # type: ignore[misc]
        clock.at(step * 20 + 15, lambda step=step: pair.save(step, "worker_1"))  # type: ignore[misc]
    clock.at(50, pair.end)
    job = Watching(pair)

    assert (job.follow(), job.steps) == ("end_marker", list(range(20)))
    assert clock.monotonic() >= 19 * 20 + 15 + GRACE
    assert all(len(columns) == 2 for _, columns in job.rows)


def test_a_marker_that_is_taken_away_again_counts_from_anew(run: SavedRun, clock: ScriptedClock):
    run.save(0)
    run.end()
    clock.at(20, lambda: run.store.delete(END_MARKER))
    clock.at(500, run.end)
    job = Watching(run)

    assert job.follow() == "end_marker"
    assert clock.monotonic() >= 500 + GRACE


def test_without_a_grace_time_two_quiet_listings_are_needed_all_the_same(run: SavedRun, clock: ScriptedClock):
    run.save(0)
    run.end()
    trial = Watching(run).trial
    ending = Ending(trial, clock, Limits(START, IDLE, 0.0), StopSignal("drain", STOP_GRACE, clock), Outside())
    reasons = []
    for _ in range(3):
        list(trial.poll())
        reasons.append(ending.reason())
        clock.advance(1)

    assert reasons == [None, None, "end_marker"]


def test_a_finished_run_is_followed_to_its_end(run: SavedRun, clock: ScriptedClock):
    for step in range(50):
        run.save(step)
    run.end()
    job = Watching(run)

    assert (job.follow(), job.steps) == ("end_marker", list(range(50)))
    assert clock.monotonic() <= GRACE + 2 * POLL_MAX


def test_steps_that_come_with_the_end_are_all_judged_once(run: SavedRun, clock: ScriptedClock):
    """Training ran 90 steps, the hosted rule ended at 60: the last files were loaded and never evaluated."""
    for step in range(90):
        clock.at(100, lambda step=step: run.save(step))  # type: ignore[misc]
    clock.at(100, run.end)
    job = Watching(run)

    assert (job.follow(), job.steps) == ("end_marker", list(range(90)))


def test_a_run_that_only_has_an_end_marker_ends(run: SavedRun):
    run.end()
    job = Watching(run)

    assert (job.follow(), job.rows, len(job.ends)) == ("end_marker", [], 1)


def test_steps_that_wait_for_a_worker_are_judged_at_the_end(pair: SavedRun, clock: ScriptedClock):
    pair.save(0, "worker_0")
    pair.save(1, "worker_0")
    clock.at(5, pair.end)
    job = Watching(pair)

    assert (job.follow(), job.steps, job.trial.counts.partial) == ("end_marker", [0, 1], 2)
    assert clock.monotonic() < QUORUM


# time-outs


def test_a_run_in_which_nothing_is_saved_ends_at_the_start_timeout(run: SavedRun, clock: ScriptedClock):
    job = Watching(run)

    assert job.follow() == "start_timeout"
    assert START <= clock.monotonic() <= START + POLL_MAX


def test_a_run_that_falls_silent_ends_at_the_idle_timeout(run: SavedRun, clock: ScriptedClock):
    clock.at(1000, lambda: run.save(0))
    job = Watching(run)

    assert (job.follow(), job.steps) == ("idle_timeout", [0])
    assert 1000 + IDLE <= clock.monotonic() <= 1000 + IDLE + 2 * POLL_MAX


def test_judging_for_longer_than_the_idle_timeout_is_no_idleness(run: SavedRun, clock: ScriptedClock):
    """What came while a long backlog was judged must be looked at before the run is called silent."""
    run.save(0)
    job = Watching(run)

    def take_long(step: int) -> None:
        if step < 3:
            clock.advance(3 * IDLE)
            run.save(step + 1)

    job.after_step = take_long

    assert (job.follow(), job.steps) == ("idle_timeout", [0, 1, 2, 3])


def test_idle_rules_are_asked_while_nothing_comes_and_once_at_the_end(run: SavedRun, clock: ScriptedClock):
    run.save(0)
    clock.at(200, run.end)
    job = Watching(run)
    job.follow()

    assert (len(job.idle) > 3, len(job.ends)) == (True, 1)


def test_polls_are_further_apart_while_nothing_comes_and_close_again_after(run: SavedRun, clock: ScriptedClock):
    run.save(0)
    clock.at(500, lambda: run.save(1))
    clock.at(500, run.end)
    Watching(run).follow()

    assert (clock.waits[0], max(clock.waits), clock.waits.count(POLL_MIN)) == (POLL_MIN, POLL_MAX, 2)


# the watched process


def test_the_end_of_the_watched_process_ends_the_run(pair: SavedRun, clock: ScriptedClock):
    pair.save(0, "worker_0", "worker_1")
    job = Watching(pair)

    def dies() -> None:
        pair.save(1, "worker_0")
        job.process_lives = False

    clock.at(50, dies)

    assert (job.follow(watched=True), job.steps, job.trial.counts.partial) == ("watched_process_ended", [0, 1], 1)
    assert clock.monotonic() <= 50 + POLL_MAX


# signals


@pytest.mark.parametrize("following", [False, True])
def test_steps_that_were_only_read_ahead_do_not_count(run: SavedRun, following: bool):
    """A job over 90 steps that ended at step 3 said: complete 9, last 8; the same job, following: complete 3."""
    for step in range(90):
        run.save(step, values={"x": np.full(2**17, 1.0)})
    run.end()
    job = Watching(run, following=following)
    job.evaluation.active[:] = job.evaluation.active[:2]
    job.after_step = lambda step: setattr(job.evaluation, "_active", []) if step == 3 else None
    because = job.follow() if following else job.read_once()

    assert (because, job.trial.counts.complete, job.trial.counts.last) == ("all_rules_ended", 4, 3)


def test_draining_takes_what_is_saved(pair: SavedRun, clock: ScriptedClock):
    job = Watching(pair)

    def stop() -> None:
        for step in range(10):
            pair.save(step, "worker_0")
        job.stop.request()

    clock.at(40, stop)

    assert (job.follow(), job.steps, len(job.ends)) == ("stop_signal", list(range(10)), 1)
    assert clock.monotonic() == 40


def test_draining_is_bounded_by_the_grace(run: SavedRun, clock: ScriptedClock):
    job = Watching(run)
    job.after_step = lambda _: clock.advance(3)

    def stop() -> None:
        for step in range(100):
            run.save(step)
        job.stop.request()

    clock.at(40, stop)

    assert (job.follow(), job.steps) == ("stop_signal", [0, 1, 2])
    assert clock.monotonic() <= 40 + STOP_GRACE + 3


def test_stopping_at_once_takes_nothing_more(run: SavedRun, clock: ScriptedClock):
    job = Watching(run, mode="stop")
    clock.at(40, lambda: run.save(0))
    clock.at(40, job.stop.request)

    assert (job.follow(), job.steps) == ("stop_signal", [])


def test_a_second_request_does_not_lengthen_the_grace(run: SavedRun, clock: ScriptedClock):
    stop = StopSignal("drain", STOP_GRACE, clock)
    stop.request()
    clock.advance(STOP_GRACE - 1)
    stop.request()
    before = stop.now
    clock.advance(1)

    assert (before, stop.requested, stop.now) == (False, True, True)


def test_a_signal_ends_the_wait_for_an_event_file(run: SavedRun, clock: ScriptedClock):
    files = run.files(0)
    run.put({index_key(0, "worker_0"): files[index_key(0, "worker_0")]})
    job = Watching(run)
    clock.at(3, job.stop.request)

    assert (job.follow(), job.rows, job.trial.counts.unreadable) == ("stop_signal", [], 1)
    assert clock.monotonic() == 3


# event files


@pytest.mark.parametrize("present", [b"", b"half"], ids=["missing", "cut"])
def test_an_event_file_that_comes_after_its_index_file_is_waited_for(
    run: SavedRun, clock: ScriptedClock, present: bytes
):
    files = run.files(0, values={"x": np.full(3, 5.0)})
    event = event_key(0, "worker_0")
    run.put({index_key(0, "worker_0"): files[index_key(0, "worker_0")]})
    if present:
        run.store.write(event, files[event][:30])
    clock.at(GRACE - 5, lambda: run.store.write(event, files[event]))
    clock.at(GRACE - 5, run.end)
    job = Watching(run)

    assert (job.follow(), job.rows) == ("end_marker", [(0, (("x", "worker_0", 5.0),))])
    assert job.trial.counts.unreadable == 0


def test_an_event_file_that_never_comes_is_counted_and_the_rest_goes_on(run: SavedRun, clock: ScriptedClock):
    for step in range(5):
        run.save(step)
    run.store.delete(event_key(2, "worker_0"))
    clock.at(GRACE + 10, run.end)
    job = Watching(run)

    assert (job.follow(), job.steps, job.trial.counts.unreadable) == ("end_marker", [0, 1, 3, 4], 1)
    assert "step 2, worker_0" in job.trial.problems


def test_event_files_missing_for_long_are_not_waited_for(run: SavedRun, clock: ScriptedClock):
    for step in range(100):
        run.save(step)
        run.store.delete(event_key(step, "worker_0"))
    clock.advance(1000)
    run.end()
    began = clock.monotonic()
    job = Watching(run)

    assert (job.follow(), job.trial.counts.unreadable) == ("end_marker", 100)
    assert clock.monotonic() - began <= GRACE + 2 * POLL_MAX


def test_a_hundred_missing_event_files_are_waited_for_together(run: SavedRun, clock: ScriptedClock):
    for step in range(100):
        run.save(step)
        run.store.delete(event_key(step, "worker_0"))
    run.end()
    job = Watching(run)

    assert (job.follow(), job.trial.counts.unreadable) == ("end_marker", 100)
    assert clock.monotonic() <= 2 * GRACE + 2 * POLL_MAX


@pytest.mark.parametrize("skew", [1e6, float("inf")])
def test_a_file_from_the_future_is_not_waited_for_longer(run: SavedRun, clock: ScriptedClock, skew: float):
    store = run.store
    assert isinstance(store, MemoryStore)
    run.save(0)
    store.delete(event_key(0, "worker_0"))
    key = index_key(0, "worker_0")
    store._objects[key] = (store.read(key), clock.now() + skew)
    job = Watching(run)
    clock.at(GRACE + 10, run.end)

    assert (job.follow(), job.trial.counts.unreadable) == ("end_marker", 1)
    assert clock.monotonic() <= 2 * GRACE + 4 * POLL_MAX


# training that goes back


def test_training_that_goes_back_is_judged_anew(run: SavedRun, clock: ScriptedClock):
    for step in range(10):
        clock.at(step * INTERVAL, lambda step=step: run.save(step, values={"x": np.full(1, 1.0)}))  # type: ignore[misc]
    for step in range(5, 12):
        clock.at(100 + step * INTERVAL, lambda step=step: run.save(step, values={"x": np.full(1, 2.0)}))  # type: ignore[misc]
    clock.at(300, run.end)
    job = Watching(run)
    job.follow()

    assert [(step, columns[0][2]) for step, columns in job.rows] == [
        *((step, 1.0) for step in range(10)),
        *((step, 1.0) for step in range(5)),
        *((step, 2.0) for step in range(5, 12)),
    ]
    assert (job.trial.counts.complete, "restart at step 5" in job.trial.problems) == (12, True)


# a run that grows gives what the finished one gives


class Growing:
    """Three workers whose files come in a random order, some cut at first, some under other names, some never."""

    WORKERS = ("worker_0", "worker_1", "worker_2")

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - a repeatable order is what is wanted
        self.clock = ScriptedClock(limit=20_000)
        self.run = SavedRun(self.clock, num_workers=3)
        self.last = 0.0
        steps = sorted(self.dice.sample(range(100), 12))
        for worker in self.WORKERS:
            self._at(self.dice.uniform(0, 60), lambda worker=worker: self.run.announce(worker))  # type: ignore[misc]
        for number, step in enumerate(steps):
            for worker in self.WORKERS:
                self._save(number * INTERVAL, step, worker)
        marker = self.dice.choice([self.last, self.last + 5, self.last - 20])
        self.clock.at(max(0.0, marker), self.run.end)

    def _save(self, at: float, step: int, worker: str) -> None:
        # one worker is on time, so that steps are first seen in order; the others are later than the next steps
        first = worker == "worker_0"
        if not first and self.dice.random() < 0.1:
            return
        value = self.dice.choice([1.0, 2.0, 1000.0])
        files = self.run.files(step, worker, {"x": np.full(3, value), "y": np.full(2, -value)})
        event, index = files.items()
        at += self.dice.uniform(0, INTERVAL / 2 if first else 0.8 * GRACE)
        what = self.dice.choice(["plain", "plain", "renamed", "cut", "index first", "event cut"])
        if what == "renamed":
            self._put(at - 3, (f"{event[0]}.tmp", event[1]), (f"{index[0]}.tmp", index[1][:9]))
            self._put(at, event, index)
        elif what == "cut":
            self._put(at, event, (index[0], index[1][: self.dice.randrange(len(index[1]))]))
            self._put(at + 3, index)
        elif what == "index first":
            self._put(at, index)
            self._put(at + 4, event)
        elif what == "event cut":
            self._put(at, (event[0], event[1][: self.dice.randrange(len(event[1]))]), index)
            self._put(at + 4, event)
        else:
            self._put(at, event, index)

    def _put(self, at: float, *files: tuple[str, bytes]) -> None:
        self._at(at, lambda: self.run.put(dict(files)))

    def _at(self, at: float, action: Callable[[], object]) -> None:
        self.last = max(self.last, at)
        self.clock.at(max(0.0, at), action)


@pytest.mark.parametrize("seed", range(60))
def test_a_growing_run_gives_the_same_as_the_finished_one(seed: int):
    growing = Growing(seed)
    following = Watching(growing.run)
    because = following.follow()
    took = growing.clock.monotonic()
    once = Watching(growing.run, following=False)
    once.read_once()

    assert because == "end_marker"
    assert following.rows == once.rows
    assert following.told == once.told
    assert (following.trial.counts, following.trial.names.order) == (once.trial.counts, once.trial.names.order)
    assert took <= growing.last + QUORUM + 4 * POLL_MAX


@pytest.mark.parametrize("seed", range(30))
def test_whatever_a_run_does_following_it_ends(seed: int):
    """Files appear, change, vanish and come back; there may be no collections, no end marker and odd times."""
    dice = random.Random(seed)  # noqa: S311 - a repeatable order is what is wanted
    clock = ScriptedClock(limit=START + 1000 + IDLE + QUORUM + 10 * POLL_MAX)
    run = SavedRun(clock, num_workers=dice.choice([1, 2, 8]))
    if dice.random() < 0.7:
        clock.at(dice.uniform(0, 500), run.announce)
    for _ in range(60):
        files = run.files(dice.randrange(20), dice.choice(["worker_0", "worker_1", "_a-b"]))
        key, data = dice.choice(list(files.items()))
        action = dice.choice(["put", "cut", "delete", "csv"])
        at = dice.uniform(0, 1000)
        if action == "delete":
            clock.at(at, lambda key=key: run.store.delete(key))  # type: ignore[misc]
        else:
            name = key.replace(".json", ".csv") if action == "csv" else key
            part = data[: dice.randrange(len(data))] if action == "cut" else data
            clock.at(at, lambda name=name, part=part: run.store.write(name, part))  # type: ignore[misc]
    if dice.random() < 0.5:
        clock.at(dice.uniform(0, 1000), run.end)
    job = Watching(run)

    assert job.follow() in {"end_marker", "idle_timeout", "start_timeout"}
    assert job.trial.steps_waiting == 0
