"""The receiver operating characteristic: how many positives are found at the price of how many false alarms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.segments import Array, Bools, Floats


@dataclass(frozen=True)
class Roc:
    """A curve from (0, 0) to (1, 1), and the area under the whole of it.

    Shapes:
        false_positive, true_positive: float64 (points,), neither falling.
    """

    false_positive: Floats
    true_positive: Floats
    area: float


def roc(positive: Bools, scores: Floats, points: int) -> Roc | None:
    """The curve over all thresholds, drawn with at most so many points; None where one of the two classes is missing.

    Equal scores are passed together, so that their order does not matter: half of the pairs among them count.

    Source:
        T. Fawcett, "An introduction to ROC analysis" (2006), algorithms 1 and 3.
    """
    found = int(positive.sum())
    if found in {0, len(positive)}:
        return None
    order = np.argsort(-scores, kind="stable")
    descending = scores[order]
    last_of_equal = np.flatnonzero(np.append(descending[1:] != descending[:-1], True))
    true = np.cumsum(positive[order])[last_of_equal]
    false = last_of_equal + 1 - true
    true_positive = np.concatenate([[0.0], true / found])
    false_positive = np.concatenate([[0.0], false / (len(positive) - found)])
    area = float((np.diff(false_positive) * (true_positive[1:] + true_positive[:-1]) / 2).sum())
    kept = _drawn(np.concatenate([[0], false]), np.concatenate([[0], true]), points)
    return Roc(false_positive[kept], true_positive[kept], area)


def _drawn(false: Array, true: Array, points: int) -> NDArray[np.int64]:
    """The corners of the curve, or points evenly spread along it where there are too many; always both ends."""
    across, up = np.diff(false), np.diff(true)
    turns = across[1:] * up[:-1] != across[:-1] * up[1:]
    corners = np.concatenate([[0], np.flatnonzero(turns) + 1, [len(false) - 1]])
    if len(corners) <= points:
        return corners
    along = false / false[-1] + true / true[-1]
    kept = np.searchsorted(along[corners], np.linspace(0.0, 2.0, points)).clip(0, len(corners) - 1)
    spread: NDArray[np.int64] = corners[np.unique(kept)]
    return spread
