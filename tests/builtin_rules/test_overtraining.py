"""Overtraining: no loss improves any more."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge

NAN, INF = float("nan"), float("inf")
BOTH = ["TRAIN", "EVAL"]
TREND = {"method": "trend"}
FLAT = [1.0, 0.5, *[0.3] * 28]
UP = [1.0, 0.8, 0.6, 0.5, *[0.5 + 0.02 * number for number in range(26)]]
DOWN = [1.0 / (1 + number) for number in range(30)]


def slowly(losses: list[float], modes: list[str], train: int, validation: int, delta: float) -> int | None:
    """The first step that fires, from the text of the rule."""
    best = {"TRAIN": math.inf, "EVAL": math.inf}
    since = {"TRAIN": 0, "EVAL": 0}
    seen: set[str] = set()
    for step, (loss, mode) in enumerate(zip(losses, modes, strict=True)):
        seen.add(mode)
        if loss < best[mode] - delta:
            best[mode], since[mode] = loss, 0
        else:
            since[mode] += 1
        if "TRAIN" in seen and since["TRAIN"] >= train and ("EVAL" not in seen or since["EVAL"] >= validation):
            return step
    return None


def test_parameters_are_sagemakers():
    assert defaults("Overtraining") == {"patience_train": 5, "patience_validation": 10, "delta": 0.01}


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    modes = generator.choice(BOTH, 60, p=[0.6, 0.4]).tolist()
    losses = (1 - 0.01 * np.arange(60) * generator.uniform(0, 1) + generator.normal(0, 0.03, 60)).tolist()
    how = {"patience_train": 3, "patience_validation": 4}

    result = judge("Overtraining", {"loss": losses}, modes=modes, **how)

    assert result.met_at == slowly(losses, modes, 3, 4, 0.01)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([1.0] * 8, 5),
        ([1.0, 0.995, 0.99, 0.989, 0.988, 0.987, 0.986], None),
        ([1.0, 0.995, 0.991, 0.992, 0.993, 0.994], 5),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 5),
        ([1.0, NAN, NAN, NAN, NAN, NAN], 5),
        ([NAN] * 8, 4),
        ([-1.0 - step for step in range(20)], None),
        ([1.0] * 5, None),
    ],
)
def test_when_training_alone_decides(losses: list[float], expected: int | None):
    assert judge("Overtraining", {"loss": losses}).met_at == expected


def test_both_modes_must_stand_still():
    improving = [value for step in range(30) for value in (1.0, 1.0 - step / 50)]

    assert judge("Overtraining", {"loss": improving}, modes=BOTH * 30).met_at is None


def test_the_finding_tells_both_counts():
    finding = judge("Overtraining", {"loss": [1.0, 2.0] * 15}, modes=BOTH * 15).findings[0]

    assert (finding.step, finding.measured, finding.limit, finding.mode) == (21, 10.0, 10.0, "EVAL")
    assert finding.details == {
        "best_training_loss": 1.0,
        "training_steps_since": 10,
        "best_validation_loss": 2.0,
        "validation_steps_since": 10,
    }


def test_metrics_that_should_rise_do_not_count_and_are_named():
    run = {"accuracy": [step / 20 for step in range(10)], "loss": [1.0] * 10}

    finding = judge("Overtraining", run).findings[0]

    assert (finding.tensor, finding.details["not_judged_because_they_should_rise"]) == ("loss", ["accuracy"])


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"train_loss": FLAT, "val_loss": UP}, 13),
        ({"val_loss": UP}, 13),
        ({"train_loss": FLAT, "val_loss": UP, "val_acc": [1 - up for up in UP]}, 13),
        ({"train_loss": FLAT, "val_loss": UP, "val_acc": DOWN[::-1]}, None),
        ({"train_loss": DOWN, "val_loss": UP}, None),
        ({"train_loss": FLAT, "val_loss": FLAT}, None),
        ({"train_loss": FLAT, "val_loss": [loss - 1 for loss in UP]}, None),
        ({"train_loss": FLAT, "val_loss": [*UP[:8], NAN, *UP[8:29]]}, None),
        ({"train_loss": FLAT, "val_loss": UP[:12]}, None),
        ({"train_loss": FLAT, "val_a_loss": UP, "val_b_loss": UP}, None),
        ({"train_loss": FLAT}, None),
    ],
)
def test_what_is_overtrained_by_trend(run: dict[str, list[float]], expected: int | None):
    assert judge("Overtraining", run, **TREND).met_at == expected


def test_by_trend_the_finding_is_about_the_validation_loss():
    both = [loss for pair in zip(FLAT, UP, strict=True) for loss in pair]

    finding = judge("Overtraining", {"loss": both}, modes=BOTH * 30, **TREND).findings[0]

    assert (finding.step, finding.mode, finding.measured, finding.limit) == (27, "EVAL", 10.0, 10.0)
    assert finding.details == {"best": 0.5, "best_at_step": 7, "validation_loss": pytest.approx(0.68)}


def test_who_names_a_patience_gets_the_documented_method():
    how = {"parameter_set": "recommended", "patience_train": 2}

    assert judge("Overtraining", {"loss": [1.0] * 4}, parameters=how).met_at == 2
