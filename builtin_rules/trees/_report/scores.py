"""How well classes were told apart, by their confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.segments import Floats


@dataclass(frozen=True)
class Average:
    """Precision, recall and F1 of all classes together."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Scores:
    """What a confusion matrix comes to.

    Shapes:
        classes, precision, recall, f1, support: (classes that are a label or a prediction,).
    """

    accuracy: float
    micro: Average
    macro: Average
    weighted: Average
    classes: NDArray[np.int64]
    precision: Floats
    recall: Floats
    f1: Floats
    support: Floats


def scores(matrix: Floats) -> Scores | None:
    """The scores; None of an empty matrix. What would be divided by zero is zero.

    Every row has one label and one prediction, so that micro averages all equal the accuracy.

    Args:
        matrix: (classes, classes), how often each class (across) was predicted for each label (down).

    Source:
        scikit-learn's user guide, "Classification metrics", which the hosted report used.
    """
    total = matrix.sum()
    if not total:
        return None
    support, predicted, right = matrix.sum(axis=1), matrix.sum(axis=0), np.diag(matrix)
    classes = np.flatnonzero(support + predicted)
    precision, recall = _share(right, predicted)[classes], _share(right, support)[classes]
    f1 = _share(2 * precision * recall, precision + recall)
    weights = support[classes] / total
    accuracy = float(right.sum() / total)
    return Scores(
        accuracy,
        Average(accuracy, accuracy, accuracy),
        Average(*(float(each.mean()) for each in (precision, recall, f1))),
        Average(*(float((each * weights).sum()) for each in (precision, recall, f1))),
        classes,
        precision,
        recall,
        f1,
        support[classes],
    )


def diagonal(matrix: Floats) -> Floats:
    """Per class the share of its labels that were predicted right; NaN for a class without labels."""
    support = matrix.sum(axis=1)
    shares: Floats = np.divide(np.diag(matrix), support, where=support > 0, out=np.full(len(matrix), np.nan))
    return shares


def _share(part: Floats, whole: Floats) -> Floats:
    shares: Floats = np.divide(part, whole, where=whole > 0, out=np.zeros(len(part)))
    return shares
