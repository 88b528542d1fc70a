"""SilentWorker: a worker that stopped saving while others go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.registry import builtin_rules
from evaluator.testing import ExampleResult, evaluate
from evaluator.writer import TrialWriter
from tests.builtin_rules.judging import judge


def saves(pattern: str) -> dict[str, list[Any]]:
    """A tensor that is saved where the pattern has an x."""
    return {"w": [1.0 if mark == "x" else None for mark in pattern]}


def silent(*patterns: str, **how: Any) -> ExampleResult:
    workers = {f"worker_{rank}": saves(pattern) for rank, pattern in enumerate(patterns)}
    return judge("SilentWorker", {}, workers=workers, **how)


def slowly(pattern: str, steps: int, times: float) -> int | None:
    """The step at which a worker has left out too many, beside one that saves every step."""
    longest, last = 1, pattern.index("x")
    for step, mark in enumerate(pattern):
        missed = step - last
        if missed >= max(steps, times * longest if longest > 1 else 0) and mark != "x" and step > last:
            return step
        if mark == "x":
            longest, last = max(longest, missed), step
    return None


@pytest.mark.parametrize(
    "pattern",
    [
        "xxxxx.....",
        "x.x.x.x.x.x......",
        "xxxxxxxxxx",
        "xx..xxxxxx",
        "xx..x.....x....",
        "x..x..x..x..x..x.........",
        "x.........",
    ],
)
@pytest.mark.parametrize("steps", [1, 3, 5])
def test_it_agrees_with_the_slow_way(pattern: str, steps: int):
    assert silent("x" * len(pattern), pattern, parameters={"steps": steps}).met_at == slowly(pattern, steps, 3.0)


def test_the_finding_says_who_since_when_and_how_long():
    finding = silent("xxxxxxxx", "xxx.....").findings[0]

    assert (finding.step, finding.worker, finding.measured, finding.limit) == (5, "worker_1", 3, 3)
    assert finding.details == {"silent_since_step": 2, "seconds": 3.0, "seen": 2, "expected": 2}


def test_a_worker_that_does_not_evaluate_is_not_missed_there():
    result = silent("xxxxxxxxxx", "xx......xx", modes=["TRAIN"] * 2 + ["EVAL"] * 6 + ["TRAIN"] * 2)

    assert result.word == "NoIssuesFound"


def test_a_worker_that_evaluates_is_missed_there_too():
    assert silent("xxxxxxx", "xxx....", modes=["TRAIN", "TRAIN", *["EVAL"] * 5]).met_at == 5


@pytest.mark.parametrize("patterns", [("xxxx", "xxxx"), ("xx...", "xx..."), ("x.x.x.x.", ".x.x.x.x")])
def test_workers_that_go_on_or_stop_together_are_quiet(patterns: tuple[str, ...]):
    assert silent(*patterns).word == "NoIssuesFound"


def test_one_worker_is_not_judged():
    result = silent("xxxx")

    assert (result.word, result.met_at) == ("Error", None)
    assert "fewer than two workers" in result.why


@pytest.mark.parametrize(("seen", "expected"), [(1, None), (2, 2), (4, None)])
def test_workers_that_never_came_are_missed_where_others_than_one_did(tmp_path: Path, seen: int, expected: int | None):
    for rank in range(seen):
        writer = TrialWriter(tmp_path, worker=f"worker_{rank}", num_workers=4)
        for step in range(5):
            writer.save(step, {"w": 1.0})
        writer.close(end=rank == seen - 1)
    configured = configure(RuleRequest("SilentWorker", {}, "command line", "test"), builtin_rules()["SilentWorker"])
    assert isinstance(configured, RuleConfiguration)

    result = evaluate(str(tmp_path), [configured])

    assert result.met_at == expected
    assert expected is None or "2 of 4 workers have saved nothing" in result.why
