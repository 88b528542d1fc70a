"""Which kind of problem the trees were trained for, and how that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from builtin_rules.trees._report.rows import Parts

Kind = Literal["binary", "multiclass", "regression", "unknown"]

KINDS: Mapping[str, Kind] = {
    "binary": "binary",
    "multi": "multiclass",
    "reg": "regression",
    "count": "regression",
    "survival": "regression",
    "rank": "regression",
}
"""By the word before the colon of an objective. Source: XGBoost's list of learning task parameters."""

FEW_CLASSES = 20
"""Labels alone that are whole numbers below this are taken for classes: with predictions one need not guess."""


@dataclass(frozen=True)
class Problem:
    """The kind, and the sentence that says why."""

    kind: Kind
    reason: str


def problem_of(objective: str, labels: Parts | None, pairs: Parts | None) -> Problem:
    """The kind of problem: by the objective where it was saved, else by labels and predictions."""
    word, colon, _ = objective.partition(":")
    if colon and word in KINDS:
        return Problem(KINDS[word], f"the objective is {objective}")
    why = f"the objective {objective} does not tell; " if objective else "no objective was saved; "
    if pairs is not None and pairs["fits"][0] == 1 and pairs["whole_labels"][0] >= 0:
        kind, seen = _by_pairs(pairs)
        return Problem(kind, why + seen)
    if labels is not None and labels["whole"][0] >= 0:
        kind, seen = _by_labels(labels)
        return Problem(kind, why + seen)
    return Problem("unknown", why + "there are no labels to tell it by")


def _by_pairs(pairs: Parts) -> tuple[Kind, str]:
    outputs = int(pairs["outputs"][0])
    if pairs["binary_labels"][0] and outputs <= 2:
        return "binary", "all labels are 0 or 1"
    if outputs > 1:
        return "multiclass", f"there are {outputs} predictions for each label"
    if pairs["whole_labels"][0] and pairs["whole_predictions"][0]:
        return "multiclass", "labels and predictions are numbers of classes"
    if pairs["whole_labels"][0]:
        return "regression", "labels are whole numbers, but predictions are not"
    return "regression", "labels are no numbers of classes"


def _by_labels(labels: Parts) -> tuple[Kind, str]:
    if not labels["whole"][0]:
        return "regression", "labels are no numbers of classes"
    most = int(labels["counts"].nonzero()[0].max())
    if most <= 1:
        return "binary", "all labels are 0 or 1"
    if most < FEW_CLASSES:
        return "multiclass", f"labels are whole numbers up to {most}"
    return "regression", f"labels are whole numbers up to {most}, more than classes usually are"
