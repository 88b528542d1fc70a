"""What the report keeps of labels and predictions: the newest row whole, and of earlier steps what is drawn."""

from __future__ import annotations

import numpy as np

from builtin_rules.trees._report.measures import ERROR_BINS, PAIRS
from builtin_rules.trees._report.rows import MOST_CLASSES
from builtin_rules.trees._report.scores import diagonal
from evaluator.rule import Accumulator, Row
from evaluator.segments import Array, Floats

LIMIT = 400
"""Steps that are kept: more could not be told apart in a chart."""

DRAWN = MOST_CLASSES + 2 + ERROR_BINS
"""Numbers per step: the diagonal, the diagonal by sign, and the error of each bin."""

State = dict[str, Array]


def start() -> State:
    """Nothing was saved yet."""
    return {
        "column": np.full(1, -1, np.int64),
        "newest": np.zeros(0),
        "seen": np.zeros(1, np.int64),
        "every": np.ones(1, np.int64),
        "places": np.zeros(0, np.int64),
        "steps": np.zeros(0, np.int64),
        "drawn": np.zeros((0, DRAWN)),
    }


def add(state: State, row: Row) -> State:
    """Add a step of the first worker that saved labels and predictions; others may have saved the same ones."""
    column = int(state["column"][0])
    if column < 0:
        column = int(np.argmax(row.saved))
    if not row.saved[column]:
        return state
    newest = row.values[column].copy()
    return {
        "column": np.array([column]),
        "newest": newest,
        **_thinned(state, row.step, _drawn(newest)),
    }


HISTORY = Accumulator(start, add)


def _drawn(newest: Floats) -> Floats:
    parts = PAIRS.unpack(newest)
    whole = parts["matrix"].reshape(MOST_CLASSES, MOST_CLASSES)
    by_sign = parts["by_sign"].reshape(2, 2)
    return np.concatenate([diagonal(whole), diagonal(by_sign), parts["error"]])


def _thinned(state: State, step: int, drawn: Floats) -> State:
    """The history with one more step; when it gets too long, every second step is let go, never the newest."""
    every = int(state["every"][0])
    kept = state["places"] % every == 0
    places = np.append(state["places"][kept], state["seen"])
    steps = np.append(state["steps"][kept], step)
    history = np.concatenate([state["drawn"][kept], drawn[None]])
    if len(places) > LIMIT:
        every *= 2
        kept = places % every == 0
        kept[-1] = True
        places, steps, history = places[kept], steps[kept], history[kept]
    return {
        "seen": state["seen"] + 1,
        "every": np.array([every]),
        "places": places,
        "steps": steps,
        "drawn": history,
    }
