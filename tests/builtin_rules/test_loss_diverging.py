"""LossDiverging: the level of a training loss against the lowest it had, and against where it began."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.modes import Mode
from evaluator.needs import StateArrays
from evaluator.registry import builtin_rules
from evaluator.rule import Column, Row, Summary
from tests.builtin_rules.judging import judge

NAN, INF = float("nan"), float("inf")
FALLING = [4.0 / (1 + step) for step in range(10)]
RISING = [*FALLING, 1.0, 1.5, 2.0, 2.5, 3.0]
FOLDING = ["LossDiverging", "LossNotDecreasing", "LossSpike", "MetricFlat", "Overfit", "Overtraining"]


def slowly(losses: list[float]) -> int | None:
    """The first step that fires, from the text of the rule."""
    taken: list[float] = []
    levels: list[float] = []
    for step, loss in enumerate(losses):
        if not math.isfinite(loss):
            return None
        bounded = min(loss, 3 * levels[-1]) if levels and levels[-1] > 0 else loss
        taken.append(bounded)
        if len(taken) < 5:
            continue
        last = taken[-min(100, max(5, math.ceil(len(taken) / 10))) :]
        level = sum(last) / len(last)
        lowest = min(levels, default=INF)
        levels.append(level)
        if len(taken) < 10:
            continue
        # levels are means of at most 100 values, and so many are remembered
        changing = taken[-min(100, max(20, len(last))) :]
        changes = [abs(new - old) for old, new in pairwise(changing)]
        noise = 5.5 * sum(changes) / len(changes) / math.sqrt(len(last))
        if lowest > 0 and level >= 1.5 * lowest and level - lowest >= max(0.1 * abs(levels[0]), noise):
            return step
        if losses[0] > 0 and level >= 1.3 * losses[0] and level >= levels[0] and level - losses[0] >= noise:
            return step
    return None


@pytest.mark.parametrize("seed", range(30))
def test_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(5, 160))
    walk = np.cumsum(generator.normal(generator.uniform(-0.03, 0.03), 0.05, count))
    losses = (10.0 ** generator.uniform(-3, 3) * np.exp(walk + generator.normal(0, 0.3, count))).tolist()

    assert judge("LossDiverging", {"loss": losses}).met_at == slowly(losses)


@pytest.mark.parametrize("seed", range(2))
def test_it_agrees_with_the_slow_way_over_long_runs(seed: int):
    generator = np.random.default_rng(seed)
    losses = (
        np.concatenate([np.geomspace(4, 1, 400), np.geomspace(1, 3, 400)]) + generator.normal(0, 0.3, 800)
    ).tolist()

    assert judge("LossDiverging", {"loss": losses}).met_at == slowly(losses)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        (RISING, 14),
        ([1.0 + step / 10 for step in range(12)], 9),
        ([*FALLING, *[0.2, 1.6] * 10], None),
        ([loss * 1e-300 for loss in RISING], 14),
        ([loss * 1e300 for loss in RISING], 14),
        ([1.7e308] * 12, None),
        ([5e-324] * 12, None),
        ([0.0] * 20, None),
        ([-1.0 + step / 5 for step in range(20)], None),
        ([NAN] * 20, None),
        ([*FALLING, NAN, *[9.0] * 20], None),
        ([*FALLING, INF, *[9.0] * 20], None),
        ([*FALLING, 40.0, *[0.4] * 20], None),
        ([*FALLING, *[1e-9] * 20, *[1e-7] * 20], None),
        ([2.0, 2.1] * 30, None),
        ([1.0, 9.0, 9.0], None),
    ],
)
def test_when_a_loss_diverges(losses: list[float], expected: int | None):
    assert judge("LossDiverging", {"loss": losses}).met_at == expected


def test_the_slow_rise_of_the_user_report_is_found():
    # user report 43: half a percent per hundred steps, over thousands of them
    losses = [2.0 * 1.005 ** (step / 2) for step in range(250)]

    finding = judge("LossDiverging", {"loss": losses}, steps=[50 * step for step in range(250)]).findings[0]

    assert finding.step < 8000


def test_the_finding_tells_the_levels():
    finding = judge("LossDiverging", {"loss": [4.0, *[1.0] * 9, 2.0, 2.0, 2.0, 2.0]}).findings[0]

    assert (finding.step, finding.tensor, finding.mode, finding.limit) == (13, "loss", "GLOBAL", 1.5)
    assert finding.measured == pytest.approx(1.8)
    assert finding.details == {
        "level": 1.8,
        "lowest_level": 1.0,
        "first_value": 4.0,
        "noise": pytest.approx(4 / 13 / math.sqrt(5)),
        "sum_of": 1,
    }


def test_only_losses_of_training_are_judged():
    both = [loss for pair in zip([*FALLING, *[0.4] * 5], RISING, strict=True) for loss in pair]

    assert judge("LossDiverging", {"loss": both}, modes=["TRAIN", "EVAL"] * 15).met_at is None


def test_without_modes_the_name_tells_what_is_training():
    run = {"loss": [*FALLING, *[0.3] * 5], "eval_loss": RISING}

    assert judge("LossDiverging", run).met_at is None


def test_evaluation_between_steps_of_training_does_not_end_an_issue():
    losses = [loss for loss in RISING for _ in range(2)]

    result = judge(
        "LossDiverging", {"loss": losses}, modes=["TRAIN", "EVAL"] * 15, parameters={"on_finding": "continue"}
    )

    assert [(finding.event, finding.step) for finding in result.findings] == [("met", 28), ("cleared", 28)]


def test_a_loss_of_several_workers_is_judged_on_each():
    workers = {"worker_0": {"loss": FALLING + [0.4] * 5}, "worker_1": {"loss": RISING}}

    finding = judge("LossDiverging", {}, workers=workers).findings[0]

    assert (finding.worker, finding.affected.tensors, finding.affected.of) == ("worker_1", 1, 2)


def test_parts_count_by_their_sum_and_only_where_all_were_saved():
    box: list[float | None] = [*([2.0] * 5), *([None, 1.0] * 5), *([4.0] * 6)]
    cls = [1.0] * len(box)

    finding = judge("LossDiverging", {"box_loss": box, "cls_loss": cls}).findings[0]

    sums = [one + 1 for one in box if one is not None]
    saved = [step for step, one in enumerate(box) if one is not None]
    fires = slowly(sums)
    assert fires is not None
    assert (finding.step, finding.tensor, finding.details["sum_of"]) == (saved[fires], "box_loss", 2)


def test_a_part_that_comes_later_begins_a_new_sum():
    run: dict[str, list[float | None]] = {"box_loss": [1.0] * 30, "cls_loss": [None] * 15 + [1.0] * 15}

    assert judge("LossDiverging", dict(run)).met_at is None


def test_a_total_hides_its_parts():
    run = {"reg_loss": [0.001 * 2**step for step in range(15)], "loss": [*FALLING, *[0.4] * 5]}

    assert judge("LossDiverging", run).met_at is None


def test_errors_beside_a_loss_are_not_judged_and_each_by_itself_without_one():
    errors = {"train-rmse": RISING, "train-mae": [*FALLING, *[0.4] * 5]}

    assert judge("LossDiverging", {**errors, "train-logloss": [*FALLING, *[0.4] * 5]}).met_at is None
    assert judge("LossDiverging", errors).findings[0].tensor == "train-rmse"


def test_a_run_with_a_reward_is_not_judged():
    result = judge("LossDiverging", {"loss": RISING, "ep_rew_mean": RISING}, collections={"losses": ["loss"]})

    assert (result.word, result.met_at) == ("NoIssuesFound", None)


def test_too_few_values_are_said():
    assert "no training loss has more than 9 of 10 finite values" in judge("LossDiverging", {"loss": [1.0] * 9}).why


@pytest.mark.parametrize("name", FOLDING)
def test_folding_changes_no_earlier_state_and_goes_on_from_a_copy(name: str):
    configured = configure(RuleRequest(name, {"parameter_set": "recommended"}, "ours", name), builtin_rules()[name])
    assert isinstance(configured, RuleConfiguration)
    needs = configured.rule.requires(configured.parameters)
    folds = [need.state for need in needs if isinstance(need, Summary) and need.state is not None]

    for fold in folds:
        whole, copied = fold.start(), fold.start()
        for row in _rows():
            before = copy.deepcopy(whole)
            folded = fold.add(whole, row)
            _assert_same(before, whole)
            whole, copied = folded, copy.deepcopy(fold.add(copied, row))
        _assert_same(whole, copied)
        assert sum(array.nbytes for array in whole.values()) < 16_000


def _rows() -> list[Row]:
    """Forty rows in which columns appear one after the other, in both modes."""
    generator = np.random.default_rng(0)
    names = ["loss", "val_loss", "box_loss", "accuracy", "grad_norm", "cls_loss"]
    rows = []
    for step in range(40):
        columns = [Column(name, "worker_0") for name in names[: 1 + step // 5]]
        values = np.stack([generator.uniform(0.1, 3, len(columns)), np.ones(len(columns))], axis=1)
        modes = generator.choice([0, Mode.TRAIN, Mode.EVAL, Mode.GLOBAL], len(columns)).astype(np.int8)
        rows.append(Row(values, modes, step, columns))
    return rows


def _assert_same(one: StateArrays, other: Mapping[str, object]) -> None:
    assert one.keys() == other.keys()
    for key, array in one.items():
        np.testing.assert_array_equal(array, other[key])
