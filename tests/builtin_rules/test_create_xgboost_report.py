"""CreateXgboostReport: what its sections say, and that nothing in a trial keeps the page from being made."""

from __future__ import annotations

import base64
import json
import math
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rules.trees._report.charts import drawing, svg
from builtin_rules.trees._report.facts import Facts, facts_of
from builtin_rules.trees._report.history import LIMIT, add, start
from builtin_rules.trees._report.measures import PAIRS, aligned, of_pairs
from builtin_rules.trees._report.page import page
from builtin_rules.trees._report.parts import Bars, Chart, Grid, Histogram, Line, Lines, Section
from builtin_rules.trees._report.roc import roc
from builtin_rules.trees._report.rows import MOST_ROWS, Bins, sampled
from builtin_rules.trees._report.scores import scores
from builtin_rules.trees._report.sections import SECTIONS
from builtin_rules.trees._report.shown import shown
from builtin_rules.trees.create_xgboost_report import RULE
from evaluator.cli import run_command_line
from evaluator.modes import Mode
from evaluator.needs import Tensor
from evaluator.rule import Column, Example, Row
from evaluator.segments import Floats
from evaluator.testing import run_example, trial_from_series

NAME = "CreateXgboostReport"
XGB_BINARY = Path(__file__).parents[3] / "shared/trials/xgb_binary"
NAN, INF = float("nan"), float("inf")
TENSOR = Tensor("labels", "worker_0", Mode.GLOBAL, 0)

Series = Mapping[str, Sequence[Any]]


# runs


def objective(text: str, steps: int) -> dict[str, list[Any]]:
    """As XGBoost's hook saves it: at the first step only."""
    return {"hyperparameters/objective": [np.array([text]), *[None] * (steps - 1)]}


def importance(features: Mapping[str, float], steps: int) -> dict[str, list[Any]]:
    return {
        f"feature_importance/{kind}/{name}": [None] * (steps - 1) + [value * scale]
        for scale, kind in enumerate(("weight", "gain", "cover"), start=1)
        for name, value in features.items()
    }


@cache
def binary_run() -> dict[str, Any]:
    random = np.random.default_rng(3)
    labels = (random.random(150) < 0.4).astype(np.float32)
    predictions = [
        np.clip(0.5 + (labels - 0.5) * share + random.normal(0, 0.2, 150), 0, 1).astype(np.float32).round(2)
        for share in (0.1, 0.3, 0.6, 0.8)
    ]
    return {
        "labels": [labels] * 4,
        "predictions": predictions,
        "train-logloss": [0.6, 0.4, 0.3, 0.25],
        "validation-logloss": [0.65, 0.5, 0.4, 0.375],
        **importance({"age": 3.0, "income": 1.0}, 4),
        **objective("binary:logistic", 4),
    }


@cache
def multiclass_run() -> dict[str, Any]:
    random = np.random.default_rng(4)
    labels = random.integers(0, 4, 120)
    outputs = [np.eye(4)[labels] * scale + random.random((120, 4)) for scale in (0.2, 0.8)]
    predictions = [(one / one.sum(axis=1, keepdims=True)).astype(np.float32) for one in outputs]
    return {"labels": [labels.astype(np.float32)] * 2, "predictions": predictions, "train-mlogloss": [1.0, 0.5]}


@cache
def regression_run() -> dict[str, Any]:
    random = np.random.default_rng(5)
    labels = random.gamma(2.0, 30.0, 200).astype(np.float32)
    predictions = [(labels * share + random.normal(0, 5, 200)).astype(np.float32) for share in (0.2, 0.6, 0.95)]
    return {"labels": [labels] * 3, "predictions": predictions, **objective("reg:squarederror", 3)}


RUNS = {"binary": binary_run, "multiclass": multiclass_run, "regression": regression_run}


def facts_from(tensors: Series, **how: Any) -> Facts:
    """What the rule has gathered at the end of a run."""
    seen: list[Any] = []
    spy = replace(RULE, report=None, condition=lambda *arguments: seen.append(arguments[:-1]))
    result = run_example(spy, Example("test", tensors, collections=how.pop("collections", {}), **how))
    assert not result.failed, result.why
    return facts_of(*seen[-1])


def sections_of(facts: Facts) -> dict[str, Section]:
    return {section.anchor: section for section in (make(facts) for make in SECTIONS[facts.problem.kind])}


