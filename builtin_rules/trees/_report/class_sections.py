"""The sections about classes: the confusion matrix and what it comes to, its diagonal, the ROC curve."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from builtin_rules.trees._report.facts import Facts
from builtin_rules.trees._report.parts import Grid, Line, Lines, Section, Table
from builtin_rules.trees._report.rows import MOST_CLASSES
from builtin_rules.trees._report.scores import Average, diagonal, scores
from builtin_rules.trees._report.shown import count, fraction
from builtin_rules.trees._report.told import (
    first_and_last,
    history_notes,
    no_pairs,
    pair_notes,
)
from evaluator.segments import Floats

MOST_LINES = 10
MOST_IN_TABLE = 30


def confusion_section(facts: Facts) -> Section:
    """How often each class was predicted for each label, at the last saved step."""
    section = ("confusion", "Confusion matrix")
    missing, matrix = _matrix(facts)
    if matrix is None:
        return Section(*section, missing=missing)
    names = [str(each) for each in range(len(matrix))]
    notes = [*_how_classes_were_told(facts), *pair_notes(facts)]
    tables = []
    if len(matrix) <= MOST_IN_TABLE:
        rows = [[name, *(count(each) for each in row)] for name, row in zip(names, matrix, strict=True)]
        tables.append(Table("confusion", ["label \\ prediction", *names], rows))
    else:
        notes.append(f"{len(matrix)} classes are too many for a table.")
    return Section(*section, [Grid("Predictions for each label", names, matrix)], tables, notes)


def score_section(facts: Facts) -> Section:
    """Accuracy, precision, recall and F1 of the confusion matrix."""
    section = ("scores", "Evaluation of the confusion matrix")
    missing, matrix = _matrix(facts)
    found = scores(matrix) if matrix is not None else None
    if found is None:
        return Section(*section, missing=missing)
    averages: Mapping[str, Average] = {"micro": found.micro, "macro": found.macro, "weighted": found.weighted}
    overall = [
        [f"{name} average", fraction(one.precision), fraction(one.recall), fraction(one.f1)]
        for name, one in averages.items()
    ]
    each = [
        [str(label), fraction(precision), fraction(recall), fraction(f1), count(support)]
        for label, precision, recall, f1, support in zip(
            found.classes, found.precision, found.recall, found.f1, found.support, strict=True
        )
    ]
    tables = [
        Table("accuracy", ["", ""], [["accuracy", fraction(found.accuracy)]]),
        Table("averages", ["", "precision", "recall", "F1"], overall),
        Table("classes", ["class", "precision", "recall", "F1", "labels"], each),
    ]
    notes = []
    if matrix is not None and not (matrix.sum(axis=0) * matrix.sum(axis=1))[found.classes].all():
        notes.append("The precision of a class never predicted, and the recall of one without labels, count as zero.")
    return Section(*section, (), tables, notes)


def diagonal_section(facts: Facts) -> Section:
    """The share of each class's labels that were predicted right, over the steps."""
    section = ("diagonal", "Accuracy of each diagonal element over iterations")
    missing, matrix = _matrix(facts)
    if matrix is None:
        return Section(*section, missing=missing)
    history = facts.history
    offset = MOST_CLASSES if facts.by_sign else 0
    shares = history.drawn[:, offset : offset + len(matrix)]
    last = diagonal(matrix)
    classes = np.flatnonzero(~np.isnan(shares).all(axis=0))
    if not len(classes):
        return Section(*section, missing="no label has a class that could be drawn")
    drawn, notes = classes, history_notes(facts)
    if len(classes) > MOST_LINES:
        worst = np.argsort(last[classes], kind="stable")[:MOST_LINES]
        drawn = np.sort(classes[worst])
        notes.append(f"Drawn are the {MOST_LINES} of {len(classes)} classes with the lowest accuracy.")
    lines = [Line(f"class {each}", history.steps.astype(np.float64), shares[:, each]) for each in drawn]
    rows = [[str(each), *first_and_last(shares[:, each], fraction)] for each in classes]
    table = Table("diagonal", ["class", "first", "last"], rows)
    chart = Lines("Labels predicted right", lines, "step", "share of the class", shares=True)
    return Section(*section, [chart], [table], notes)


def roc_section(facts: Facts) -> Section:
    """True against false positives over all thresholds."""
    section = ("roc", "Receiver operating characteristic")
    if (missing := no_pairs(facts)) is not None or facts.pairs is None:
        return Section(*section, missing=missing)
    pairs = facts.pairs
    area = float(pairs["area"][0])
    if np.isnan(area):
        one_class = pairs["binary_labels"][0] == 1 and pairs["positives"][0] >= 0
        why = "all labels are of one class" if one_class else "labels are not 0 or 1 with one prediction each"
        return Section(*section, missing=why)
    there = ~np.isnan(pairs["true_positive"])
    curve = Line(f"AUC {area:.3f}", pairs["false_positive"][there], pairs["true_positive"][there])
    chart = Lines(
        "True and false positives by threshold", [curve], "false positive rate", "true positive rate", square=True
    )
    negatives = pairs["used"][0] - pairs["lost"][0] - pairs["positives"][0]
    rows = [
        ["AUC", fraction(area)],
        ["positive labels", count(pairs["positives"][0])],
        ["negative labels", count(negatives)],
    ]
    return Section(*section, [chart], [Table("roc", ["", ""], rows)], pair_notes(facts))


def _matrix(facts: Facts) -> tuple[str, Floats | None]:
    """The confusion matrix, or why there is none."""
    if (missing := no_pairs(facts)) is not None:
        return missing, None
    matrix = facts.matrix
    if matrix is None:
        return "predictions are neither probabilities nor numbers of classes", None
    if not matrix.sum():
        return f"no label and its prediction are classes from 0 to {MOST_CLASSES - 1}", None
    return "", matrix


def _how_classes_were_told(facts: Facts) -> list[str]:
    pairs = facts.pairs
    if pairs is None or facts.problem.kind != "binary" or pairs["outputs"][0] > 1:
        return []
    if facts.by_sign:
        return ["A prediction above 0 counts as class 1: predictions are margins, not probabilities."]
    return [] if pairs["whole_predictions"][0] else ["A prediction above 0.5 counts as class 1."]
