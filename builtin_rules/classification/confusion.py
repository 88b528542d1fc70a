"""Fires when a classification confuses classes: too few samples of a class are recognised, or a prediction is wrong.

At each step at which labels and predictions were saved, counts which class is predicted for which label. Of the samples
of each class, a share of `min_diag` must be predicted right; of the samples with the same prediction, no other class
may have a larger share than `max_off_diag`.

Quiet when: neither is violated; labels and predictions cannot be compared (different lengths, not whole numbers, too
many classes), which is told; or a class does not occur.
Source: SageMaker Debugger's list of built-in rules, "Confusion". Its formula for the diagonal contradicts its tests;
our choice is in `violations`. So is what counts as a class (`as_classes`), and which tensors are meant (`labels_of`).
"""

from functools import partial

import numpy as np
from pydantic import Field

from builtin_rules.classification._confused import add, start, violations
from builtin_rules.classification._pairs import WHY, pairs, problems
from evaluator.rule import (
    Accumulator,
    Beside,
    Example,
    Measure,
    NotYet,
    Recommended,
    Rule,
    RuleParameters,
    Selection,
    State,
    Summary,
    Verdict,
)
from evaluator.segments import Array


class Parameters(RuleParameters):
    """What Confusion can be told."""

    category_no: int | None = Field(
        None, ge=2, description="How many classes there are, numbered from 0; samples of others are left out."
    )
    labels: str = Field("labels", description="The tensor of labels, or a collection of them.")
    predictions: str = Field("predictions", description="The tensor of predictions, or a collection of them.")
    labels_collection: str = Field("labels", description="The collection of labels, where `labels` is not given.")
    predictions_collection: str = Field(
        "predictions", description="The collection of predictions, where `predictions` is not given."
    )
    min_diag: float = Field(0.9, ge=0, le=1, description="Fires when a smaller share of a class is predicted right.")
    max_off_diag: float = Field(
        0.1, ge=0, le=1, description="Fires when a larger share of one prediction is of another class."
    )
    memory: int = Field(
        0,
        ge=0,
        description="Of each class about so many samples before the step count too, those of each mode by themselves. "
        "Ours, not SageMaker's.",
    )
    min_samples: int = Field(
        1, ge=1, description="Classes and predictions of fewer samples are not judged. Ours, not SageMaker's."
    )
    min_others: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Judges a class once such a share of the other classes is predicted right. Ours, not SageMaker's.",
    )
    patience: int = Field(
        0,
        ge=0,
        description="Judges a class once it has been too wrong for so many steps in a row, and for half of all steps; "
        "one that was predicted right before, at once. Ours, not SageMaker's.",
    )
    one_each: bool = Field(False, description="Judges only labels of which a sample has one. Ours, not SageMaker's.")


def labels_of(name: str, collection: str, *, given: bool) -> Selection:
    """Which tensors are meant by a name and a collection.

    Our choice: the tensor of that name and those in a collection of that name; the other collection is only looked at
    when no name was given, because it would mix in tensors that were not asked for.
    """
    return Selection(names=(name,), collections=(name,) if given else tuple(dict.fromkeys((name, collection))))


def needs(parameters: Parameters) -> list[Summary]:
    """Pairs of labels and predictions, counted."""
    given = parameters.model_fields_set
    labels = labels_of(parameters.labels, parameters.labels_collection, given="labels" in given)
    predictions = labels_of(parameters.predictions, parameters.predictions_collection, given="predictions" in given)
    options = (("argmax", False), ("one_each", parameters.one_each))
    measure = Measure(pairs, options, ragged=True, each=True, kinds="fiub")
    fold = Accumulator(start, partial(add, limits=parameters))
    return [Summary(labels, by=measure, partner=Beside(predictions), state=fold)]


def confuses(classes: State, parameters: Parameters) -> Verdict:
    """classes: pairs of label and prediction of each column and mode, in the order of these keys."""
    why = problems(classes.row)
    keys, counts = classes["keys"], classes["counts"][:, 0]
    now = (keys[:, 1] == classes.row.modes[keys[:, 0]]) & (why[keys[:, 0]] == 0)
    keys, counts = keys[now], counts[now]
    if not len(keys):
        return NotYet(WHY.get(int(why.max()), "no sample has a label and a prediction that are classes"))
    wrong = violations(keys, counts, (classes["class_keys"], classes["class_steps"]), parameters)
    columns = len(classes.columns)
    met, on_diagonal = np.zeros(columns, np.bool_), np.zeros(columns, np.bool_)
    worst_cell = np.zeros(columns, np.int64)
    for cells, sign in ((wrong.off, 1), (wrong.diagonal, -1)):
        # of several cells of one column the last one written counts, which is the worst one of the diagonal if any is
        order = np.flatnonzero(cells)[np.argsort(sign * wrong.share[cells], kind="stable")]
        worst_cell[keys[order, 0]] = order
        met[keys[order, 0]] = True
        on_diagonal[keys[order, 0]] = sign < 0
    if not met.any():
        return None
    label, prediction = keys[worst_cell, 2], keys[worst_cell, 3].copy()
    for column in np.flatnonzero(met & on_diagonal).tolist():
        own = np.flatnonzero((keys[:, 0] == column) & (keys[:, 2] == label[column]) & (keys[:, 3] != label[column]))
        prediction[column] = keys[own[np.argmax(counts[own])], 3]
    return classes.met(
        met,
        measured=wrong.share[worst_cell],
        limit=np.where(on_diagonal, parameters.min_diag, parameters.max_off_diag),
        of=int((why == 0).sum()),
        message="classes are confused: a share of {measured} where the limit is {limit}",
        each={
            "label": label,
            "prediction": prediction,
            "share": np.where(on_diagonal, "of the label that is predicted right", "of the prediction with that label"),
        },
    )


