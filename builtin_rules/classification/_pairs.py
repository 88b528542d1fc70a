"""What rules about classes share: labels and predictions as classes, counted in pairs, and who is recognised."""

from __future__ import annotations

import numpy as np

from builtin_rules._cells import Keys, totals
from evaluator.rule import Row, Tensor
from evaluator.segments import Array, Floats

MOST_CLASSES = 10_000
"""Labels of more classes than this are not counted.

Source:
    design.md section 9, `max_classes`: what is kept of a run must stay small.
"""

FIT, DIFFER, NO_LABELS, NO_PREDICTIONS, TOO_MANY, SEVERAL = range(6)
WHY = {
    DIFFER: "labels and predictions differ in number",
    NO_LABELS: "the labels are not whole numbers, so they are no classes",
    NO_PREDICTIONS: "the predictions are neither classes nor probabilities; see the parameter argmax",
    TOO_MANY: f"there are more than {MOST_CLASSES} classes",
    SEVERAL: "each sample has more than one label",
}
"""Why labels and predictions are not counted."""


def as_classes(labels: Array, predictions: Array, *, argmax: bool) -> tuple[Array, Array] | int:
    """Labels and predictions as classes, flattened; or why they are none.

    Our choice: predictions with one more axis than the labels are scores per class, of which the largest counts, also
    where nobody said `argmax`. Fractions are rounded to classes only if they are probabilities of class 1 of two, as
    XGBoost's: labels 0 and 1, predictions from 0 to 1. Other fractions, and labels that are not whole numbers, are
    values of a regression or scores, and rounding them would make classes of nothing.
    """
    labels = labels.reshape(-1).astype(np.float64)
    scores = predictions.ndim > 1 and predictions.shape[-1] > 1
    if scores and (argmax or labels.size * predictions.shape[-1] == predictions.size):
        if not np.isfinite(predictions).all():
            return NO_PREDICTIONS
        predictions = np.argmax(predictions, axis=-1)
    predictions = predictions.reshape(-1).astype(np.float64)
    if labels.size != predictions.size:
        return DIFFER
    if not _whole(labels):
        return NO_LABELS
    if not _whole(predictions):
        if not (_within_0_and_1(predictions) and _within_0_and_1(labels)):
            return NO_PREDICTIONS
        predictions = np.rint(predictions)
    return labels.astype(np.int64), predictions.astype(np.int64)


def _whole(values: Array) -> bool:
    return bool((np.abs(values) <= 2**53).all() and (values == np.rint(values)).all())


def _within_0_and_1(values: Array) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())


def pairs(labels: Array, predictions: Array, _: Tensor, *, argmax: bool, one_each: bool) -> Array:
    """Each pair of a label and a prediction that occurs, and how often.

    Args:
        labels: whole numbers.
        predictions: those of the same samples.
        argmax: the largest of the last axis is the prediction.
        one_each: samples with more than one label (of the parts of a sequence or an image) are not counted.

    Shapes:
        int64 (1 + pairs, 3): first why they are not counted (0: they are), then label, prediction, how often.
    """
    if one_each and labels.size and labels.size != (len(labels) if labels.ndim else 1):
        return _not_counted(SEVERAL)
    classes = as_classes(labels, predictions, argmax=argmax)
    if isinstance(classes, int):
        return _not_counted(classes)
    found, counts = np.unique(np.stack(classes, axis=1), axis=0, return_counts=True)
    if len(np.unique(found[:, 0])) > MOST_CLASSES:
        return _not_counted(TOO_MANY)
    counted: Array = np.concatenate([_not_counted(FIT), np.column_stack([found, counts])])
    return counted


def _not_counted(why: int) -> Array:
    return np.array([[why, 0, 0]], np.int64)


def problems(row: Row) -> Array:
    """Per column why its labels and predictions are not counted at this step; -1 where there are none."""
    return np.array(
        [int(values[0, 0]) if saved else -1 for values, saved in zip(row.values, row.saved, strict=True)], np.int64
    )


def counted(row: Row) -> tuple[Keys, Floats]:
    """What a row adds: keys are column, mode, label and prediction, sums are how often each occurred."""
    keys: list[Keys] = [np.zeros((0, 5), np.int64)]
    for column in np.flatnonzero(row.saved).tolist():
        cells = row.values[column][1:]
        where = np.broadcast_to(np.array([column, int(row.modes[column])]), (len(cells), 2))
        keys.append(np.concatenate([where, cells], axis=1))
    all_keys = np.concatenate(keys)
    return all_keys[:, :4], all_keys[:, 4:].astype(np.float64)


def recognised(right: Floats, samples: Floats, group: Array, least: int) -> Floats:
    """Per class the mean share of samples that are recognised, over the other classes of its group.

    NaN where fewer than two others have `least` samples: of two classes, one that is always predicted and one that
    never is look the same in a model that has not learned yet.

    Shapes:
        right, samples, group: (classes,), how many were right, how many there were, and what is compared.
    """
    enough = samples >= least
    share = np.where(enough, right / np.maximum(samples, 1e-300), 0.0)
    sums, count = (totals(group, weights) for weights in (share, enough))
    others = count[group] - enough
    mean: Floats = np.where(others >= 2, (sums[group] - share) / np.maximum(others, 1), np.nan)
    return mean
