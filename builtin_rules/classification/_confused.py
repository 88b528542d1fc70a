"""Which class is predicted for which label: counted from step to step, and what is too much of it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from builtin_rules._cells import Keys, added, faded, matched, numbered, totals
from builtin_rules.classification._pairs import counted, recognised
from evaluator.rule import Row
from evaluator.segments import Array, Bools, Floats


class Limits(Protocol):
    """What is counted and what is too much, as the parameters of the rule say."""

    @property
    def category_no(self) -> int | None:
        """How many classes there are; samples of others are left out."""

    @property
    def min_diag(self) -> float:
        """The share of a class that must be predicted right."""

    @property
    def max_off_diag(self) -> float:
        """The share of one prediction that may be of another class."""

    @property
    def memory(self) -> int:
        """Of how many samples of a class before the step something is left."""

    @property
    def min_samples(self) -> int:
        """Classes and predictions of fewer samples are not judged."""

    @property
    def min_others(self) -> float:
        """Such a share of the other classes must be predicted right."""

    @property
    def patience(self) -> int:
        """For how many steps in a row a class must have been too wrong."""


class Classes(NamedTuple):
    """The classes of some matrices: one for each column, mode and label.

    Shapes:
        all (classes,), keys (classes, 3); `of_cell` (cells,): the class of each cell.
    """

    keys: Keys
    samples: Floats
    right: Floats
    others: Floats
    """The mean share of samples that are right, over the other classes of the matrix."""
    of_cell: Array


def classes_of(keys: Keys, counts: Floats, limits: Limits) -> Classes:
    """How often the samples of each class are predicted right, and those of the other classes."""
    of_cell, first = numbered(keys[:, :3])
    class_keys = keys[first, :3]
    samples = totals(of_cell, counts)
    right = totals(of_cell, np.where(keys[:, 2] == keys[:, 3], counts, 0.0))
    others = recognised(right, samples, numbered(class_keys[:, :2])[0], limits.min_samples)
    return Classes(class_keys, samples, right, others, of_cell)


def start() -> dict[str, Array]:
    """Nothing was counted yet.

    Keys of cells are column, mode, label and prediction, those of classes column, mode and label. Of a class is kept
    for how many steps in a row it is too wrong, how many steps it is known for, and whether it was ever right.
    """
    return {
        "keys": np.zeros((0, 4), np.int64),
        "counts": np.zeros((0, 1)),
        "class_keys": np.zeros((0, 3), np.int64),
        "class_steps": np.zeros((0, 3)),
    }


def add(state: dict[str, Array], row: Row, *, limits: Limits) -> dict[str, Array]:
    """Count the pairs of a row; those of earlier rows fade, or are let go when nothing is to be remembered."""
    keys, counts = counted(row)
    if limits.category_no is not None:
        known = ((keys[:, 2:] >= 0) & (keys[:, 2:] < limits.category_no)).all(axis=1)
        keys, counts = keys[known], counts[known]
    if not len(keys):
        return state if limits.memory else {**state, "keys": keys, "counts": counts}
    now = keys[:, :2]
    if limits.memory:
        old_keys, old_counts = faded(state["keys"], state["counts"], keys, counts[:, 0], 3, limits.memory)
        keys, counts = added(old_keys, old_counts, keys, counts)
    state = {**state, "keys": keys, "counts": counts}
    if limits.patience:
        state["class_keys"], state["class_steps"] = followed(state, now, limits)
    return state


def followed(state: dict[str, Array], now: Keys, limits: Limits) -> tuple[Keys, Floats]:
    """How the classes of the matrices that grew have fared: steps too wrong in a row, steps known, ever right."""
    there = matched(now, np.ones((len(now), 1)), state["keys"][:, :2])[:, 0] > 0
    classes = classes_of(state["keys"][there], state["counts"][there, 0], limits)
    wrong, settled = too_wrong(classes, limits), classes.others >= limits.min_others
    enough = classes.samples >= limits.min_samples
    before = matched(state["class_keys"], state["class_steps"], classes.keys)
    run = np.where(wrong, before[:, 0] + 1, 0)
    right = enough & settled & (classes.right >= limits.min_others * classes.samples)
    steps = np.stack([run, before[:, 1] + 1, np.maximum(before[:, 2], right)], axis=1)
    change = steps - before
    return added(state["class_keys"], state["class_steps"], classes.keys, change)


def too_wrong(classes: Classes, limits: Limits) -> Bools:
    """Which classes are judged, and are predicted right too seldom."""
    judged = classes.samples >= limits.min_samples
    if limits.min_others > 0:
        judged &= classes.others >= limits.min_others
    wrong: Bools = judged & (classes.right / classes.samples < limits.min_diag)
    return wrong


def lasts(class_steps: Floats, patience: int) -> Bools:
    """Whether a class has been too wrong for long enough.

    Our choice: healthy models learn one class after the other, so that the last ones are confused for a while. They
    have caught up before they were confused for as long as the others took; a class that was right before does not
    become wrong again.
    """
    run, steps, right = class_steps.T
    lasting: Bools = ((run >= patience) & (2 * run >= steps)) | ((right > 0) & (run > 0))
    return lasting


class Violations(NamedTuple):
    """Which cells of the matrices are wrong.

    Shapes:
        all (cells,); `share`: of the label that is recognised, or of the prediction that is of this label.
    """

    diagonal: Bools
    off: Bools
    share: Floats


def violations(keys: Keys, counts: Floats, class_steps: tuple[Keys, Floats], limits: Limits) -> Violations:
    """Which pairs break the limits.

    Our choice, because with the documented diagonal (the share of all right predictions that a class has) a perfect
    classifier of ten classes would fire, and a test says it must not: the diagonal is the share of the samples of a
    class (its row) that are right. Off the diagonal it is as documented: the share of a prediction (its column) that a
    class has. Classes that do not occur have no row, predictions that do not occur no column.
    """
    classes = classes_of(keys, counts, limits)
    wrong = too_wrong(classes, limits)
    if limits.patience:
        wrong &= lasts(matched(*class_steps, classes.keys), limits.patience)
    # a class stands at its first cell, because one that is never predicted right has no cell on the diagonal
    first = np.r_[True, classes.of_cell[1:] != classes.of_cell[:-1]]
    diagonal = first & wrong[classes.of_cell]
    prediction = numbered(keys[:, [0, 1, 3]])[0]
    predicted = totals(prediction, counts)[prediction]
    share = counts / predicted
    off = (keys[:, 2] != keys[:, 3]) & (predicted >= limits.min_samples) & (share > limits.max_off_diag)
    return Violations(diagonal, off, np.where(diagonal, (classes.right / classes.samples)[classes.of_cell], share))