TEN = np.arange(10)
ONE_WRONG = np.where(TEN == 4, 7, TEN)
RANDOM = np.random.default_rng(2).integers(0, 10, 100)
THREE, FOUR = np.arange(240) % 3, np.arange(240) % 4
EXACT = {"parameter_set": "sagemaker"}


def _run(labels: Array, *predictions: Array) -> dict[str, list[Array]]:
    return {"labels": [labels] * len(predictions), "predictions": list(predictions)}


IN_COLLECTIONS = {"labels": ["labels"], "predictions": ["predictions"]}

RULE = Rule(
    name="Confusion",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=confuses,
    precedence=70,
    recommended={
        "min_diag": Recommended(
            0.3,
            "healthy classifications of overlapping classes end far below 0.9; below this a class is not recognised",
        ),
        "max_off_diag": Recommended(
            1.0, "few errors in a frequent class are most of the predictions of a rare one", unless=("min_diag",)
        ),
        "memory": Recommended(50, "a batch holds too few samples of a class to tell"),
        "min_samples": Recommended(20, "of fewer samples, most can be wrong by chance"),
        "min_others": Recommended(0.8, "a model that has not learned yet confuses all classes"),
        "patience": Recommended(
            8, "healthy models learn one class after the other, so that the last ones are confused for a while"
        ),
        "one_each": Recommended(True, "tokens and pixels of rare classes are seldom predicted right"),
    },
    examples=(
        Example(
            "a class that never gets recognised",
            {"labels": [THREE] * 20, "predictions": [THREE * 0] * 5 + [np.where(THREE == 2, 0, THREE)] * 15},
            collections=IN_COLLECTIONS,
            met_at=12,
        ),
        Example(
            "a class that is not recognised any more",
            {"labels": [FOUR] * 20, "predictions": [FOUR] * 15 + [np.where(FOUR == 2, 0, FOUR)] * 5},
            collections=IN_COLLECTIONS,
            met_at=16,
        ),
        Example(
            "a model that learns one class after the other",
            {"labels": [FOUR] * 30, "predictions": [np.minimum(FOUR, step // 4) for step in range(30)]},
            collections=IN_COLLECTIONS,
        ),
        Example(
            "classes that overlap",
            {"labels": [FOUR] * 20, "predictions": [np.where(np.arange(240) % 5 < 2, 3 - FOUR, FOUR)] * 20},
            collections=IN_COLLECTIONS,
        ),
        Example("one sample of ten", _run(TEN, TEN, ONE_WRONG), collections=IN_COLLECTIONS, parameters=EXACT, met_at=1),
        Example(
            "two thirds of a class",
            _run(np.array([0, 0, 0, 1]), np.array([0, 1, 1, 1])),
            collections=IN_COLLECTIONS,
            parameters={**EXACT, "max_off_diag": 1},
            met_at=0,
        ),
        Example(
            "only the prediction is impure",
            _run(TEN, ONE_WRONG),
            collections=IN_COLLECTIONS,
            parameters={**EXACT, "min_diag": 0, "max_off_diag": 0.01},
            met_at=0,
        ),
        Example("a perfect classification", _run(TEN, TEN), collections=IN_COLLECTIONS, parameters=EXACT),
        Example("random labels, all right", _run(RANDOM, RANDOM), collections=IN_COLLECTIONS, parameters=EXACT),
        Example(
            "probabilities of two classes, and scores of several",
            {
                "labels": [np.array([0.0, 1.0, 1.0])] * 2,
                "predictions": [np.array([0.1, 0.8, 0.7]), np.array([[0.1, 0.0], [0.1, 0.2], [-3.0, 0.2]])],
            },
            collections=IN_COLLECTIONS,
            parameters=EXACT,
        ),
        Example(
            "a regression",
            {"labels": [np.array([1.5, 2.0])], "predictions": [np.array([9.0, 8.0])]},
            collections=IN_COLLECTIONS,
            parameters=EXACT,
        ),
        Example("different lengths", _run(TEN, TEN[:5]), collections=IN_COLLECTIONS, parameters=EXACT),
        Example(
            "unsaved, and empty",
            {"labels": [None, TEN, TEN[:0]], "predictions": [TEN, None, TEN[:0]]},
            collections=IN_COLLECTIONS,
            parameters=EXACT,
        ),
    ),
)
