"""LossSpike: the newest loss, or norm of the gradients, against the mean of those before."""

from __future__ import annotations

import math
from statistics import fmean, pstdev

import numpy as np
import pytest

from tests.builtin_rules.judging import judge

NAN, INF = float("nan"), float("inf")
FALLING = [4.0 / (1 + step) for step in range(10)]


def slowly(losses: list[float]) -> int | None:
    """The first step that fires, from the text of the rule."""
    excursion = 0.0
    for step, loss in enumerate(losses):
        before = [old for old in losses[max(0, step - 20) : step] if math.isfinite(old)]
        begin = [abs(old) for old in losses[: step + 1] if math.isfinite(old)][:5]
        if len(before) < 5 or not math.isfinite(loss):
            continue
        mean = sum(before) / len(before)
        if mean <= 0 or loss < 3 * mean:
            continue
        usual = min(before) > 0 and math.log(loss) - fmean(map(math.log, before)) < 3.3 * pstdev(map(math.log, before))
        if (
            min(before) > 0
            and not usual
            and loss - mean >= 0.2 * sum(begin) / 5
            and loss >= 1.5 * max(excursion, *before)
        ):
            return step
        excursion = max(excursion, loss)
    return None


@pytest.mark.parametrize("seed", range(30))
def test_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(3, 80))
    noise = np.exp(generator.standard_t(generator.uniform(1.5, 6), count) * generator.uniform(0.1, 0.6))
    losses = (10.0 ** generator.uniform(-3, 3) * np.geomspace(1, generator.uniform(0.01, 1), count) * noise).tolist()
    for place in generator.integers(0, count, count // 10):
        losses[place] = generator.choice([NAN, INF, -INF])

    assert judge("LossSpike", {"loss": losses}).met_at == slowly(losses)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([*FALLING, 20.0, 0.4], 10),
        ([*FALLING, 8.0], None),
        ([0.1, 1.0, 0.2, 0.9, 0.05, 1.1] * 3 + [5.0], None),
        ([0.0, *[1.0] * 9, 9.0], None),
        ([*FALLING, 5.0], None),
        ([1.0] * 6 + [3.0], 6),
        ([1.0] * 6 + [2.9], None),
        ([1.0] * 4 + [9.0], None),
        ([1.0] * 5 + [9.0], 5),
        ([*[1.0] * 5, *[0.01] * 30, 0.2], None),
        ([*[1.0] * 5, *[0.01] * 30, 0.3], 35),
        ([0.0] * 10 + [1.0], None),
        ([-1.0] * 10 + [9.0], None),
        ([1.0] * 10 + [NAN, INF, 1.0], None),
        ([NAN] * 10, None),
        ([NAN, *[1.0] * 5, 9.0], 6),
        ([1e-300] * 6 + [9e-300], 6),
        ([1e300] * 6 + [9e300], 6),
        ([1.7e308, -1.7e308] * 6, None),
        ([1.0], None),
    ],
)
def test_what_a_spike_is(losses: list[float], expected: int | None):
    assert judge("LossSpike", {"loss": losses}).met_at == expected


def test_data_that_are_always_bad_are_no_spike():
    regular = [*[1.0] * 9, 2.9]

    assert judge("LossSpike", {"loss": [*regular * 3, *[1.0] * 9, 3.8]}).met_at is None
    assert judge("LossSpike", {"loss": [*regular * 3, *[1.0] * 9, 9.0]}).met_at == 39


def test_the_finding_tells_the_values():
    finding = judge("LossSpike", {"loss": [*[1.0] * 6, 4.0]}).findings[0]

    assert (finding.tensor, finding.measured, finding.limit, finding.affected.of) == ("loss", 4.0, 3.0, 1)
    assert finding.details == {"value": 4.0, "mean_before": 1.0, "highest_before": 1.0}


def test_training_and_evaluation_have_levels_of_their_own():
    losses = [0.1, 1.0] * 10
    modes = ["TRAIN", "EVAL"] * 10

    quiet = judge("LossSpike", {"loss": losses}, modes=modes)
    finding = judge("LossSpike", {"loss": [*losses[:-1], 5.0]}, modes=modes).findings[0]

    assert quiet.met_at is None
    assert (finding.step, finding.mode, finding.mode_step) == (19, "EVAL", 9)


def test_an_issue_is_over_at_the_next_value():
    result = judge("LossSpike", {"loss": [*[1.0] * 6, 9.0, 1.0, 1.0]}, parameters={"on_finding": "continue"})

    assert [(one.event, one.last_step) for one in result.findings] == [("met", None), ("cleared", 6)]


@pytest.mark.parametrize(("norm", "fires"), [(49.0, False), (51.0, True)])
@pytest.mark.parametrize("name", ["grad_norm", "gradient/norm", "train/grad_norm"])
def test_norms_of_gradients_have_a_ratio_of_their_own(name: str, norm: float, fires: bool):
    run = {"loss": [1.0] * 8, name: [*[1.0] * 7, norm]}

    result = judge("LossSpike", run, collections={"losses": ["loss"]})

    assert (result.met_at == 7) is fires


def test_a_tensor_that_is_called_after_a_norm_is_none():
    run = {"loss": [1.0] * 8, "gradient/layer_norm.weight": [*[1.0] * 7, 900.0]}

    assert judge("LossSpike", run, collections={"losses": ["loss"]}).met_at is None


def test_the_start_of_loss_scaling_is_no_spike():
    run = {"loss": [1.0] * 20, "grad_norm": [INF, INF, INF, *[1.0] * 17]}

    assert judge("LossSpike", run).met_at is None


def test_a_sum_of_parts_is_not_judged_and_a_lone_part_is():
    lone = {"box_loss": [*[1.0] * 9, 9.0]}

    assert judge("LossSpike", {**lone, "cls_loss": [1.0] * 10}).met_at is None
    assert judge("LossSpike", lone).met_at == 9


def test_workers_have_levels_of_their_own():
    workers = {"worker_0": {"loss": [1.0] * 10}, "worker_1": {"loss": [9.0] * 10}}

    assert judge("LossSpike", {}, workers=workers).met_at is None
