"""Confusion: which class is predicted for which label."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builtin_rules.judging import defaults, judge, mistakes

RULE = "Confusion"
TEN = np.arange(10)
ONE_WRONG = np.where(TEN == 4, 7, TEN)
RANDOM = np.random.default_rng(0).integers(0, 10, 100)
FOUR = np.arange(240) % 4
THREE = np.arange(240) % 3
COLLECTIONS = {"labels": ["labels"], "predictions": ["predictions"]}


def run_of(labels: np.ndarray, *predictions: np.ndarray) -> dict[str, list[np.ndarray]]:
    return {"labels": [labels] * len(predictions), "predictions": list(predictions)}


def confused(labels: np.ndarray, predictions: np.ndarray, **how) -> bool:
    return judge(RULE, run_of(labels, predictions), collections=COLLECTIONS, **how).met_at == 0


def slow_verdict(labels: list[int], predictions: list[int], min_diag: float, max_off_diag: float) -> bool:
    size = max([*labels, *predictions]) + 1
    matrix = [[0] * size for _ in range(size)]
    for label, prediction in zip(labels, predictions, strict=True):
        matrix[label][prediction] += 1
    for i in range(size):
        row, column = sum(matrix[i]), sum(matrix[j][i] for j in range(size))
        if row and matrix[i][i] / row < min_diag:
            return True
        if column and any(matrix[j][i] / column > max_off_diag for j in range(size) if j != i):
            return True
    return False


def test_parameters_are_sagemakers():
    assert defaults(RULE) == {
        "category_no": None,
        "labels": "labels",
        "predictions": "predictions",
        "labels_collection": "labels",
        "predictions_collection": "predictions",
        "min_diag": 0.9,
        "max_off_diag": 0.1,
    }


@pytest.mark.parametrize("seed", range(25))
def test_it_agrees_with_the_slow_way(seed: int):
    generator = np.random.default_rng(seed)
    classes = int(generator.integers(2, 6))
    labels = generator.integers(0, classes, 60)
    predictions = np.where(generator.random(60) < 0.15, generator.integers(0, classes + 1, 60), labels)
    min_diag, max_off_diag = float(generator.uniform(0.6, 0.9)), float(generator.uniform(0.1, 0.3))

    expected = slow_verdict(labels.tolist(), predictions.tolist(), min_diag, max_off_diag)

    assert confused(labels, predictions, min_diag=min_diag, max_off_diag=max_off_diag) is expected


def test_a_perfect_classification_of_ten_is_quiet():
    assert judge(RULE, run_of(TEN, TEN)).word == "NoIssuesFound"


def test_tensors_in_collections_of_other_names_are_found():
    run = {"foo": [RANDOM], "bar": [RANDOM]}

    result = judge(
        RULE, run, collections={"labels": ["foo"], "preds": ["bar"]}, parameters={"predictions_collection": "preds"}
    )

    assert (result.word, result.evaluated) == ("NoIssuesFound", 1)


def test_tensors_of_other_names_are_found():
    run = {"foo": [TEN], "bar": [ONE_WRONG]}
    names = {"category_no": 10, "labels": "foo", "predictions": "bar"}

    assert judge(RULE, run, collections={}, **names).met_at == 0
    assert judge(RULE, run, collections={}, **names, min_diag=0, max_off_diag=0.01).met_at == 0


def test_a_name_that_was_given_leaves_the_default_collection_out():
    run = {"foo": [TEN], "bar": [TEN], "labels": [TEN], "predictions": [ONE_WRONG]}

    result = judge(RULE, run, collections=COLLECTIONS, labels="foo", predictions="bar")

    assert result.word == "NoIssuesFound"


def test_exactly_the_limits_are_quiet():
    labels = np.repeat([0, 1], 10)
    predictions = labels.copy()
    predictions[0], predictions[10] = 1, 0

    assert not confused(labels, predictions)
    assert confused(labels, predictions, min_diag=0.91)
    assert confused(labels, predictions, max_off_diag=0.09)


def test_the_worst_class_and_what_it_is_called_are_named():
    labels = np.array([0] * 10 + [1] * 10 + [2] * 10)
    predictions = labels.copy()
    predictions[10:18] = [2] * 5 + [0] * 3
    predictions[20] = 1

    finding = judge(RULE, run_of(labels, predictions), collections=COLLECTIONS).findings[0]

    assert finding.measured == pytest.approx(0.2)
    assert finding.limit == 0.9
    assert (finding.details["label"], finding.details["prediction"]) == (1, 2)


def test_each_step_is_judged_by_itself():
    half = np.where(np.arange(240) % 8 == 2, 0, FOUR)

    assert judge(RULE, run_of(FOUR, FOUR, FOUR, half), collections=COLLECTIONS).met_at == 2


def test_samples_of_other_categories_are_left_out():
    labels = np.array([0, 1, 0, 1, 7])

    assert not confused(labels, np.array([0, 1, 0, 1, 0]), category_no=2)
    assert confused(labels, np.array([0, 1, 0, 1, 0]))
    assert "at least 2" in mistakes(RULE, category_no="1")[0]


def test_probabilities_of_two_classes_are_rounded_and_not_cut():
    labels = np.array([0.0, 1.0] * 10)

    assert not confused(labels, np.where(labels == 1, 0.7, 0.3))
    assert confused(labels, np.where(labels == 1, 0.3, 0.3))


def test_labels_that_are_not_whole_numbers_are_no_classes():
    result = judge(RULE, run_of(TEN + 0.5, TEN), collections=COLLECTIONS)

    assert (result.word, result.evaluated) == ("Error", 0)
    assert "the labels are not whole numbers" in result.why


def test_different_lengths_are_not_judged():
    assert "differ in number" in judge(RULE, run_of(TEN, TEN[:4]), collections=COLLECTIONS).why


def recommended(labels: np.ndarray, *predictions: np.ndarray, **how):
    return judge(RULE, run_of(labels, *predictions), collections=COLLECTIONS, parameter_set="recommended", **how)


def test_a_class_that_is_never_recognised_is_found_when_recommended():
    without = np.where(FOUR == 2, 0, FOUR)

    finding = recommended(FOUR, *[FOUR * 0] * 3, *[without] * 20).findings[0]

    assert (finding.details["label"], finding.details["prediction"]) == (2, 0)
    assert 3 + 8 <= finding.step + 1 <= 3 + 10


def test_a_class_that_is_not_recognised_any_more_is_found_soon_when_recommended():
    without = np.where(FOUR == 2, 0, FOUR)

    assert recommended(FOUR, *[FOUR] * 15, *[without] * 5).met_at in {15, 16, 17}


def test_evaluation_is_judged_by_itself_when_recommended():
    without = np.where(FOUR == 2, 0, FOUR)
    labels = {"labels": [FOUR] * 40, "predictions": [FOUR, without] * 20}

    result = judge(RULE, labels, collections=COLLECTIONS, modes=["TRAIN", "EVAL"] * 20, parameter_set="recommended")

    assert result.findings[0].mode == "EVAL"


@pytest.mark.parametrize("seed", range(10))
def test_a_model_that_learns_is_quiet_when_recommended(seed: int):
    generator = np.random.default_rng(seed)
    when = generator.permutation(6) * 4
    labels = [generator.integers(0, 6, 60) for _ in range(60)]
    predictions = [
        np.where(when[one] <= step, np.where(generator.random(60) < 0.1, 0, one), generator.integers(0, 6, 60))
        for step, one in enumerate(labels)
    ]

    result = judge(
        RULE, {"labels": labels, "predictions": predictions}, collections=COLLECTIONS, parameter_set="recommended"
    )

    assert result.word == "NoIssuesFound"


def test_a_model_that_has_learned_nothing_is_quiet_when_recommended():
    assert recommended(FOUR, *[FOUR * 0] * 30).word == "NoIssuesFound"
    assert recommended(FOUR % 2, *[FOUR * 0] * 30).word == "NoIssuesFound"
    assert recommended(THREE, *[np.minimum(THREE, 1)] * 3, *[THREE] * 20).word == "NoIssuesFound"


def test_overlapping_classes_are_quiet_when_recommended():
    generator = np.random.default_rng(0)
    labels = [generator.integers(0, 4, 60) for _ in range(60)]
    predictions = [np.where(generator.random(60) < 0.5, generator.integers(0, 4, 60), one) for one in labels]

    result = judge(
        RULE, {"labels": labels, "predictions": predictions}, collections=COLLECTIONS, parameter_set="recommended"
    )

    assert result.word == "NoIssuesFound"
