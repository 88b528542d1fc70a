"""Fires when some class is far rarer than another one, or when too many samples of a class are predicted wrong.

Counts labels over all saved steps. Once `samples` of a tensor were seen, compares at every step the number of labels of
the most frequent class with that of the rarest one (`threshold_imbalance`), and for each class the share of its samples
so far that were predicted wrong (`threshold_misprediction`).

Quiet when: neither is exceeded; fewer labels were seen; or labels and predictions cannot be compared (different
lengths, not whole numbers, too many classes), which is told.
Source: SageMaker Debugger's list of built-in rules, "ClassImbalance" (strictly above both). Our choices: labels and
predictions go together in the order of their names, what counts as a class (`as_classes`), and that classes that were
not seen are no classes (`imbalance`).
"""

from collections.abc import Mapping

import numpy as np
from pydantic import Field

from builtin_rules._cells import added, totals
from builtin_rules._selecting import Patterns
from builtin_rules.classification._pairs import MOST_CLASSES, TOO_MANY, WHY, counted, pairs, problems
from evaluator.rule import (
    Accumulator,
    Beside,
    Example,
    Measure,
    NotYet,
    Recommended,
    Row,
    Rule,
    RuleParameters,
    Selection,
    State,
    Summary,
    Verdict,
    grown,
)
from evaluator.segments import Array, Floats


class Parameters(RuleParameters):
    """What ClassImbalance can be told."""

    threshold_imbalance: float = Field(
        10.0, ge=1, description="Fires when one class is more than so many times as frequent as another."
    )
    threshold_misprediction: float = Field(
        0.7, ge=0, le=1, description="Fires when a larger share of the samples of a class is predicted wrong."
    )
    samples: int = Field(500, ge=1, description="Judges once so many labels were seen.")
    argmax: bool = Field(False, description="Predictions are scores per class along the last axis.")
    labels_regex: Patterns = Field(
        (".*labels",), description="Labels are the tensors in whose name one of these patterns is found."
    )
    predictions_regex: Patterns = Field(
        (".*predictions",), description="Predictions are the tensors in whose name one of these patterns is found."
    )
    certainty: float = Field(
        0.0,
        ge=0,
        description="By so many standard deviations the rarest class may have been seen too seldom by chance. "
        "Ours, not SageMaker's.",
    )
    one_each: bool = Field(False, description="Judges only labels of which a sample has one. Ours, not SageMaker's.")


def start() -> dict[str, Array]:
    """No label was seen yet; keys are column and label, counts are how often it was seen and predicted right."""
    return {"keys": np.zeros((0, 2), np.int64), "counts": np.zeros((0, 2)), "too_many": np.zeros(0, np.bool_)}


def add(state: Mapping[str, Array], row: Row) -> dict[str, Array]:
    """Count the labels of a row; those of a column with too many classes are let go."""
    keys, often = counted(row)
    right = np.where(keys[:, 2:3] == keys[:, 3:4], often, 0.0)
    keys, counts = added(state["keys"], state["counts"], keys[:, [0, 2]], np.concatenate([often, right], axis=1))
    too_many = grown(state["too_many"], len(row.values), 0)
    too_many = too_many | (np.bincount(keys[:, 0], minlength=len(too_many)) > MOST_CLASSES)
    kept = ~too_many[keys[:, 0]]
    return {"keys": keys[kept], "counts": counts[kept], "too_many": too_many}


COUNTED = Accumulator(start, add)


def needs(parameters: Parameters) -> list[Summary]:
    """Pairs of labels and predictions, counted."""
    options = (("argmax", parameters.argmax), ("one_each", parameters.one_each))
    measure = Measure(pairs, options, ragged=True, each=True, kinds="fiub")
    labels, predictions = Selection(regexes=parameters.labels_regex), Selection(regexes=parameters.predictions_regex)
    return [Summary(labels, by=measure, partner=Beside(predictions), state=COUNTED)]


def imbalance(seen: Floats, certainty: float) -> float:
    """How many times as frequent as the rarest class the most frequent one is.

    Our choice: only classes that were seen are compared. With `certainty`, the rarest class is taken to be as frequent
    as it can be when chance has thinned it out by so many standard deviations.
    """
    rarest = float(seen.min())
    return float(seen.max()) / float(rarest + certainty * np.sqrt(rarest) + certainty**2)


