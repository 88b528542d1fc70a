"""What is computed of one step: of the labels alone, and of labels with predictions.

Everything that a section could need is computed without knowing what kind of problem it is: that is told by the
objective, which may be saved at another step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from builtin_rules.trees._report.roc import roc
from builtin_rules.trees._report.rows import MOST_CLASSES, Bins, RowOf, are_classes, sampled
from evaluator.rule import Measure, Tensor
from evaluator.segments import Array, Bools, Floats, Segments

LABEL_BARS = 20
RESIDUAL_BARS = 40
ERROR_BINS = 10
"""Source: builtin-rules.md 5.3, section 9."""
CURVE = 101
TEXT = 64

LABELS = RowOf(rows=1, used=1, lost=1, whole=1, counts=MOST_CLASSES, range=2, bars=LABEL_BARS)
"""Of the labels: how many, how many were looked at and how many of these are not finite, whether the others are all
numbers of classes, how many of each, the range of the others and how many in each part of it."""

PAIRS = RowOf(
    # how they fit together
    labels=1,
    predictions=1,
    fits=1,
    outputs=1,
    together=1,
    used=1,
    lost=1,
    # what they look like
    whole_labels=1,
    binary_labels=1,
    whole_predictions=1,
    shares=1,
    # classes: labels down, predictions across; by sign, for predictions that are margins
    has_classes=1,
    matrix=MOST_CLASSES**2,
    outside=1,
    by_sign=4,
    # the curve of all thresholds
    area=1,
    positives=1,
    false_positive=CURVE,
    true_positive=CURVE,
    # prediction - label: mean, deviation, mean and root mean square error, and how many in each part of the range
    residual=4,
    residual_range=2,
    residual_bars=RESIDUAL_BARS,
    # the mean |prediction - label| by label
    label_range=2,
    in_bin=ERROR_BINS,
    error=ERROR_BINS,
)
"""Of labels and predictions."""


def of_labels(labels: Array, _tensor: Tensor) -> Floats:
    """A row of LABELS."""
    flat = labels.reshape(-1)
    taken = flat[sampled(len(flat))].astype(np.float64)
    values = taken[np.isfinite(taken)]
    sizes = {"rows": len(flat), "used": len(taken), "lost": len(taken) - len(values)}
    if not len(values):
        return LABELS.pack(**sizes)
    classes = are_classes(values)
    bins = Bins.over(values, LABEL_BARS)
    return LABELS.pack(
        **sizes,
        whole=classes.all(),
        counts=np.bincount(values[classes].astype(np.int64), minlength=MOST_CLASSES),
        range=(bins.low, bins.high),
        bars=bins.counts(values),
    )


@dataclass(frozen=True)
class Aligned:
    """Labels, and what was predicted for each: one number, or one per class.

    Shapes:
        truth: (rows,); outputs: (rows, numbers per label).
    """

    truth: Array
    outputs: Array
    together: int = 1
    """How many outputs per row of the data were laid end to end, each with a label of its own."""


def aligned(labels: Array, predictions: Array) -> Aligned | None:
    """Labels and predictions set against each other; None where they do not fit.

    Our choice (user report 81: newer XGBoost saves other shapes): equal sizes fit one to one, whatever the shapes; a
    row of predictions per label, and one long array whose parts each sum to 1, are probabilities of classes.
    """
    truth, flat = labels.reshape(-1), predictions.reshape(-1)
    if not len(truth) or not len(flat):
        return None
    if len(truth) == len(flat):
        together = predictions.shape[-1] if predictions.ndim > 1 else 1
        return Aligned(truth, flat.reshape(-1, 1), together)
    per_label, rest = divmod(len(flat), len(truth))
    if rest or per_label < 2:
        return None
    outputs = flat.reshape(len(truth), per_label)
    rows = predictions.ndim == 2 and predictions.shape[0] == len(truth)
    return Aligned(truth, outputs) if rows or _sum_to_one(outputs) else None


def predicted_classes(outputs: Floats, *, binary: bool) -> Floats | None:
    """The class that each prediction stands for; None where they stand for none.

    Our choice: the most probable class; a prediction that is a whole number is the class itself; in a binary problem,
    a probability above one half is class 1, as for XGBoost's metric `error`.
    """
    if outputs.shape[1] > 1:
        most: Floats = np.argmax(outputs, axis=1).astype(np.float64)
        return most
    single: Floats = outputs[:, 0]
    if (single == np.rint(single)).all():
        return single
    above: Bools = single > 0.5
    return above.astype(np.float64) if binary else None


def of_pairs(labels: Array, predictions: Array, _tensor: Tensor) -> Floats:
    """A row of PAIRS."""
    sizes = {"labels": labels.size, "predictions": predictions.size}
    fit = aligned(labels, predictions)
    if fit is None:
        return PAIRS.pack(**sizes, fits=0)
    rows = sampled(len(fit.truth))
    truth, outputs = fit.truth[rows].astype(np.float64), fit.outputs[rows].astype(np.float64)
    finite = np.isfinite(truth) & np.isfinite(outputs).all(axis=1)
    truth, outputs = truth[finite], outputs[finite]
    sizes |= {"fits": 1, "outputs": outputs.shape[1], "together": fit.together}
    sizes |= {"used": len(rows), "lost": len(rows) - len(truth)}
    if not len(truth):
        return PAIRS.pack(**sizes)
    binary = bool(((truth == 0) | (truth == 1)).all())
    classes = predicted_classes(outputs, binary=binary)
    predicted = classes if outputs.shape[1] > 1 and classes is not None else outputs[:, 0]
    return PAIRS.pack(
        **sizes,
        whole_labels=are_classes(truth).all(),
        binary_labels=binary,
        whole_predictions=are_classes(outputs[:, 0]).all(),
        shares=((outputs >= 0) & (outputs <= 1)).all(),
        **_matrices(truth, outputs, classes, binary=binary),
        **(_curve(truth == 1, outputs[:, -1]) if binary and outputs.shape[1] <= 2 else {}),
        **_residuals(predicted - truth),
        **_errors(truth, predicted),
    )


def text_of(text: Array, _tensor: Tensor) -> Floats:
    """The first characters of a text as numbers, 0 behind its end; measures give numbers."""
    first = str(text.reshape(-1)[0]) if text.size else ""
    row = np.zeros(TEXT)
    row[: len(first[:TEXT])] = [ord(character) for character in first[:TEXT]]
    return row


def text_from(row: Floats) -> str:
    """The text that such numbers stand for."""
    return "".join(chr(int(number)) for number in row if number > 0)


def sizes(segments: Segments) -> Floats:
    """Per tensor how many elements it has: something was saved."""
    return segments.counts.astype(np.float64)


OF_LABELS = Measure(of_labels, width=LABELS.width, each=True, kinds="fiub")
OF_PAIRS = Measure(of_pairs, width=PAIRS.width, each=True, kinds="fiub")
OF_TEXT = Measure(text_of, width=TEXT, each=True, kinds="U")
SIZE = Measure(sizes)


def _sum_to_one(outputs: Array) -> bool:
    sums = outputs.astype(np.float64).sum(axis=1)
    return bool((np.abs(sums - 1) < 1e-3).all())


def _matrices(truth: Floats, outputs: Floats, classes: Floats | None, *, binary: bool) -> dict[str, object]:
    """How often each class was predicted for each label."""
    parts: dict[str, object] = {"has_classes": classes is not None}
    if classes is not None:
        inside = are_classes(truth) & are_classes(classes)
        cells = truth[inside].astype(np.int64) * MOST_CLASSES + classes[inside].astype(np.int64)
        parts["matrix"] = np.bincount(cells, minlength=MOST_CLASSES**2)
        parts["outside"] = len(truth) - int(inside.sum())
    if binary and outputs.shape[1] == 1:
        parts["by_sign"] = np.bincount(truth.astype(np.int64) * 2 + (outputs[:, 0] > 0), minlength=4)
    return parts


def _curve(positive: Bools, scores: Floats) -> dict[str, object]:
    parts: dict[str, object] = {"positives": positive.sum()}
    curve = roc(positive, scores, CURVE)
    if curve is not None:
        rest = (0, CURVE - len(curve.false_positive))
        parts["area"] = curve.area
        parts["false_positive"] = np.pad(curve.false_positive, rest, constant_values=np.nan)
        parts["true_positive"] = np.pad(curve.true_positive, rest, constant_values=np.nan)
    return parts


def _residuals(residual: Floats) -> dict[str, object]:
    residual = residual[np.isfinite(residual)]
    if not len(residual):
        return {}
    bins = Bins.over(residual, RESIDUAL_BARS)
    if bins.high - bins.low < RESIDUAL_BARS and (residual == np.rint(residual)).all():
        # a bar around each whole number, as between classes
        low = float(residual.min()) - 0.5
        bins = Bins(low, low + RESIDUAL_BARS, RESIDUAL_BARS)
    return {
        "residual": (
            residual.mean(),
            residual.std(),
            np.abs(residual).mean(),
            np.sqrt(np.square(residual).mean()),
        ),
        "residual_range": (bins.low, bins.high),
        "residual_bars": bins.counts(residual),
    }


def _errors(truth: Floats, predicted: Floats) -> dict[str, object]:
    bins = Bins.over(truth, ERROR_BINS)
    places = bins.places(truth)
    counts = np.bincount(places, minlength=ERROR_BINS)
    errors = np.bincount(places, np.abs(predicted - truth), minlength=ERROR_BINS)
    means = np.divide(errors, counts, where=counts > 0, out=np.full(ERROR_BINS, np.nan))
    return {"label_range": (bins.low, bins.high), "in_bin": counts, "error": means}
