"""Training that goes back: a run that is followed comes to what its folder says in the end."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration
from evaluator.ending import Ending, Limits, StopSignal
from evaluator.engine.local import LocalEngine
from evaluator.engine.partners import Partners
from evaluator.evaluation import Evaluation
from evaluator.finding import Finding
from evaluator.job_status import JobFacts, StatusMaker
from evaluator.loop import Loop, Pace
from evaluator.needs import Accumulator, Measure, Previous, Selection, Summary
from evaluator.outside import Outside
from evaluator.rule import LoopParameters, Rule, RuleParameters
from evaluator.segments import Floats, Segments
from evaluator.sources.smdebug_folder import SmdebugFolder
from evaluator.trial.completeness import Waits
from evaluator.trial.trial import Trial
from evaluator.window import Met, NotYet, State, Verdict, Window
from tests.saved_run import SavedRun, ScriptedClock

GRACE, QUORUM, RELIST = 30.0, 300.0, 600.0
EVERYTHING = Selection()


def above(window: Window, _: RuleParameters) -> Met | None:
    """The newest value is above 100."""
    high = window.saved[-1] & (window.values[-1] > 100)
    return window.met(high, limit=100.0) if high.any() else None


def flat(window: Window, _: RuleParameters) -> Verdict:
    """The values of the last 25 steps hardly differ."""
    if len(window.steps) < 10:
        return NotYet("fewer than 10 steps")
    spread = np.nanmax(window.values, axis=0) - np.nanmin(window.values, axis=0)
    near = window.saved[-1] & (spread < 0.5)
    return window.met(near, measured=spread, limit=0.5) if near.any() else None


def often(state: State, _: RuleParameters) -> Met | None:
    """More than two of all values so far were above 100."""
    high = state.row.saved & (state["high"] > 2)
    return state.met(high, measured=state["high"], limit=2.0) if high.any() else None


def jumped(window: Window, _: RuleParameters) -> Met | None:
    """The newest value differs by more than 30 from the one before."""
    high = window.saved[-1] & (np.abs(window.values[-1]) > 30)
    return window.met(high, limit=30.0) if high.any() else None


def difference(segments: Segments, before: Segments) -> Floats:
    return segments.max(segments.real) - before.max(before.real)


def add(state: Mapping[str, Any], row: Any) -> dict[str, Any]:
    total = np.zeros(len(row.values))
    total[: len(state["high"])] = state["high"]
    return {"high": total + (row.values > 100)}


OFTEN = Accumulator(lambda: {"high": np.zeros(0)}, add)
RULES: Mapping[str, tuple[Summary, Callable[..., Verdict], dict[str, Any]]] = {
    "Above": (Summary(EVERYTHING, by="max"), above, {}),
    "AboveThrice": (Summary(EVERYTHING, by="max"), above, {"consecutive": 3}),
    "AboveAgain": (Summary(EVERYTHING, by="max"), above, {"on_finding": "continue"}),
    "Flat": (Summary(EVERYTHING, by="max", rows=25), flat, {}),
    "Often": (Summary(EVERYTHING, by="max", state=OFTEN), often, {"on_finding": "continue"}),
    "Jumped": (Summary(EVERYTHING, by=Measure(difference), partner=Previous()), jumped, {}),
    "SeldomAbove": (Summary(EVERYTHING, by="max"), above, {"start_step": 3}),
}


def configurations() -> list[RuleConfiguration]:
    found = []
    for name, (need, condition, loop) in RULES.items():
        every = (lambda _: 7) if name == "SeldomAbove" else None
        rule = Rule(name, "error", RuleParameters, lambda _, need=need: [need], condition, every=every)  # type: ignore[misc]
        found.append(RuleConfiguration(name, rule, RuleParameters(), LoopParameters.model_validate(loop), "error"))
    return found


class Job:
    """One job over a run, with a rule of each kind that remembers something."""

    def __init__(self, run: SavedRun, *, following: bool) -> None:
        clock = run.clock
        self.findings: list[Finding] = []
        self.trial = Trial(SmdebugFolder(run.store), clock, Waits(GRACE, QUORUM), following=following, relist=RELIST)
        partners = Partners(self.trial.source, 2**28, lambda *_: None)
        self.evaluation = Evaluation(configurations(), self.trial, partners, following=following)
        engine = LocalEngine(self.trial.source, 2**28)
        facts = JobFacts("test", "test", {}, {}, clock.now())
        stop = StopSignal("drain", 0, clock)
        loop = Loop(self.trial, self.evaluation, engine, clock, stop, Pace(1, 30, GRACE), self.findings.extend)
        try:
            if following:
                ending = Ending(self.trial, clock, Limits(3600, 3600, GRACE), stop, Outside())
                facts.ended_because = loop.follow(ending)
            else:
                facts.ended_because = loop.read_once()
        finally:
            engine.close()
        self.status = StatusMaker(facts, clock, lambda run: run.failure or "").make(self.trial, self.evaluation)

    @property
    def told(self) -> list[dict[str, Any]]:
        told = [one.model_dump() for one in self.findings]
        return sorted(told, key=lambda one: (one["rule"], one["step"], one["event"]))

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Every rule's status, without times."""
        dumped = [rule.model_dump(exclude={"LastModifiedTime"}) for rule in self.status.rules]
        for rule in dumped:
            if rule["Finding"] is not None:
                del rule["Finding"]["recorded_at"]
        return dumped


def at(clock: ScriptedClock, seconds: float, run: SavedRun, step: int, value: float, *workers: str) -> None:
    clock.at(seconds, lambda: run.save(step, *workers, values={"x": np.full(2, value, np.float32)}))