def is_unbalanced(classes: State, parameters: Parameters) -> Verdict:
    """classes: counts of each column and label, (classes, 2), how often it was seen and predicted right."""
    columns = len(classes.columns)
    keys, counts = classes["keys"], classes["counts"]
    why = problems(classes.row)
    why[(why >= 0) & grown(classes["too_many"], columns, 0)] = TOO_MANY
    seen = totals(keys[:, 0], counts[:, 0], columns)
    judged = (why == 0) & (seen >= parameters.samples)
    if not judged.any():
        return NotYet(_why_not(why, seen, parameters.samples))
    met, is_rare = np.zeros(columns, np.bool_), np.zeros(columns, np.bool_)
    measured, worst = np.zeros(columns), np.zeros(columns, np.int64)
    for column in np.flatnonzero(judged).tolist():
        own = keys[:, 0] == column
        labels, (often, right) = keys[own, 1], counts[own].T
        ratio, wrong = imbalance(often, parameters.certainty), 1 - right / often
        if ratio > parameters.threshold_imbalance:
            met[column] = is_rare[column] = True
            measured[column], worst[column] = ratio, labels[np.argmin(often)]
        elif wrong.max() > parameters.threshold_misprediction:
            met[column] = True
            measured[column], worst[column] = wrong.max(), labels[np.argmax(wrong)]
    if not met.any():
        return None
    rare = "one class is {measured} times as frequent as another, more than {limit} times"
    wrong_message = "{measured} of the samples of one class are predicted wrong, more than {limit}"
    return classes.met(
        met,
        measured=measured,
        limit=np.where(is_rare, parameters.threshold_imbalance, parameters.threshold_misprediction),
        of=int(judged.sum()),
        message=rare if is_rare[met].all() else wrong_message,
        each={
            "found": np.where(is_rare, "a rare class", "a class that is predicted wrong"),
            "class": worst,
            "labels": seen.astype(np.int64),
        },
    )


def _why_not(why: Array, seen: Floats, samples: int) -> str:
    if (why == 0).any():
        return f"{int(seen[why == 0].max())} of {samples} labels were seen so far"
    return WHY[int(why.max())]


HUNDREDTH = np.array([0] * 990 + [1] * 10)
BALANCED = np.arange(600) % 3
EXACT = {"parameter_set": "sagemaker"}
FORTY = np.array([39, *(np.arange(520) % 39)])
"""Classes of 13 samples each, but for one that was seen once."""
SCORES = np.eye(3)[BALANCED] * 0.5

RULE = Rule(
    name="ClassImbalance",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=is_unbalanced,
    precedence=20,
    recommended={
        "threshold_misprediction": Recommended(
            1.0,
            "a model that has not learned yet predicts whole classes wrong; Confusion waits until the others are right",
        ),
        "certainty": Recommended(1.0, "among many classes of few samples each, one is rare by chance"),
        "one_each": Recommended(
            True, "tokens of a text and pixels of an image are classes too, and are never equally frequent"
        ),
    },
    examples=(
        Example(
            "one label of a hundred",
            {"labels_0": [None, None, None, HUNDREDTH]},
            parameters={**EXACT, "labels_regex": "labels_0", "predictions_regex": "labels_0"},
            met_at=3,
        ),
        Example("counted over several steps", {"labels": [HUNDREDTH] * 5, "predictions": [HUNDREDTH] * 5}, met_at=0),
        Example(
            "a class that is never predicted",
            {"labels": [BALANCED], "predictions": [np.where(BALANCED == 2, 0, BALANCED)]},
            parameters=EXACT,
            met_at=0,
        ),
        Example("healthy", {"labels": [BALANCED] * 3, "predictions": [BALANCED] * 3}),
        Example("too few to tell", {"labels": [HUNDREDTH[-100:]] * 4, "predictions": [HUNDREDTH[-100:]] * 4}),
        Example(
            "before anything is learned",
            {"labels": [BALANCED] * 3, "predictions": [BALANCED * 0] * 3},
        ),
        Example("rare by chance", {"labels": [FORTY], "predictions": [FORTY]}),
        Example("scores", {"labels": [BALANCED], "predictions": [SCORES]}, parameters={**EXACT, "argmax": "true"}),
        Example(
            "probabilities of two classes",
            {"labels": [BALANCED % 2], "predictions": [0.1 + 0.8 * (BALANCED % 2)]},
            parameters=EXACT,
        ),
        Example("a regression", {"labels": [HUNDREDTH * 9.5], "predictions": [HUNDREDTH * 9.3]}),
        Example("a regression on whole numbers", {"labels": [HUNDREDTH * 9], "predictions": [HUNDREDTH * 9.3]}),
        Example("tokens", {"labels": [HUNDREDTH.reshape(20, 50)], "predictions": [HUNDREDTH.reshape(20, 50)]}),
        Example("different lengths", {"labels": [HUNDREDTH], "predictions": [HUNDREDTH[:500]]}),
        Example("unsaved, and empty", {"labels": [None, BALANCED, []], "predictions": [BALANCED, None, []]}),
    ),
)
