"""Overfit: the validation loss against the training loss."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge

NAN, INF = float("nan"), float("inf")
BOTH = ["TRAIN", "EVAL"]


def slowly(
    series: dict[str, list[float | None]], modes: list[str], patience: int, threshold: float, start_step: int
) -> int | None:
    """The first step that fires, from the text of the rule."""
    training, count = math.nan, 0
    for step, mode in enumerate(modes):
        saved = [values[step] for values in series.values()]
        losses = [loss for loss in saved if loss is not None]
        if not losses:
            continue
        mean = sum(losses) / len(losses)
        if mode == "TRAIN":
            training = mean
        elif step >= start_step and not math.isnan(training):
            count = count + 1 if (mean - training) / training > threshold else 0
            if count >= patience:
                return step
    return None


def test_parameters_are_sagemakers():
    assert defaults("Overfit") == {"tensor_regex": None, "start_step": 0, "patience": 1, "ratio_threshold": 0.1}


@pytest.mark.parametrize(("patience", "start_step"), [(1, 0), (2, 0), (3, 7)])
@pytest.mark.parametrize("seed", range(6))
def test_it_agrees_with_the_slow_way(patience: int, start_step: int, seed: int):
    generator = np.random.default_rng(seed)
    modes = generator.choice(BOTH, 30).tolist()
    series: dict[str, list[float | None]] = {
        name: [None if generator.random() < 0.2 else float(generator.uniform(0.8, 1.3)) for _ in range(30)]
        for name in "ab"
    }

    result = judge("Overfit", series, modes=modes, parameters={"patience": patience, "start_step": start_step})

    assert result.met_at == slowly(series, modes, patience, 0.1, start_step)


@pytest.mark.parametrize(
    ("training", "validation", "fires"),
    [
        (1.0, 1.2, True),
        (1.0, 1.05, False),
        (1.0, NAN, True),
        (1.0, INF, True),
        (NAN, 1.0, False),
        (0.0, 1.0, False),
        (-1.0, -0.5, True),
        (-1.0, -2.0, False),
        (1e-300, 2e-300, True),
        (1e300, 1.01e300, False),
    ],
)
def test_when_validation_is_too_far_above_training(training: float, validation: float, fires: bool):
    assert (judge("Overfit", {"loss": [training, validation]}, modes=BOTH).met_at == 1) is fires


def test_the_finding_names_the_loss_and_both_values():
    finding = judge("Overfit", {"loss": [1.0, 1.5]}, modes=BOTH).findings[0]

    assert (finding.tensor, finding.mode, finding.measured, finding.limit) == ("loss", "EVAL", 0.5, 0.1)
    assert finding.details == {"validation_loss": 1.5, "training_loss": 1.0}


def test_without_losses_of_evaluation_it_says_which_modes_there_are():
    result = judge("Overfit", {"loss": [1.0, 1.5]}, modes=["TRAIN", "TRAIN"])

    assert "none was saved in mode EVAL; modes saved: TRAIN" in result.why


def test_workers_are_taken_together():
    workers = {"worker_0": {"loss": [1.0, 1.0]}, "worker_1": {"loss": [1.0, 1.4]}}

    result = judge("Overfit", {}, workers=workers, modes=BOTH)

    assert result.findings[0].measured == pytest.approx(0.2)


def test_a_metric_that_should_rise_is_left_out():
    run = {"loss": [1.0, 1.05], "accuracy": [0.1, 0.9]}

    assert judge("Overfit", run, modes=BOTH).word == "NoIssuesFound"


def test_a_tensor_regex_replaces_the_collection():
    run = {"loss": [1.0, 1.0], "other": [1.0, 2.0]}

    result = judge("Overfit", run, modes=BOTH, collections={"losses": ["loss"]}, parameters={"tensor_regex": "other"})

    assert result.findings[0].tensor == "other"


def test_a_step_of_training_does_not_end_an_issue():
    run = {"loss": [1.0, 1.5, 0.9, 1.5, 0.9, 0.9]}

    result = judge("Overfit", run, modes=BOTH * 3, parameters={"on_finding": "continue"})

    assert [(finding.event, finding.step, finding.last_step, finding.steps_met) for finding in result.findings] == [
        ("met", 1, None, None),
        ("cleared", 1, 3, 2),
    ]