class Page(HTMLParser):
    """What stands on a page: per section its text, tables and pictures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sections: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.pictures: dict[str, list[ET.Element]] = {}
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.text: dict[str, str] = {"": ""}
        self._rows: list[list[str]] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        self.addresses += [str(found[name]) for name in ("src", "href") if name in found]
        if tag == "section":
            self.sections.append(str(found["id"]))
            self.text[self.sections[-1]] = ""
        elif tag == "img":
            data = str(found["src"]).partition("base64,")[2]
            self.pictures.setdefault(self.sections[-1], []).append(ET.fromstring(base64.b64decode(data)))  # noqa: S314
        elif tag == "table":
            self._rows = self.tables.setdefault(str(found["data-name"]), [])
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag in {"td", "th"} and self._rows is not None:
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._rows = None

    def handle_data(self, data: str) -> None:
        if self._rows and self._rows[-1]:
            self._rows[-1][-1] += data.strip()
        self.text[self.sections[-1] if self.sections else ""] += data

    def rows(self, table: str) -> dict[str, list[str]]:
        return {row[0]: row[1:] for row in self.tables[table]}


@cache
def page_of(run: str) -> Page:
    return Page(page(facts_from(RUNS[run]())))


# slow and plainly different ways to the same numbers


def pairs_won(positive: Sequence[bool], scores_of: Sequence[float]) -> float:
    """The area under the curve: how often a positive scores higher than a negative, half for equal ones."""
    won, pairs = 0.0, 0
    for yes, high in zip(positive, scores_of, strict=True):
        for no, low in zip(positive, scores_of, strict=True):
            if yes and not no:
                won += 1.0 if high > low else 0.5 if high == low else 0.0
                pairs += 1
    return won / pairs


def one_against_rest(labels: Sequence[int], predicted: Sequence[int], label: int) -> tuple[float, float, float]:
    right = sum(truth == label == guess for truth, guess in zip(labels, predicted, strict=True))
    precision = right / list(predicted).count(label) if label in predicted else 0.0
    recall = right / list(labels).count(label) if label in labels else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def matrix_of(labels: Sequence[int], predicted: Sequence[int], size: int) -> Floats:
    matrix = np.zeros((size, size))
    for truth, guess in zip(labels, predicted, strict=True):
        matrix[truth, guess] += 1
    return matrix


# what each kind of problem has


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("binary", ["labels", "loss", "importance", "confusion", "scores", "diagonal", "roc", "residuals"]),
        ("multiclass", ["labels", "loss", "importance", "confusion", "scores", "diagonal", "residuals"]),
        ("regression", ["labels", "loss", "importance", "residuals", "bins"]),
    ],
)
def test_each_kind_of_problem_has_its_sections(run, expected):
    assert page_of(run).sections == expected


@pytest.mark.parametrize("run", RUNS)
def test_a_section_draws_something_or_says_what_it_lacks(run):
    shown_page = page_of(run)

    without = {anchor for anchor in shown_page.sections if anchor not in shown_page.pictures and anchor != "scores"}

    assert without == {anchor for anchor in shown_page.sections if "Not shown: no tensor" in shown_page.text[anchor]}


# the numbers


def test_labels_are_counted():
    labels = binary_run()["labels"][0]
    ones = int(labels.sum())

    expected = {
        "class": ["labels", "share"],
        "0": [str(150 - ones), f"{(150 - ones) / 1.5:.2f} %"],
        "1": [str(ones), f"{ones / 1.5:.2f} %"],
    }

    assert page_of("binary").rows("labels") == expected


def test_labels_of_a_regression_are_counted_by_value():
    counts = [int(row[0]) for name, row in page_of("regression").rows("labels").items() if name != "label"]

    assert counts == np.histogram(regression_run()["labels"][0].astype(float), 20)[0].tolist()


def test_losses_are_told_for_training_and_validation():
    rows = page_of("binary").rows("metrics")

    assert rows["train-logloss"] == ["0.6", "0.25", "3"]
    assert rows["validation-logloss"] == ["0.65", "0.375", "3"]
    assert len(page_of("binary").pictures["loss"]) == 1


def test_importance_is_told_in_percent_of_each_kind():
    rows = page_of("binary").rows("importance")

    assert rows == {"feature": ["weight", "gain", "cover"], "age": ["75.00 %"] * 3, "income": ["25.00 %"] * 3}
    assert len(page_of("binary").pictures["importance"]) == 3


@pytest.mark.parametrize("run", ["binary", "multiclass"])
def test_the_confusion_matrix_counts_the_last_step(run):
    labels, predicted = labels_and_classes(run)
    rows = page_of(run).tables["confusion"][1:]

    matrix = [[int(cell) for cell in row[1:]] for row in rows]

    assert matrix == matrix_of(labels, predicted, len(rows)).astype(int).tolist()


@pytest.mark.parametrize("run", ["binary", "multiclass"])
def test_the_scores_are_those_of_one_class_against_the_rest(run):
    labels, predicted = labels_and_classes(run)
    each = {label: one_against_rest(labels, predicted, label) for label in sorted(set(labels))}
    right = np.mean(np.array(labels) == predicted)

    rows = page_of(run).rows("averages")

    assert page_of(run).rows("accuracy") == {"accuracy": [f"{right:.3f}"]}
    assert rows["micro average"] == [f"{right:.3f}"] * 3
    assert rows["macro average"] == [f"{np.mean([one[at] for one in each.values()]):.3f}" for at in range(3)]
    assert rows["weighted average"] == [f"{np.mean([each[label][at] for label in labels]):.3f}" for at in range(3)]
    expected = {
        str(label): [*(f"{value:.3f}" for value in values), str(labels.count(label))] for label, values in each.items()
    }
    assert {name: row for name, row in page_of(run).rows("classes").items() if name != "class"} == expected


@pytest.mark.parametrize("run", ["binary", "multiclass"])
def test_the_diagonal_is_told_of_the_first_and_the_last_step(run):
    rows = page_of(run).rows("diagonal")

    for label in sorted(set(labels_and_classes(run)[0])):
        ends = [one_against_rest(*labels_and_classes(run, step), label)[1] for step in (0, -1)]
        assert rows[str(label)] == [f"{share:.3f}" for share in ends]


def test_the_area_under_the_curve_is_how_often_a_positive_scores_higher():
    run = binary_run()
    labels = [bool(label) for label in run["labels"][-1]]

    rows = page_of("binary").rows("roc")

    assert rows["AUC"] == [f"{pairs_won(labels, run['predictions'][-1].tolist()):.3f}"]
    assert rows["positive labels"] == [str(sum(labels))]


@pytest.mark.parametrize("run", ["binary", "regression"])
def test_residuals_are_predictions_less_labels(run):
    tensors = RUNS[run]()
    pairs = zip(tensors["predictions"][-1], tensors["labels"][-1], strict=True)
    residual = [float(guess) - float(truth) for guess, truth in pairs]

    rows = page_of(run).rows("residuals")

    assert rows["mean"] == [f"{sum(residual) / len(residual):.4g}"]
    assert rows["mean absolute error"] == [f"{sum(map(abs, residual)) / len(residual):.4g}"]
    assert rows["root mean square error"] == [f"{(sum(one * one for one in residual) / len(residual)) ** 0.5:.4g}"]


def test_the_error_is_told_by_label():
    tensors = regression_run()
    labels = tensors["labels"][0].astype(float)
    edges = np.linspace(labels.min(), labels.max(), 11)

    rows = page_of("regression").tables["bins"][1:]

    expected = []
    for low, high in pairwise(edges):
        inside = [at for at, label in enumerate(labels) if low <= label < high or label == high == edges[-1]]
        if inside:
            ends = [np.mean([abs(tensors["predictions"][at][row] - labels[row]) for row in inside]) for at in (0, -1)]
            expected.append([str(len(inside)), *(f"{float(end):.4g}" for end in ends)])
    assert [row[1:] for row in rows] == expected


def labels_and_classes(run: str, step: int = -1) -> tuple[list[int], list[int]]:
    labels, predictions = RUNS[run]()["labels"][step], RUNS[run]()["predictions"][step]
    classes = (
        [int(one > 0.5) for one in predictions] if run == "binary" else [int(np.argmax(one)) for one in predictions]
    )
    return [int(label) for label in labels], classes


# curve and scores against their slow references


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([-INF, -1.0, 0.0, 0.5, 0.75, 1e300])), min_size=1))
def test_the_curve_passes_through_every_threshold(rows):
    positive, scores_of = [one[0] for one in rows], [one[1] for one in rows]
    curve = roc(np.array(positive), np.array(scores_of), 101)
    if len(set(positive)) < 2:
        assert curve is None
        return
    assert curve is not None

    assert curve.area == pytest.approx(pairs_won(positive, scores_of))
    points = list(zip(curve.false_positive, curve.true_positive, strict=True))
    for threshold in scores_of:
        above = [yes for yes, score in rows if score >= threshold]
        true, false = sum(above) / sum(positive), (len(above) - sum(above)) / (len(rows) - sum(positive))
        assert any(between((false, true), *ends) for ends in pairwise(points))


def between(point: tuple[float, float], begin: tuple[float, float], end: tuple[float, float]) -> bool:
    """Whether a point lies on the straight line between two others."""
    direct, around = math.dist(begin, end), math.dist(begin, point) + math.dist(point, end)
    return direct == pytest.approx(around, abs=1e-9)


def test_a_long_curve_is_thinned_and_its_area_is_not():
    random = np.random.default_rng(0)
    positive = random.random(3000) < 0.5
    scores_of = random.random(3000) + positive * 0.3

    curve = roc(positive, scores_of, 101)

    assert curve is not None
    assert len(curve.false_positive) <= 101
    assert (curve.false_positive[0], curve.true_positive[0]) == (0, 0)
    assert (curve.false_positive[-1], curve.true_positive[-1]) == (1, 1)
    assert (np.diff(curve.false_positive) >= 0).all()
    assert (np.diff(curve.true_positive) >= 0).all()
    assert curve.area == pytest.approx(pairs_won(positive.tolist(), scores_of.tolist()))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_scores_are_those_of_one_class_against_the_rest(rows):
    labels, predicted = [one[0] for one in rows], [one[1] for one in rows]
    found = scores(matrix_of(labels, predicted, 5))

    assert found is not None
    assert found.classes.tolist() == sorted({*labels, *predicted})
    each = [one_against_rest(labels, predicted, label) for label in found.classes.tolist()]
    assert np.column_stack([found.precision, found.recall, found.f1]) == pytest.approx(np.array(each))


def test_an_empty_matrix_has_no_scores():
    assert scores(np.zeros((3, 3))) is None


# which kind of problem


@pytest.mark.parametrize(
    ("tensors", "kind", "reason"),
    [
        ({"labels": [[0, 1]], **objective("reg:logistic", 1)}, "regression", "the objective is reg:logistic"),
        ({"labels": [[0, 1]], **objective("multi:softmax", 1)}, "multiclass", "the objective is multi:softmax"),
        ({"labels": [[0.5, 1]], **objective("binary:hinge", 1)}, "binary", "the objective is binary:hinge"),
        (
            {"labels": [[0, 1]], **objective("<function mine>", 1)},
            "binary",
            "the objective <function mine> does not tell; all labels are 0 or 1",
        ),
        ({"labels": [[0, 0]]}, "binary", "no objective was saved; all labels are 0 or 1"),
        ({"labels": [[0, 7]]}, "multiclass", "no objective was saved; labels are whole numbers up to 7"),
        ({"labels": [[0, 70]]}, "regression", "labels are whole numbers up to 70, more than classes usually are"),
        ({"labels": [[0.5, 7]]}, "regression", "labels are no numbers of classes"),
        ({"labels": [[0, 1]], "predictions": [[0.1, 0.7]]}, "binary", "all labels are 0 or 1"),
        ({"labels": [[0, 2]], "predictions": [[1, 2]]}, "multiclass", "labels and predictions are numbers of classes"),
        (
            {"labels": [[0, 2]], "predictions": [[1.5, 2]]},
            "regression",
            "labels are whole numbers, but predictions are",
        ),
        ({"labels": [[0, 2]], "predictions": [np.eye(2, 3)]}, "multiclass", "there are 3 predictions for each label"),
        ({"labels": [[NAN]]}, "unknown", "there are no labels to tell it by"),
        ({"train-rmse": [1.0]}, "unknown", "there are no labels to tell it by"),
    ],
)
def test_the_kind_of_problem_is_told_with_its_reason(tensors, kind, reason):
    problem = facts_from(tensors).problem

    assert problem.kind == kind
    assert reason in problem.reason


# what may be missing


@pytest.mark.parametrize(
    ("without", "section", "says"),
    [
        ("labels", "labels", "no tensor 'labels' was saved"),
        ("labels", "confusion", "no tensor 'labels' was saved"),
        ("predictions", "scores", "no tensor 'predictions' was saved"),
        ("predictions", "roc", "no tensor 'predictions' was saved"),
        ("predictions", "residuals", "no tensor 'predictions' was saved"),
        ("-logloss", "loss", "no tensor of the collection 'metrics' was saved"),
        ("feature_importance", "importance", "no tensor 'feature_importance/weight/...', 'gain/...' or 'cover/...'"),
    ],
)
def test_a_section_names_the_tensor_that_it_lacks_and_the_others_stay(without, section, says):
    tensors = {name: values for name, values in binary_run().items() if without not in name}

    sections = sections_of(facts_from(tensors))

    assert says in str(sections[section].missing)
    assert any(one.missing is None for one in sections.values())


def test_a_kind_of_importance_that_is_missing_is_named():
    tensors = {name: values for name, values in binary_run().items() if "/gain/" not in name}

    section = sections_of(facts_from(tensors))["importance"]

    assert section.missing is None
    assert "No tensor 'feature_importance/gain/...' was saved." in section.notes


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("labels", ["labels"]),
        ("predictions", []),
        ("train-logloss", ["loss"]),
        ("feature_importance/gain/age", ["importance"]),
    ],
)
def test_one_tensor_is_enough_for_a_page(only, expected):
    sections = sections_of(facts_from({only: binary_run()[only]}))

    assert [one.anchor for one in sections.values() if one.missing is None] == expected


def test_what_was_saved_earlier_than_the_rest_says_so():
    tensors: Series = {"labels": [[0, 1], None], "predictions": [[0.2, 0.9], None], "train-error": [0.5, 0.4]}

    section = sections_of(facts_from(tensors, steps=[3, 7]))["confusion"]

    assert "Saved last at step 3." in section.notes


# odd labels and predictions

SHAPES: Mapping[str, tuple[Any, Any]] = {
    "different length": ([0, 1, 1], [0.5, 0.5]),
    "multi-output": (np.ones((4, 3)), np.ones((4, 3)) * 0.5),
    "multi-output with flat labels": (np.arange(12.0), np.arange(12.0).reshape(4, 3) + 0.5),
    "quantiles": ([1.5, 2.5], [[1.0, 2.0, 3.0]] * 2),
    "flat probabilities": ([0, 1, 2], [0.5, 0.25, 0.25] * 3),
    "NaN": ([0, NAN, 1], [0.5, 0.5, NAN]),
    "nothing but NaN": ([NAN] * 3, [NAN] * 3),
    "infinite": ([0, INF, 1], [INF, 0.5, -INF]),
    "single class": ([1, 1], [0.5, 0.7]),
    "all the same": ([2.5, 2.5], [2.5, 2.5]),
    "one row": ([0], [0.5]),
    "huge": ([1.7e308, -1.7e308], [-1.7e308, 1.7e308]),
    "tiny": ([5e-324, -5e-324], [0.0, 5e-324]),
    "very many classes": (np.arange(500), np.arange(500)[::-1]),
    "negative classes": ([-1, 1, -1], [-1, 1, 1]),
    "empty": (np.zeros(0), np.zeros(0)),
    "text": (np.array(["a"]), np.array(["a"])),
    "truth values": ([True, False], [True, True]),
    "small integers": (np.array([0, 127], np.int8), np.array([-128, 127], np.int8)),
    "complex": (np.array([1j]), np.array([1j])),
    "half precision": (np.array([0, 1], np.float16), np.array([0.1, 65504], np.float16)),
    "scalars": (1.0, 1.0),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("told", ["", "binary:logistic", "multi:softprob", "reg:squarederror"])
def test_odd_labels_and_predictions_leave_every_section_standing(shape, told):
    labels, predictions = SHAPES[shape]
    words = objective(told, 2) if told else {}

    facts = facts_from({"labels": [labels] * 2, "predictions": [predictions] * 2, "train-error": [0.1, 0.2], **words})

    assert all(make(facts).title for make in {make for every in SECTIONS.values() for make in every})


@pytest.mark.parametrize("shape", ["infinite", "huge", "tiny", "very many classes", "all the same"])
def test_odd_labels_and_predictions_can_be_drawn(shape):
    labels, predictions = SHAPES[shape]

    drawn = Page(page(facts_from({"labels": [labels] * 2, "predictions": [predictions] * 2})))

    assert drawn.pictures["labels"]


def test_labels_and_predictions_that_do_not_fit_say_how_many_there_are():
    facts = facts_from({"labels": [[0, 1, 1]], "predictions": [[0.5, 0.5]]})

    assert sections_of(facts)["confusion"].missing == "2 predictions do not fit 3 labels"


def test_one_class_has_no_curve():
    facts = facts_from({"labels": [[1, 1]], "predictions": [[0.5, 0.7]]})

    assert sections_of(facts)["roc"].missing == "all labels are of one class"


def test_what_is_not_finite_is_left_out_and_counted():
    facts = facts_from({"labels": [[0, NAN, 1, 1]], "predictions": [[0.2, 0.5, NAN, 0.9]]})

    section = sections_of(facts)["confusion"]

    assert section.tables[0].rows == [["0", "1", "0"], ["1", "0", "1"]]
    assert "2 labels and predictions that are not finite are left out." in section.notes


def test_margins_are_told_apart_by_their_sign():
    facts = facts_from({"labels": [[0, 1, 1]], "predictions": [[-2.0, 0.3, 4.0]], **objective("binary:logitraw", 1)})

    sections = sections_of(facts)

    assert sections["confusion"].tables[0].rows == [["0", "1", "0"], ["1", "0", "2"]]
    assert sections["diagonal"].tables[0].rows == [["0", "1.000", "1.000"], ["1", "1.000", "1.000"]]


def test_flat_probabilities_are_taken_apart():
    fit = aligned(np.array([0, 1]), np.array([0.5, 0.2, 0.3, 0.1, 0.8, 0.1]))

    assert fit is not None
    assert fit.outputs.tolist() == [[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]]


def test_differences_of_classes_have_a_bar_each():
    facts = facts_from({"labels": [[0, 1, 2, 2]], "predictions": [[0, 2, 0, 2]], **objective("multi:softmax", 1)})

    chart = sections_of(facts)["residuals"].charts[0]

    assert isinstance(chart, Histogram)
    assert chart.edges == pytest.approx(np.array([-2.5, -1.5, -0.5, 0.5, 1.5]))
    assert chart.counts.tolist() == [1, 0, 2, 1]


def test_several_outputs_are_taken_together_and_said_so():
    labels, predictions = SHAPES["multi-output with flat labels"]

    section = sections_of(facts_from({"labels": [labels], "predictions": [predictions]}))["residuals"]

    assert section.tables[0].rows[0] == ["mean", "0.5"]
    assert "The 3 outputs of each row are taken together." in section.notes


def test_another_worker_is_not_mixed_in():
    one, other = {"labels": [[0, 1]], "predictions": [[0.1, 0.9]]}, {"labels": [[0, 1]], "predictions": [[0.9, 0.1]]}

    facts = facts_from({}, workers={"worker_0": one, "worker_1": other})

    assert (facts.worker, facts.other_workers) == ("worker_0", 1)
    assert sections_of(facts)["scores"].tables[0].rows == [["accuracy", "1.000"]]


# what is bounded


def test_of_very_many_rows_a_sample_is_taken_and_said_so():
    rows = 3 * MOST_ROWS
    labels = (np.arange(rows) % 3 == 0).astype(np.float32)

    facts = facts_from({"labels": [labels], "predictions": [labels]})

    assert facts.pairs is not None
    assert facts.pairs["used"][0] == MOST_ROWS
    # equal strides would meet nothing but zeros, or nothing but ones
    assert facts.pairs["positives"][0] == pytest.approx(MOST_ROWS / 3, rel=0.02)
    assert "of a sample: 200,000 of 600,000 rows" in page(facts)


@pytest.mark.parametrize("rows", [0, 1, MOST_ROWS, MOST_ROWS + 1, 2 * MOST_ROWS - 1, 10**9])
def test_a_sample_has_every_row_once(rows):
    taken = sampled(rows)

    assert len(taken) == min(rows, MOST_ROWS)
    assert (np.diff(taken) > 0).all()
    assert rows == 0 or (taken[0] >= 0 and taken[-1] < rows)


def test_a_long_history_is_thinned_and_keeps_the_newest_step():
    state, columns = start(), [Column("labels", "worker_0")]
    row = np.full((1, PAIRS.width), NAN)

    for step in range(0, 5 * LIMIT, 2):
        state = add(state, Row(row, np.ones(1, np.int8), step, columns))

    steps = state["steps"].tolist()
    every = 2 * int(state["every"][0])
    assert LIMIT // 2 <= len(steps) <= LIMIT
    assert steps[-1] == 5 * LIMIT - 2
    assert {later - earlier for earlier, later in pairwise(steps[:-1])} == {every}


def test_the_whole_state_is_small():
    facts = facts_from(binary_run())

    assert PAIRS.width * 8 < 100_000
    assert facts.history.drawn.shape[1] < 200


def test_twenty_of_thousands_of_features_are_shown():
    features = {f"feature {number}": 1.0 + number for number in range(3000)}

    section = sections_of(facts_from(importance(features, 1)))["importance"]

    assert [len(chart.values) for chart in section.charts if isinstance(chart, Bars)] == [20, 20, 20]
    assert section.tables[0].rows[0][0] == "feature 2999"
    assert "20 of 3,000 features are shown." in section.notes


# names that would like to act

HOSTILE = [
    "<script>alert(1)</script>",
    '" onload="alert(1)',
    "$\\frac{1}{0}$",
    "$$$",
    "a\x00b\x1b[31m\u202e\ud800",
    "--><b>",
    "{{ 7 * 7 }}",
    "特徴",
    "x" * 10_000,
    "a/b",
    "",
]


def test_no_name_acts():
    steps = 2
    tensors: dict[str, Any] = {
        **importance({name.replace("\ud800", ""): 1.0 for name in HOSTILE}, steps),
        **{f"train-{name.replace(chr(0xD800), '')}": [1.0, 0.5] for name in HOSTILE},
        **objective('<img src=x onerror="alert(1)">', steps),
    }

    text = page(facts_from(tensors))
    made = Page(text)

    assert made.tags.isdisjoint({"script", "b", "link", "iframe", "object"})
    assert {address.partition(",")[0] for address in made.addresses if not address.startswith("#")} == {
        "data:image/svg+xml;base64"
    }
    assert "http" not in text.lower().replace("http-equiv", "")
    assert "{{ 7 * 7 }}" in text
    assert not any(ord(character) < 32 for character in text.replace("\n", ""))
    assert "\u202e" not in text
    assert len(text) < 2_000_000


def test_no_picture_asks_for_anything():
    addresses = {
        value
        for pictures in page_of("binary").pictures.values()
        for picture in pictures
        for element in picture.iter()
        for name, value in element.attrib.items()
        if name.endswith("href")
    }

    assert {address[0] for address in addresses if not address.startswith("data:image/png;base64,")} == {"#"}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_shown_name_is_short_and_prints(name):
    assert len(shown(name)) <= 60
    assert all(character.isprintable() for character in shown(name))


@pytest.mark.parametrize(
    "chart",
    [
        Bars("$", ["$x$", "", "\\"], np.array([NAN, INF, -1e308]), "$", "_", lying=True),
        Bars("one", ["0"], np.array([5.0]), "class", "labels"),
        Histogram("^", np.array([-1.7e308, 1.7e308]), np.array([3.0]), "$", "$", marked=0.0),
        Histogram("same", np.array([1e300, 1e300]), np.array([3.0]), "", ""),
        Lines("$", [Line("_hidden", np.array([0.0]), np.array([NAN]))], "", ""),
        Lines("", [Line("$a", np.array([0.0, 1.0]), np.array([1.7e308, -1.7e308]))], "", ""),
        Lines("none", [], "", ""),
        Grid("empty", ["0", "1"], np.zeros((2, 2))),
        Grid("large", [str(each) for each in range(100)], np.eye(100)),
    ],
    ids=lambda chart: chart.title,
)
def test_any_chart_is_drawn(chart: Chart):
    with drawing():
        picture = svg(chart)

    assert ET.fromstring(picture).tag.endswith("svg")  # noqa: S314 - our own


def test_bins_hold_what_numpy_puts_into_them():
    values = np.random.default_rng(1).normal(size=1000)

    counts = Bins.over(values, 40).counts(values)

    assert counts.tolist() == np.histogram(values, 40)[0].tolist()


# the page as a whole


def test_the_same_run_gives_the_same_page():
    assert page(facts_from(multiclass_run())) == page(facts_from(multiclass_run()))


def test_a_measure_is_a_function_of_its_values():
    labels, predictions = binary_run()["labels"][0], binary_run()["predictions"][0]

    assert of_pairs(labels, predictions, TENSOR).tobytes() == of_pairs(labels, predictions, TENSOR).tobytes()


# in a job


def status_of(trial: Path, output: Path, *arguments: str) -> Any:
    run_command_line(["run", str(trial), "--output", str(output), "--exit-zero", *arguments])
    return json.loads((output / "status.json").read_bytes())


def test_a_job_writes_the_page_and_names_it(tmp_path):
    trial_from_series(tmp_path / "trial", binary_run())

    status = status_of(tmp_path / "trial", tmp_path / "out", "--rule", NAME)

    rule = status["DebugRuleEvaluationStatuses"][0]
    assert (rule["RuleEvaluationStatus"], rule["Evaluation"]["evaluated"]) == ("NoIssuesFound", 4)
    assert Page((tmp_path / "out" / rule["Report"]).read_text("utf-8")).sections[0] == "labels"


def test_a_run_that_is_no_xgboost_has_no_report(tmp_path):
    trial_from_series(tmp_path / "trial", {"w": [1.0, 2.0], "loss": [1.0, 0.5]})

    status = status_of(tmp_path / "trial", tmp_path / "out")

    reasons = {one["rule"]: one["reason"] for one in status["not_applicable"]}
    assert "or tensor 'labels' or tensor 'predictions' in 2 steps" in reasons[NAME]
    assert list(tmp_path.rglob("*.html")) == []


@pytest.fixture
def without_matplotlib(monkeypatch):
    """As in an installation without the extra."""
    for module in ("page", "charts"):
        monkeypatch.delitem(sys.modules, f"builtin_rules.trees._report.{module}")
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("without_matplotlib")
def test_a_candidate_without_the_extra_does_not_apply_and_says_why(tmp_path):
    trial_from_series(tmp_path / "trial", binary_run())

    status = status_of(tmp_path / "trial", tmp_path / "out")

    reasons = {one["rule"]: one["reason"] for one in status["not_applicable"]}
    assert "matplotlib is not installed; install the extra: pip install 'rule-evaluator[report]'" in reasons[NAME]


@pytest.mark.usefixtures("without_matplotlib")
def test_a_named_rule_without_the_extra_is_an_error_and_says_why(tmp_path):
    trial_from_series(tmp_path / "trial", binary_run())

    rule = status_of(tmp_path / "trial", tmp_path / "out", "--rule", NAME)["DebugRuleEvaluationStatuses"][0]

    assert (rule["RuleEvaluationStatus"], rule["Evaluation"]["evaluated"]) == ("Error", 0)
    assert rule["StatusDetails"].startswith("InsufficientInformationForRuleInvocation: the package matplotlib is not")
    assert rule["Report"] is None


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_packages_of_the_extra_are_not_imported_with_the_rules():
    code = (
        "import sys; from evaluator.registry import builtin_rules; assert builtin_rules(); print(sorted(sys.modules))"
    )

    modules = run_python(code).stdout

    assert NAME.lower() not in modules
    assert "create_xgboost_report" in modules
    assert "'matplotlib'" not in modules
    assert "'jinja2'" not in modules


def test_a_folder_that_cannot_be_written_keeps_matplotlib_quiet(tmp_path):
    # below a file there can be no folder, for root too
    (tmp_path / "file").touch()
    code = (
        "from builtin_rules.trees.create_xgboost_report import quiet\nwith quiet():\n    import matplotlib.font_manager"
    )

    done = run_python(code, MPLCONFIGDIR=str(tmp_path / "file" / "below"), TMPDIR=tempfile.gettempdir())

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not XGB_BINARY.exists(), reason="the shared trials are not here")
def test_a_run_of_xgboost_itself(tmp_path):
    rule = status_of(XGB_BINARY, tmp_path, "--rule", NAME)["DebugRuleEvaluationStatuses"][0]

    made = Page((tmp_path / rule["Report"]).read_text("utf-8"))

    assert made.sections == ["labels", "loss", "importance", "confusion", "scores", "diagonal", "roc", "residuals"]
    assert "binary: the objective is binary:logistic" in made.text[""]
    assert not [anchor for anchor, text in made.text.items() if "Not shown" in text]
    assert made.rows("labels")["1"] == ["46", "46.00 %"]
    # XGBoost's own metric at the last step: validation-error is 0.03
    assert made.rows("accuracy") == {"accuracy": ["0.970"]}
    assert made.rows("metrics")["validation-error"][1] == "0.03"
