"""WorkersDiverge: replicas of a weight against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.builtin_rules.judging import judge

NAN = float("nan")
Series = dict[str, list[Any]]


def replicas(drift: float, since: int, workers: int = 2, steps: int = 5, dtype: type = np.float64) -> dict[str, Series]:
    """A weight that moves alike on all workers, until the last of them adds something to one element."""
    generator = np.random.default_rng(0)
    values: list[Any] = [generator.normal(size=(3, 2)).astype(dtype) for _ in range(steps)]
    run: dict[str, Series] = {f"worker_{rank}": {"w": [value.copy() for value in values]} for rank in range(workers)}
    for step in range(since, steps):
        run[f"worker_{workers - 1}"]["w"][step][0, 0] += dtype(drift)
    return run


def slowly(run: dict[str, Series], tolerance: float) -> int | None:
    """The first step at which a replica differs, element by element."""
    first, last = run["worker_0"]["w"], run[max(run)]["w"]
    for step, (one, other) in enumerate(zip(first, last, strict=True)):
        largest = max(abs(x) for x in [*one.ravel().tolist(), *other.ravel().tolist()])
        pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
        if max(abs(a - b) for a, b in pairs) > tolerance * largest:
            return step
    return None


@pytest.mark.parametrize("drift", [1e-3, 1e-5, 1e-6, 1e-7, 0.0])
@pytest.mark.parametrize("since", [1, 2, 4])
def test_it_agrees_with_the_slow_way(drift: float, since: int):
    run = replicas(drift, since)

    assert judge("WorkersDiverge", {}, workers=run).met_at == slowly(run, 1e-6)


def test_the_finding_names_worker_and_tensor_at_the_first_step_of_the_drift():
    finding = judge("WorkersDiverge", {}, workers=replicas(1e-3, since=2, workers=3)).findings[0]

    assert (finding.step, finding.worker, finding.tensor, finding.limit) == (2, "worker_2", "w", 1e-6)
    assert finding.details == {"compared_with": "worker_0"}
    assert "that of worker_0" in finding.message


def test_the_first_worker_is_named_when_the_others_agree():
    run = replicas(1e-3, since=2, workers=3)
    run["worker_0"], run["worker_2"] = run["worker_2"], run["worker_0"]

    finding = judge("WorkersDiverge", {}, workers=run).findings[0]

    assert (finding.step, finding.worker, finding.affected.tensors) == (2, "worker_0", 1)
    assert "from that of the other workers" in finding.message


def test_the_tolerance_is_relative_and_can_be_set():
    run = {"worker_0": {"w": [[1e9, 2.0]] * 2}, "worker_1": {"w": [[1e9, 2.0], [1e9, 3.0]]}}

    assert judge("WorkersDiverge", {}, workers=run).met_at is None
    assert judge("WorkersDiverge", {}, workers=run, tolerance=1e-10).met_at == 1


def test_what_differs_from_the_first_saved_step_on_counts_as_sharded_and_is_named():
    expert = {"worker_0": [[1.0, 2.0]] * 5, "worker_1": [[3.0, 4.0]] * 5}
    run = {worker: {"expert": expert[worker], **series} for worker, series in replicas(1e-3, since=3).items()}

    finding = judge("WorkersDiverge", {}, workers=run).findings[0]

    assert (finding.step, finding.tensor) == (3, "w")
    assert finding.details["sharded_tensors"] == ["expert"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([[1.0, 2.0]] * 3, [[3.0, 4.0]] * 3),
        ([[1.0, 2.0]] * 3, [[1.0]] * 3),
        ([[1.0, 2.0], [1.0, 2.1]], [[1.0, 2.0, 3.0], [1.0, 2.1, 3.0]]),
    ],
    ids=["other values", "other shapes", "a longer one"],
)
def test_a_run_that_is_sharded_all_over_is_not_judged_and_says_so(first: list[Any], second: list[Any]):
    result = judge("WorkersDiverge", {}, workers={"worker_0": {"w": first}, "worker_1": {"w": second}})

    assert result.word == "Error"
    assert "from the first saved step on, as sharded ones do" in result.why


def test_a_constant_does_not_show_that_it_is_replicated():
    run = {"worker_0": {"b": [[0.0, 0.0], [0.1, 0.2]]}, "worker_1": {"b": [[0.0, 0.0], [0.3, 0.4]]}}

    assert judge("WorkersDiverge", {}, workers=run).met_at is None


def test_a_constant_counts_once_it_was_alike_with_other_values():
    run = {
        "worker_0": {"b": [[0.0, 0.0], [0.1, 0.2], [0.1, 0.3]]},
        "worker_1": {"b": [[0.0, 0.0], [0.1, 0.2], [0.3, 0.4]]},
    }

    assert judge("WorkersDiverge", {}, workers=run).met_at == 2


@pytest.mark.parametrize(("second", "expected"), [([NAN, 2.0], None), ([1.0, 2.0], 1)])
def test_nan_is_like_nan_only(second: list[float], expected: int | None):
    run = {"worker_0": {"w": [[1.0, 2.0], [NAN, 2.0]]}, "worker_1": {"w": [[1.0, 2.0], second]}}

    assert judge("WorkersDiverge", {}, workers=run).met_at == expected


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_number_formats_that_are_alike_are_quiet(dtype: type):
    run = {worker: {"w": list(series["w"])} for worker, series in replicas(0.0, since=4, dtype=dtype).items()}

    assert judge("WorkersDiverge", {}, workers=run).word == "NoIssuesFound"


def test_one_worker_cannot_diverge():
    assert judge("WorkersDiverge", {"w": [[1.0, 2.0]] * 3}).met_at is None


def test_a_step_that_one_worker_lacks_is_not_judged():
    run = {"worker_0": {"w": [[1.0, 2.0], None, [1.0, 2.1]]}, "worker_1": {"w": [[1.0, 2.0], [5.0, 5.0], [1.0, 2.1]]}}

    assert judge("WorkersDiverge", {}, workers=run).evaluated == 2


def test_gradients_may_differ():
    run = {
        f"worker_{rank}": {"w": [[1.0, 2.0], [1.1, 2.1]], "g": [[1.0, 2.0], [3.0, float(rank)]]} for rank in range(2)
    }

    assert judge("WorkersDiverge", {}, workers=run, collections={"weights": ["w"]}).word == "NoIssuesFound"
