"""MetricFlat: no metric that should rise has risen, and no loss has fallen."""

from __future__ import annotations

import pytest

from tests.builtin_rules.judging import judge

NAN = float("nan")
RISES = [0.5 + number / 100 for number in range(25)]


def test_accuracy_of_guessing_is_found_though_no_loss_was_saved_and_no_collection_holds_it():
    # user report 30: accuracy stood at 0.50 for 130 steps
    result = judge("MetricFlat", {"accuracy": [0.5] * 130}, collections={})

    assert (result.met_at, result.findings[0].tensor, result.findings[0].measured) == (19, "accuracy", 0.0)


@pytest.mark.parametrize(
    ("values", "fires"),
    [
        ([0.5] * 20, True),
        ([0.5] * 19, False),
        ([0.5] * 15 + [0.509] * 5, True),
        ([0.5] * 15 + [0.52] * 5, False),
        ([0.9] * 30, False),
        ([0.89] * 30, True),
        ([89.0] * 30, True),
        ([90.0] * 30, False),
        ([0.0] * 30, False),
        ([0.0] * 20 + [0.3] * 10, False),
        ([0.5, 0.3] * 15, True),
        ([0.5, 0.3] * 10 + [0.5, 0.38] * 5, True),
        (RISES[::-1], True),
        ([NAN] * 30, False),
        ([0.5] * 10 + [NAN] + [0.5] * 20, False),
        ([5e-324] * 30, True),
        ([-0.5] * 30, True),
    ],
)
def test_what_is_flat(values: list[float], fires: bool):
    assert (judge("MetricFlat", {"accuracy": values}).met_at == 19) is fires


def test_every_metric_must_be_flat():
    assert judge("MetricFlat", {"accuracy": [0.5] * 25, "f1": RISES}).met_at is None


def test_a_metric_with_few_values_is_not_waited_for():
    rare = [0.1 if step % 5 == 0 else None for step in range(25)]

    assert judge("MetricFlat", {"accuracy": [0.5] * 25, "f1": rare}).met_at == 19


def test_a_metric_of_evaluation_is_not_compared_with_one_of_training():
    values = [0.5, 0.8] * 25

    finding = judge("MetricFlat", {"accuracy": values}, modes=["TRAIN", "EVAL"] * 25).findings[0]

    assert (finding.step, finding.mode) == (38, "TRAIN")


@pytest.mark.parametrize(("last", "fires"), [(0.9, False), (0.96, True)])
def test_a_training_loss_that_falls_excuses_it(last: float, fires: bool):
    run = {"loss": [1.0] * 10 + [last] * 15, "accuracy": [0.5] * 25}

    assert (judge("MetricFlat", run).met_at is not None) is fires


def test_a_validation_loss_that_falls_excuses_nothing():
    run = {"val_loss": [1.0 / (1 + step) for step in range(25)], "accuracy": [0.5] * 25}

    assert judge("MetricFlat", run).met_at == 19


@pytest.mark.parametrize("name", ["loss", "error", "grad_norm", "batch", "reward_std"])
def test_what_need_not_rise_is_not_judged(name: str):
    assert "no metric that should rise" in judge("MetricFlat", {name: [0.5] * 30}).why


def test_a_run_with_a_reward_is_not_judged():
    assert judge("MetricFlat", {"accuracy": [0.5] * 25, "reward": [0.5] * 25}).met_at is None


def test_what_is_not_a_single_number_is_not_judged():
    assert judge("MetricFlat", {"accuracy": [[0.5, 0.5]] * 25}).met_at is None
