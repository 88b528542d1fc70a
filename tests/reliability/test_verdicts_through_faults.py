"""Whatever storage does on the way, the verdicts are those of the run itself, or the status says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.config.job_config import configure_rules
from evaluator.config.parameters import RuleConfiguration
from evaluator.config.request import RuleRequest
from evaluator.formats.key_names import END_MARKER, event_key, index_key
from evaluator.testing import ExampleResult, FakeClock, evaluate, trial_from_series
from evaluator.trial.opening import open_run
from tests.s3.traffic import CUT, RESET, Fault, Traffic, Wrong

STEPS = 12
MET_AT = 7
Upload = Callable[[Path, str], str]


@pytest.fixture
def rules() -> list[RuleConfiguration]:
    parameters = {"parameter_set": "sagemaker"}
    asked = [RuleRequest(name, parameters, "command line", name) for name in ("VanishingGradient", "ExplodingTensor")]
    configured, _, mistakes = configure_rules(asked, None, [])
    assert mistakes == []
    return configured


def saved(folder: Path, workers: int = 2) -> Path:
    """Two workers; the second one's gradient vanishes at a step."""
    gradients = [
        [np.full(4, 1e-9 if worker and step >= MET_AT else 1e-2) for step in range(STEPS)] for worker in (0, 1)
    ]
    tensors = {f"worker_{worker}": {"gradient/w": gradients[worker]} for worker in range(workers)}
    trial_from_series(folder, tensors, workers=True, collections={"gradients": ["gradient/w"]})
    return folder


def told(result: ExampleResult) -> list[tuple[str, str, int | None]]:
    return [
        (rule.Rule, rule.RuleEvaluationStatus, rule.Finding.step if rule.Finding else None)
        for rule in result.status.rules
    ]


AS_IT_IS = [("VanishingGradient", "IssuesFound", MET_AT), ("ExplodingTensor", "NoIssuesFound", None)]


def every(n: int, wrong: Wrong) -> Fault:
    return lambda asked: wrong if asked.number % n == 0 else None


def first_minute(s3: Traffic, clock: FakeClock) -> Fault:
    began = clock.monotonic()
    return lambda _: Wrong() if clock.monotonic() - began < 60 else None


def expiring() -> Fault:
    """The credentials that the job began with are of no use any more after some calls; once they are, for good."""
    used = {"calls": 0}

    def fault(asked: Any) -> Wrong | None:
        used["calls"] += 1
        return Wrong(400, "ExpiredToken") if used["calls"] in {9, 20, 31} else None

    return fault


@pytest.mark.parametrize(
    "fault",
    [every(3, Wrong()), every(3, RESET), every(4, CUT), every(5, Wrong(500, "InternalError")), expiring()],
    ids=["503 on every third call", "resets", "cut bodies", "500 on every fifth call", "expired tokens"],
)
def test_faults_on_the_way_change_no_verdict(
    tmp_path: Path, upload: Upload, s3: Traffic, rules: list[RuleConfiguration], fault: Fault
):
    uri = upload(saved(tmp_path), "job")
    s3.fault = fault
    result = evaluate(open_run(uri, FakeClock()), rules)

    assert told(result) == AS_IT_IS
    assert s3.asked


def test_an_outage_of_a_minute_changes_no_verdict(
    tmp_path: Path, upload: Upload, s3: Traffic, rules: list[RuleConfiguration]
):
    clock = FakeClock()
    source = open_run(upload(saved(tmp_path), "job"), clock)
    s3.fault = first_minute(s3, clock)

    assert told(evaluate(source, rules)) == AS_IT_IS
    assert source.store.requests.retries > 3


def test_an_event_file_that_may_not_be_read_costs_its_step_only(
    tmp_path: Path, upload: Upload, s3: Traffic, rules: list[RuleConfiguration]
):
    uri = upload(saved(tmp_path), "job")
    lost = event_key(3, "worker_0")
    s3.fault = lambda asked: Wrong(403, "AccessDenied") if asked.kind == "GET" and asked.key.endswith(lost) else None
    result = evaluate(open_run(uri, FakeClock()), rules)

    assert told(result) == AS_IT_IS
    assert any("s3:GetObject" in note for note in result.status.job.notes)


def _empty(folder: Path) -> None:
    (folder / index_key(3, "worker_0")).write_bytes(b"")


def _half(folder: Path) -> None:
    path = folder / index_key(3, "worker_0")
    path.write_bytes(path.read_bytes()[:40])


def _no_event(folder: Path) -> None:
    (folder / event_key(3, "worker_0")).unlink()


def _cut_event(folder: Path) -> None:
    path = folder / event_key(3, "worker_0")
    path.write_bytes(path.read_bytes()[:30])


def _other_event(folder: Path) -> None:
    (folder / event_key(3, "worker_0")).write_bytes(b"\0" * 500)


@pytest.mark.parametrize("spoil", [_empty, _half, _no_event, _cut_event, _other_event])
def test_a_broken_file_is_named_and_costs_no_other_verdict(
    tmp_path: Path, rules: list[RuleConfiguration], spoil: Callable[[Path], None]
):
    spoil(saved(tmp_path))
    result = evaluate(str(tmp_path), rules)

    assert told(result) == AS_IT_IS
    assert result.status.job.steps.unreadable == 1
    assert result.status.job.notes


def _no_marker(folder: Path) -> None:
    (folder / END_MARKER).unlink()


def _one_collections_file(folder: Path) -> None:
    (path,) = folder.rglob("worker_1_collections.json")
    path.unlink()


@pytest.mark.parametrize("spoil", [_no_marker, _one_collections_file])
def test_what_is_missing_beside_the_steps_changes_no_verdict(
    tmp_path: Path, rules: list[RuleConfiguration], spoil: Callable[[Path], None]
):
    spoil(saved(tmp_path))

    assert told(evaluate(str(tmp_path), rules)) == AS_IT_IS


def test_of_eight_workers_one_is_judged_and_the_others_are_named(tmp_path: Path, rules: list[RuleConfiguration]):
    saved(tmp_path, workers=1)
    (path,) = tmp_path.rglob("worker_0_collections.json")
    path.write_bytes(
        path.read_bytes()
        .replace(b'"num_workers": 1', b'"num_workers": 8')
        .replace(b'"num_workers":1', b'"num_workers":8')
    )
    result = evaluate(str(tmp_path), rules)

    assert [word for _, word, _ in told(result)] == ["NoIssuesFound", "NoIssuesFound"]
    assert (result.status.job.workers.expected, result.status.job.workers.seen) == (8, 1)
    assert result.status.job.steps.partial == STEPS
