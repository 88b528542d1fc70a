"""What several sections say of labels and predictions: why there are none, and what to know about them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from builtin_rules.trees._report.facts import LABELS_TENSOR, PREDICTIONS_TENSOR, Facts
from builtin_rules.trees._report.rows import MOST_CLASSES
from builtin_rules.trees._report.shown import count
from evaluator.segments import Floats


def lacking(*tensors: str) -> str:
    named = " and ".join(f"'{tensor}'" for tensor in tensors)
    return f"no tensor {named} was saved" if len(tensors) == 1 else f"no tensors {named} were saved"


def no_pairs(facts: Facts) -> str | None:
    """Why labels and predictions cannot be compared; None where they can."""
    absent = [name for name in (LABELS_TENSOR, PREDICTIONS_TENSOR) if name not in facts.tensors]
    if absent:
        return lacking(*absent)
    pairs = facts.pairs
    if pairs is None:
        return "labels and predictions were never saved at one step"
    if pairs["fits"][0] != 1:
        return f"{count(pairs['predictions'][0])} predictions do not fit {count(pairs['labels'][0])} labels"
    if pairs["used"][0] == pairs["lost"][0]:
        return "no label has a finite prediction"
    return None


def pair_notes(facts: Facts) -> list[str]:
    """What the reader has to know about the rows that were compared."""
    pairs = facts.pairs
    if pairs is None:
        return []
    notes = left_out(pairs["lost"][0], "labels and predictions")
    notes += earlier(facts, int(facts.history.steps[-1]))
    outside = pairs["outside"][0]
    if outside > 0 and facts.problem.kind != "regression" and not facts.by_sign:
        notes.append(
            f"{count(outside)} rows with a class that is not a whole number below {MOST_CLASSES} are left out."
        )
    together = int(pairs["together"][0])
    if together > 1:
        notes.append(f"The {together} outputs of each row are taken together.")
    return notes


def earlier(facts: Facts, step: int) -> list[str]:
    """When this was saved, if others were saved later."""
    return [f"Saved last at step {step}."] if step != facts.step else []


def left_out(lost: float, what: str) -> list[str]:
    return [f"{count(lost)} {what} that are not finite are left out."] if lost else []


def history_notes(facts: Facts) -> list[str]:
    every = facts.history.every
    return [f"One of {every} saved steps is drawn."] if every > 1 else []


def first_and_last(values: Floats, text: Callable[[float], str]) -> list[str]:
    there = values[~np.isnan(values)]
    return [text(float(there[0])), text(float(there[-1]))] if len(there) else ["-", "-"]
