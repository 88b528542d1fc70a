"""NonFinite: where NaN and infinity begin, and which of them are meant to be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builtin_rules.tensors._finite import is_gradient, is_never_constant
from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.registry import builtin_rules
from evaluator.testing import evaluate
from evaluator.writer import TrialWriter
from tests.builtin_rules.judging import judge

NAN, INF = float("nan"), float("inf")
LAYERS = {
    "fc1_output_0": [1.0, 1.0, 1.0, 1.0],
    "fc2_output_0": [1.0, 1.0, INF, NAN],
    "fc3_output_0": [1.0, 1.0, NAN, NAN],
    "loss": [1.0, 0.9, NAN, NAN],
}


def slowly(tensors: dict[str, list[float]]) -> tuple[int, str] | None:
    """The step and the tensor of the first number that is not finite, of tensors that are a reason at once."""
    for step in range(len(next(iter(tensors.values())))):
        for name, values in tensors.items():
            if values[step] - values[step] != 0:
                return step, name
    return None


def test_the_first_cause_is_told_with_its_followers():
    finding = judge("NonFinite", LAYERS).findings[0]

    assert (finding.step, finding.tensor, finding.measured, finding.last_healthy_step) == (2, "fc2_output_0", 1, 1)
    assert (finding.affected.tensors, finding.affected.of) == (3, 4)
    assert finding.details == {"found": "inf", "nan": 0, "inf": 1, "first_step": 2, "not_finite_now": 3}


@pytest.mark.parametrize("seed", range(10))
def test_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(3, 8))
    values[:, 1:][generator.random((3, 7)) < 0.1] = generator.choice([NAN, INF, -INF])
    tensors = {f"relu{number}_output_0": values[number].tolist() for number in range(3)}

    result = judge("NonFinite", tensors)

    found = (result.findings[0].step, result.findings[0].tensor) if result.findings else None
    assert found == slowly(tensors)


def test_a_gradient_that_spoiled_the_weights_is_the_cause_although_it_was_tolerated_by_itself():
    run = {"weight": [1.0, 1.0, 1.0, NAN], "gradient/weight": [0.1, 0.1, NAN, NAN], "loss": [1.0, 1.0, 1.0, NAN]}

    finding = judge("NonFinite", run).findings[0]

    assert (finding.step, finding.tensor, finding.last_healthy_step) == (3, "gradient/weight", 1)
    assert finding.details["first_step"] == 2


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([1.0, INF, 1.0, 1.0, NAN, INF, 1.0], 5),
        ([INF] * 4 + [1.0] * 4 + [INF, 1.0, INF, 1.0, INF], 12),
        ([INF] * 25, 19),
        ([1.0, INF, *[1.0] * 8, INF, *[1.0] * 8, INF], None),
        ([INF] * 19 + [1.0] * 3, None),
        ([INF] * 6 + [1.0, INF, 1.0, 1.0], None),
        ([1.0, 1.0, INF, INF], None),
    ],
)
@pytest.mark.parametrize("name", ["gradient/fc.weight", "grad_norm", "gradients/dense/kernel:0Grad"])
def test_gradients_alone_are_a_reason_only_when_it_is_more_than_loss_scaling(
    name: str, series: list[float], expected: int | None
):
    assert judge("NonFinite", {name: series, "weight": [1.0] * len(series)}).met_at == expected


def test_how_many_gradients_are_tolerated_can_be_set():
    run = {"grad_norm": [1.0, INF, 1.0]}

    assert judge("NonFinite", run, gradient_steps=1).met_at == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [("quantile_const", None), ("attention.mask_output_0", None), ("loss", 0), ("fc.weight", 0), ("dense/kernel:0", 0)],
)
def test_only_what_may_be_so_on_purpose_may_have_been_so_from_the_start(name: str, expected: int | None):
    assert judge("NonFinite", {name: [NAN] * 3, "other": [1.0] * 3}).met_at == expected


def test_constants_can_be_a_reason_too():
    assert judge("NonFinite", {"quantile": [NAN]}, constants="True").met_at == 0


def test_a_constant_is_not_the_cause_of_what_comes_later():
    run = {"quantile": [NAN, NAN, NAN], "fc1_output_0": [1.0, 1.0, NAN]}

    finding = judge("NonFinite", run).findings[0]

    assert (finding.tensor, finding.affected.tensors) == ("fc1_output_0", 1)


def test_at_the_first_step_of_all_the_first_tensor_is_the_cause():
    assert judge("NonFinite", {"fc1_output_0": [NAN], "loss": [NAN]}).findings[0].tensor == "fc1_output_0"


def test_a_filtered_loss_hides_nothing():
    run = {"loss": [1.0, 0.9, 0.9], "fc.weight": [1.0, 1.0, NAN]}

    assert judge("NonFinite", run).met_at == 2


def test_a_worker_that_leaves_on_nan_is_told_when_the_run_ends():
    workers = {
        "worker_0": {"gradient/w": [1.0, 1.0, 1.0]},
        "worker_1": {"gradient/w": [1.0, 1.0, NAN]},
    }

    result = judge("NonFinite", {}, workers=workers)

    assert (result.met_at, result.findings[0].worker, result.evaluated) == (2, "worker_1", 3)


@pytest.mark.parametrize("last", [[1.0, 1.0], [INF, INF]])
def test_a_run_that_ends_alike_on_all_workers_is_quiet(last: Sequence[float]):
    workers = {f"worker_{rank}": {"gradient/w": [1.0, 1.0, value]} for rank, value in enumerate(last)}

    assert judge("NonFinite", {}, workers=workers).met_at is None


@pytest.mark.parametrize(
    ("reductions", "expected"),
    [
        ({"max": INF}, 1),
        ({"l2": NAN}, 1),
        ({"mean": NAN}, 1),
        ({"abs_max": 300.0, "l2": INF}, None),
        ({"max": 1}, None),
    ],
)
def test_saved_reductions_show_it_too(tmp_path: Path, reductions: dict[str, float], expected: int | None):
    with TrialWriter(tmp_path) as writer:
        writer.save(0, {}, reductions={"w": dict.fromkeys(reductions, 1.0)})
        writer.save(1, {}, reductions={"w": reductions})
    configured = configure(RuleRequest("NonFinite", {}, "command line", "test"), builtin_rules()["NonFinite"])
    assert isinstance(configured, RuleConfiguration)

    assert evaluate(str(tmp_path), [configured]).met_at == expected


def test_leaves_of_trees_are_left_out_by_the_recommended_parameters():
    run: dict[str, Sequence[Any]] = {"trees/Split": [[0.5, NAN]] * 2, "train-rmse": [2.0, 1.0]}

    assert judge("NonFinite", run, parameter_set="recommended").word == "NoIssuesFound"


@pytest.mark.parametrize("series", [[1.0], [1.0, None, 2.0], [np.float16(6e4)] * 3, [1e300, -1e300], [[], [1.0]]])
def test_finite_numbers_are_quiet(series: list[Any]):
    assert judge("NonFinite", {"w": series}).word == "NoIssuesFound"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gradient/w", True),
        ("gnorm", True),
        ("gradNorm", True),
        ("upgrade", False),
        ("graduate.weight", False),
        ("w", False),
    ],
)
def test_gradients_are_known_by_their_names(name: str, expected: bool):
    assert is_gradient(name) is expected


def test_what_a_layer_is_given_may_be_constant_whatever_the_layer_is_called():
    assert not is_never_constant("attention_weights_input_0")
    assert is_never_constant("attention.weight")