class Restarted:
    """A run that goes back once or twice, to a step within the look-back or before it, and gets further every time."""

    def __init__(self, seed: int, *, high: Sequence[float]) -> None:
        dice = random.Random(seed)  # noqa: S311 - a repeatable order is what is wanted
        self.clock = ScriptedClock(limit=50_000)
        self.run = SavedRun(self.clock, num_workers=dice.choice([1, 2]))
        self.workers = [f"worker_{number}" for number in range(self.run.num_workers)]
        self.run.announce(*self.workers)
        seconds = 0.0
        first, last = 0, dice.randrange(5, 70)
        attempts = dice.choice([2, 2, 3])
        for attempt in range(attempts):
            pace = dice.choice([0.1, 0.3, 1.0, 10.0])
            for step in range(first, last):
                seconds += pace
                steady = 10 + attempt + (0.01 if dice.random() < 0.5 else dice.uniform(0, 3))
                value = dice.choice(high) if attempt == attempts - 1 and high and dice.random() < 0.1 else steady
                for worker in self.workers:
                    at(self.clock, seconds + dice.uniform(0, pace), self.run, step, value, worker)
            seconds += 2 * pace + dice.choice([1.0, 10.0, 700.0])
            first, last = dice.randrange(last), last + dice.randrange(1, 30)
        self.clock.at(seconds, self.run.end)


@pytest.mark.parametrize("seed", range(30))
def test_a_restarted_run_that_is_followed_comes_to_what_is_read_in_the_end(seed: int):
    """Saves 0..59, then from 20 to 79: the rewriting was noticed at step 40, and 20..39 were judged after 79.

    Nothing was found before training went back, so findings and statuses are all the same.
    """
    restarted = Restarted(seed, high=[] if seed % 2 else [150.0])
    followed = Job(restarted.run, following=True)
    once = Job(restarted.run, following=False)

    assert followed.told == once.told
    assert followed.rules == once.rules
    assert (followed.status.job.steps, followed.trial.names.order) == (once.status.job.steps, once.trial.names.order)


def test_a_restart_before_the_look_back_is_found_before_anything_is_judged():
    clock = ScriptedClock()
    run = SavedRun(clock)
    run.announce()
    for step in range(60):
        at(clock, step, run, step, 10.0)
    for step in range(20, 80):
        at(clock, 100 + step, run, step, 10.0)
    at(clock, 200, run, 80, 10.0)
    trial = Trial(SmdebugFolder(run.store), clock, Waits(GRACE, QUORUM), following=True, relist=RELIST)
    taken: list[list[int]] = []
    for _ in range(250):
        taken.append([step.number for step in trial.poll()])
        clock.wait(1)
    went_back = next(number for number, steps in enumerate(taken) if steps and steps[0] == 0 and number > 60)

    assert taken[went_back] == list(range(41))
    assert [step for steps in taken[went_back + 1 :] for step in steps] == list(range(41, 81))


def test_what_the_attempt_before_wrote_is_not_judged_as_if_it_were_new():
    """When training went back, steps 40 to 59 of the first attempt were there, and step 60 waited for a worker."""
    clock = ScriptedClock()
    run = SavedRun(clock, num_workers=2)
    run.announce("worker_0", "worker_1")
    both = ("worker_0", "worker_1")
    for step in range(60):
        run.save(step, *both)
    run.save(60, "worker_0")
    trial = Trial(SmdebugFolder(run.store), clock, Waits(GRACE, QUORUM), following=True, relist=RELIST)
    first = [step.number for step in trial.poll()]
    clock.advance(1)
    for step in range(20, 40):
        run.save(step, *both)
    clock.advance(RELIST)
    second = [step.number for step in trial.poll()]
    clock.advance(QUORUM)
    third = [step.number for step in trial.poll()]
    for step in range(40, 62):
        run.save(step, *both)
    fourth = [step.number for step in trial.poll()]

    assert (first, second, third, fourth) == (list(range(60)), list(range(40)), [], list(range(40, 62)))


def test_what_only_the_attempt_before_wrote_is_named_at_the_end():
    clock = ScriptedClock()
    run = SavedRun(clock)
    run.announce()
    for step in range(10):
        run.save(step)
    trial = Trial(SmdebugFolder(run.store), clock, Waits(GRACE, QUORUM), following=True, relist=RELIST)
    first = len(list(trial.poll()))
    clock.advance(1)
    for step in range(3, 6):
        run.save(step)
    second = [step.number for step in trial.finish()]

    assert (first, second) == (10, list(range(6)))
    assert trial.problems["steps 6 to 9"] == "4 steps from before a restart were not written again; not evaluated"


def test_findings_from_before_a_restart_stand_and_are_told_once():
    """Step 5 met before training went back to 3 and does not any more; step 1 meets in both attempts."""
    clock = ScriptedClock()
    run = SavedRun(clock)
    run.announce()
    for step in range(10):
        at(clock, 10 * step, run, step, 150.0 if step in {1, 5, 9} else 10.0)
    for step in range(3, 20):
        at(clock, 200 + 10 * step, run, step, 10.0)
    clock.at(500, run.end)
    job = Job(run, following=True)
    told = [(one.step, one.event, one.last_step) for one in job.findings if one.rule == "AboveAgain"]
    stopped = [(one.step, one.event) for one in job.findings if one.rule == "Above"]

    assert told == [
        (1, "met", None), (1, "cleared", 1), (5, "met", None), (5, "cleared", 5), (9, "met", None), (9, "cleared", 9),
    ]  # fmt: skip
    assert stopped == [(1, "met")]
