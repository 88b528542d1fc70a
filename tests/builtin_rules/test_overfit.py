"""Overfit: the validation loss against the training loss."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge

NAN, INF = float("nan"), float("inf")
BOTH = ["TRAIN", "EVAL"]
UP = [1.0, 0.8, 0.6, 0.5, *[0.5 + 0.02 * number for number in range(26)]]
DOWN = [1.0 / (1 + number) for number in range(30)]


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


def slowly_by_trend(
    training: Sequence[float], validation: Sequence[float], metrics: Sequence[Sequence[float]], evaluations: int = 10
) -> int | None:
    """The first step that fires, from the text of method `trend`; everything is saved at every step."""
    steps = len(validation)
    for now in [*range(steps), steps]:
        ended = now == steps
        last = min(now, steps - 1)
        seen = validation[: last + 1]
        if not all(math.isfinite(loss) for loss in seen):
            return None
        best = min(seen)
        at = seen.index(best)
        since = last - at
        if best <= 0 or since < (3 if ended else evaluations) or at > 0.7 * last:
            continue
        after = seen[max(at + 1, last - 2) :]
        last_mean = sum(after) / len(after)
        if min(seen[-1], last_mean) < 1.2 * best:
            continue
        changes = [abs(seen[at] - seen[at - 1]) for at in range(max(1, last - 19), last + 1)]
        if since < evaluations and last_mean - best < 2 * sum(changes) / len(changes):
            continue
        then, new = training[max(0, at - 4) : at + 1], training[max(0, last - 4) : last + 1]
        if sum(new) / len(new) > 1.2 * sum(then) / len(then):
            continue
        if all(metric_is_worse(metric[: last + 1], at) for metric in metrics if last >= 3):
            return int(last)
    return None


def metric_is_worse(values: Sequence[float], since: int) -> bool:
    """From the text of `not_worse`."""
    now = len(values) - 1
    means = [sum(values[at - 2 : at + 1]) / 3 for at in range(2, now + 1)]
    changes = sorted(abs(values[at] - values[at - 1]) for at in range(max(1, now - 19), now + 1))
    middle = len(changes) // 2
    median = changes[middle] if len(changes) % 2 else (changes[middle - 1] + changes[middle]) / 2
    noise = max(2 * median, 0.001 * max(abs(value) for value in values))
    age = now - values.index(max(values))
    return age >= 0.5 * (now - since) and max(means) - means[-1] >= 0.4 * noise


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


@pytest.mark.parametrize("seed", range(24))
def test_by_trend_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(8, 60))
    turn = generator.uniform(0.1, 0.9) * count
    validation = [1 + abs(step - turn) / turn + generator.normal(0, 0.02) for step in range(count)]
    training = [2 - generator.uniform(0.5, 1.2) * step / count + generator.normal(0, 0.05) for step in range(count)]
    metrics = [
        [generator.choice([1, -1]) * value / 10 + generator.normal(0, 0.01) for value in validation][:count]
        for _ in range(int(generator.integers(0, 2)))
    ]
    run = {"train_loss": training, "val_loss": validation} | {f"val_f{at + 1}": one for at, one in enumerate(metrics)}

    result = judge("Overfit", run, method="trend")

    assert result.met_at == slowly_by_trend(training, validation, metrics)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", range(6))
def test_by_trend_a_metric_decides_as_the_slow_way_says(seed: int, sign: int):
    generator = np.random.default_rng(seed)
    metric = [0.5 - sign * (up - 0.5) / 3 + generator.normal(0, 0.02) for up in UP]

    result = judge("Overfit", {"train_loss": DOWN, "val_loss": UP, "val_acc": metric}, method="trend")

    assert result.met_at == slowly_by_trend(DOWN, UP, [metric])


@pytest.mark.parametrize(
    ("validation", "expected"),
    [
        (UP, 13),
        ([loss * 1e-300 for loss in UP], 13),
        ([loss * 1e300 for loss in UP], 13),
        ([loss - 1 for loss in UP], None),
        ([0.0, *UP], None),
        ([NAN, *UP], None),
        ([INF, *UP], None),
        ([*UP[:12], NAN, *UP[12:]], None),
        (UP[:6], None),
        ([0.5] * 30, None),
        (DOWN, None),
    ],
)
def test_what_is_past_its_best(validation: list[float], expected: int | None):
    assert judge("Overfit", {"val_loss": validation}, method="trend").met_at == expected


def test_by_trend_the_finding_tells_the_minimum_and_the_training_loss():
    finding = judge("Overfit", {"train_loss": DOWN, "val_loss": UP}, method="trend").findings[0]

    then, now = sum(DOWN[:4]) / 4, sum(DOWN[9:14]) / 5
    assert (finding.tensor, finding.limit) == ("val_loss", 1.2)
    assert finding.measured == pytest.approx(1.36)
    assert finding.details == {
        "minimum": 0.5,
        "minimum_at_step": 3,
        "evaluations_since": 10,
        "validation_loss": pytest.approx(0.68),
        "training_loss_rose_times": pytest.approx(now / then),
    }


def test_by_trend_one_loss_saved_in_both_modes_is_two_losses():
    both = [loss for pair in zip(DOWN, UP, strict=True) for loss in pair]

    result = judge("Overfit", {"loss": both}, modes=BOTH * 30, method="trend")

    assert (result.met_at, result.findings[0].mode, result.findings[0].mode_step) == (27, "EVAL", 13)


def test_by_trend_a_loss_of_xgboost_goes_before_its_errors():
    run = {
        "train-error": DOWN,
        "train-logloss": DOWN,
        "validation-error": [0.03, 0.02] * 15,
        "validation-logloss": UP,
    }

    # the error neither is the loss nor got worse as a metric
    assert judge("Overfit", run, method="trend").met_at is None
    assert judge("Overfit", {**run, "validation-error": UP}, method="trend").findings[0].tensor == "validation-logloss"


def test_by_trend_keras_validation_losses_are_found_though_they_are_in_no_collection():
    run = {"loss": DOWN, "val_loss": UP}

    result = judge("Overfit", run, modes=["EVAL"] * 30, collections={"losses": ["loss"]}, method="trend")

    assert result.findings[0].tensor == "val_loss"


def test_by_trend_each_worker_is_compared_with_its_own_training_loss():
    workers = {
        "worker_0": {"train_loss": [1 + step / 10 for step in range(30)], "val_loss": UP},
        "worker_1": {"train_loss": DOWN, "val_loss": UP},
    }

    result = judge("Overfit", {}, workers=workers, method="trend")

    assert (result.findings[0].worker, result.findings[0].affected.tensors) == ("worker_1", 1)


def test_by_trend_the_end_does_not_count_as_another_evaluation():
    result = judge("Overfit", {"val_loss": UP}, method="trend", consecutive=30)

    assert result.met_at is None


def test_who_names_the_documented_threshold_gets_the_documented_method():
    how = {"parameter_set": "recommended", "ratio_threshold": 0.2}

    assert judge("Overfit", {"loss": [1.0, 1.3]}, modes=BOTH, parameters=how).met_at == 1
