"""All that the report knows of a run, taken from what the rule was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from builtin_rules.trees._report.measures import LABELS, PAIRS, text_from
from builtin_rules.trees._report.problem import Problem, problem_of
from builtin_rules.trees._report.rows import MOST_CLASSES, Parts
from evaluator.rule import Column, State, Window
from evaluator.segments import Floats

LABELS_TENSOR, PREDICTIONS_TENSOR, OBJECTIVE = "labels", "predictions", "hyperparameters/objective"
IMPORTANCE = "feature_importance/"
KINDS_OF_IMPORTANCE = ("weight", "gain", "cover")


@dataclass(frozen=True)
class History:
    """The steps of which something is drawn.

    Shapes:
        steps: (steps,); drawn: (steps, numbers), see history.py.
    """

    steps: NDArray[np.int64]
    drawn: Floats
    every: int
    """One of how many saved steps is there."""


@dataclass(frozen=True)
class Facts:
    """What is known when the page is made; None where nothing was saved."""

    step: int
    """The newest step with something to report."""
    worker: str
    other_workers: int
    objective: str
    problem: Problem
    labels: Parts | None
    pairs: Parts | None
    history: History
    metrics: Window
    importance: Window
    tensors: frozenset[str]
    """The names of the tensors that were saved and are reported on."""

    @property
    def by_sign(self) -> bool:
        """Whether predictions of a binary problem are margins, of which the sign tells the class, not probabilities."""
        if self.pairs is None or self.problem.kind != "binary" or np.isnan(self.pairs["by_sign"]).any():
            return False
        margins = not self.pairs["shares"][0] and not self.pairs["whole_predictions"][0]
        return self.objective == "binary:logitraw" or margins

    @property
    def matrix(self) -> Floats | None:
        """The confusion matrix of the last saved step, of the classes up to the highest one seen."""
        if self.pairs is None or self.pairs["has_classes"][0] != 1:
            # predictions without a class still have a sign
            return self.pairs["by_sign"].reshape(2, 2) if self.by_sign and self.pairs is not None else None
        if self.by_sign:
            return self.pairs["by_sign"].reshape(2, 2)
        whole = self.pairs["matrix"].reshape(MOST_CLASSES, MOST_CLASSES)
        seen = np.flatnonzero(whole.sum(axis=0) + whole.sum(axis=1))
        least = 2 if self.problem.kind == "binary" else 1
        size = max(int(seen.max(initial=-1)) + 1, least)
        return whole[:size, :size]


def facts_of(marks: Window, labels: Window, pairs: State, metrics: Window, importance: Window, words: Window) -> Facts:
    """Put together what the needs of the rule have gathered."""
    tensors = frozenset(column.tensor for column in marks.columns)
    objective = _objective(words)
    first_labels = _first(labels)
    label_parts = LABELS.unpack(first_labels) if first_labels is not None else None
    newest = pairs["newest"]
    pair_parts = PAIRS.unpack(newest) if len(newest) else None
    workers = list(dict.fromkeys(column.worker for column in marks.columns))
    return Facts(
        step=int(marks.steps[-1]),
        worker=_worker(pairs, labels, workers),
        other_workers=len(workers) - 1,
        objective=objective,
        problem=problem_of(objective, label_parts, pair_parts),
        labels=label_parts,
        pairs=pair_parts,
        history=History(pairs["steps"], pairs["drawn"], int(pairs["every"][0])),
        metrics=metrics,
        importance=importance,
        tensors=tensors,
    )


def columns_by_tensor(columns: Sequence[Column]) -> dict[str, int]:
    """Per tensor the column of the first worker that saved it."""
    found: dict[str, int] = {}
    for place, column in enumerate(columns):
        found.setdefault(column.tensor, place)
    return found


def _first(window: Window) -> Floats | None:
    """The newest row of the first worker that saved one."""
    if not len(window.steps):
        return None
    saved = np.flatnonzero(window.saved[-1])
    row: Floats | None = window.values[-1][saved[0]] if len(saved) else None
    return row


def _objective(words: Window) -> str:
    row = _first(words)
    return text_from(row) if row is not None else ""


def _worker(pairs: State, labels: Window, workers: Sequence[str]) -> str:
    column = int(pairs["column"][0])
    if column >= 0:
        return pairs.columns[column].worker
    if len(labels.steps):
        return labels.columns[int(np.argmax(labels.saved[-1]))].worker
    return workers[0]
