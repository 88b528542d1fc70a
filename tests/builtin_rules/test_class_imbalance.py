"""ClassImbalance: rare classes, and classes that are predicted wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge

RULE = "ClassImbalance"
BALANCED = np.arange(600) % 3
RARE = np.array([0] * 990 + [1] * 10)


def slow_verdict(labels: list[int], predictions: list[int]) -> bool:
    """Whether it fires on all labels so far, by the two checks one after the other."""
    if len(labels) < 500:
        return False
    counts: dict[int, int] = {}
    wrong: dict[int, int] = {}
    for label, prediction in zip(labels, predictions, strict=True):
        counts[label] = counts.get(label, 0) + 1
        wrong[label] = wrong.get(label, 0) + (label != prediction)
    if max(counts.values()) / min(counts.values()) > 10:
        return True
    return any(wrong[label] / counts[label] > 0.7 for label in counts)


def both(*labels: np.ndarray) -> dict[str, list[np.ndarray]]:
    return {"labels": list(labels), "predictions": list(labels)}


def test_parameters_are_sagemakers():
    assert defaults(RULE) == {
        "threshold_imbalance": 10.0,
        "threshold_misprediction": 0.7,
        "samples": 500,
        "argmax": False,
        "labels_regex": (".*labels",),
        "predictions_regex": (".*predictions",),
    }


def test_one_tensor_as_labels_and_predictions_first_saved_at_step_3():
    run: dict[str, list[Any]] = {"foo": [0.0] * 4, "labels_0": [None, None, None, RARE]}

    result = judge(RULE, run, labels_regex="labels_0", predictions_regex="labels_0")

    assert result.met_at == 3
    assert result.findings[0].measured == 99
    assert result.findings[0].details["class"] == 1


@pytest.mark.parametrize("seed", range(20))
def test_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet([1.5] * 4)
    labels = [generator.choice(4, 100, p=shares) for _ in range(12)]
    rate = generator.uniform(0, 0.85, 4)
    predictions = [np.where(generator.random(100) < rate[one], generator.integers(0, 4, 100), one) for one in labels]
    so_far = [(np.concatenate(labels[:at]).tolist(), np.concatenate(predictions[:at]).tolist()) for at in range(1, 13)]
    expected = next((step for step, (one, other) in enumerate(so_far) if slow_verdict(one, other)), None)

    assert judge(RULE, {"labels": labels, "predictions": predictions}).met_at == expected


def test_labels_are_counted_over_steps_and_not_judged_before():
    assert judge(RULE, both(*[RARE[-100:]] * 4, RARE[-99:])).met_at is None
    assert judge(RULE, both(*[RARE[-100:]] * 5)).met_at is None
    assert judge(RULE, both(*[RARE[:100]] * 4, RARE[-100:])).met_at == 4
    assert judge(RULE, both(*[RARE[:100]] * 5, np.array([1]))).met_at == 5
    assert "100 of 500 labels were seen so far" in judge(RULE, both(RARE[:100])).why


def test_exactly_ten_times_is_quiet():
    labels = np.array([0] * 500 + [1] * 50)

    assert judge(RULE, both(labels)).word == "NoIssuesFound"
    assert judge(RULE, both(np.append(labels, 0))).met_at == 0


def test_a_class_that_is_predicted_wrong():
    predictions = np.where((BALANCED == 2) & (np.arange(600) % 4 != 0), 0, BALANCED)

    finding = judge(RULE, {"labels": [BALANCED], "predictions": [predictions]}).findings[0]

    assert finding.measured == pytest.approx(0.75)
    assert (finding.limit, finding.details["class"]) == (0.7, 2)


def test_scores_are_classes_by_the_largest():
    scores = np.eye(3)[BALANCED] - 5

    assert judge(RULE, {"labels": [BALANCED], "predictions": [scores]}, argmax=True).word == "NoIssuesFound"
    assert judge(RULE, {"labels": [BALANCED], "predictions": [scores]}).word == "NoIssuesFound"
    assert judge(RULE, {"labels": [BALANCED], "predictions": [np.roll(scores, 1, axis=1)]}, argmax=True).met_at == 0


def test_probabilities_of_two_classes_are_rounded():
    labels = BALANCED % 2
    right = np.where(labels == 1, 0.9, 0.2)

    assert judge(RULE, {"labels": [labels.astype(float)], "predictions": [right]}).word == "NoIssuesFound"
    assert judge(RULE, {"labels": [labels.astype(float)], "predictions": [1 - right]}).met_at == 0


@pytest.mark.parametrize(
    ("labels", "predictions", "why"),
    [
        (BALANCED + 0.5, BALANCED, "the labels are not whole numbers"),
        (BALANCED, BALANCED + 0.5, "the predictions are neither classes nor probabilities"),
        (BALANCED, BALANCED * np.nan, "the predictions are neither classes nor probabilities"),
        (BALANCED, BALANCED[:300], "differ in number"),
        (np.arange(20_000), np.arange(20_000), "more than 10000 classes"),
    ],
)
def test_what_is_no_classification_is_not_judged_and_it_says_why(labels, predictions, why):
    result = judge(RULE, {"labels": [labels], "predictions": [predictions]})

    assert (result.word, result.evaluated) == ("Error", 0)
    assert why in result.why


def test_too_many_classes_over_several_steps():
    result = judge(RULE, both(np.arange(8000), np.arange(8000, 16_000), BALANCED))

    assert result.evaluated == 1
    assert result.met_at is None


def test_labels_without_predictions_of_the_same_step_are_not_counted():
    run = {"labels": [RARE, None, BALANCED], "predictions": [None, RARE, BALANCED]}

    assert judge(RULE, run).word == "NoIssuesFound"


def test_labels_and_predictions_go_together_by_the_order_of_their_names():
    wrong = (BALANCED + 1) % 3
    run = {"b_predictions": [wrong], "b_labels": [wrong], "a_labels": [BALANCED], "a_predictions": [BALANCED]}

    assert judge(RULE, run).word == "NoIssuesFound"
    assert judge(RULE, {**run, "b_predictions": [BALANCED]}).findings[0].tensor == "b_labels"


def test_workers_are_counted_by_themselves():
    workers = {"worker_0": both(np.zeros(600, np.int64)), "worker_1": both(np.append(np.zeros(20, np.int64), 1))}

    assert judge(RULE, {}, workers=workers).word == "NoIssuesFound"


def test_before_anything_is_learned_it_is_quiet_only_when_recommended():
    run = {"labels": [BALANCED] * 3, "predictions": [BALANCED * 0] * 3}

    assert judge(RULE, run).met_at == 0
    assert judge(RULE, run, parameter_set="recommended").word == "NoIssuesFound"


@pytest.mark.parametrize("seed", range(10))
def test_many_equally_frequent_classes_are_quiet_when_recommended(seed: int):
    labels = [np.random.default_rng([seed, step]).integers(0, 60, 50) for step in range(40)]

    assert judge(RULE, both(*labels), parameter_set="recommended").word == "NoIssuesFound"


def test_a_rare_class_is_found_when_recommended():
    labels = [np.random.default_rng(step).choice(3, 50, p=[0.49, 0.49, 0.02]) for step in range(30)]

    assert judge(RULE, both(*labels), parameter_set="recommended").met_at is not None


def test_a_regression_on_whole_numbers_is_no_classification():
    labels = np.random.default_rng(0).poisson(9, 600).astype(np.float32)
    run = {"labels": [labels], "predictions": [labels + 0.3]}

    assert judge(RULE, run).word == "Error"
