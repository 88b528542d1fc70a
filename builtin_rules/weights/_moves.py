"""How weights move, and how their gradients arrive, from step to step: what NotLearning remembers of a run."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from evaluator.rule import Accumulator, Row, grown
from evaluator.segments import Array


def start() -> dict[str, Array]:
    """Nothing was compared yet."""
    integers = ("still", "rhythm", "moves")
    return {name: np.zeros(0, np.int64) for name in integers}


def folded(state: dict[str, Array], row: Row, threshold: float) -> dict[str, Array]:
    """Per weight: how often in a row it stood still, at most before it moved again, and how often it moved.

    The values of the row are by how much a weight changed, and how large it was before.
    """
    columns, saved = len(row.values), row.saved
    small = row.values[:, 0] <= threshold * row.values[:, 1]
    if len(state["still"]) == columns and not (np.count_nonzero(small) or np.count_nonzero(state["still"])):
        # all that was saved moves, and moved before, as at most steps
        return {**state, "moves": state["moves"] + saved}
    still, rhythm, moves = (grown(state[name], columns, 0) for name in ("still", "rhythm", "moves"))
    stood = saved & small
    moved = saved & ~stood
    return {
        "still": np.where(moved, 0, still + stood),
        "rhythm": np.where(moved, np.maximum(rhythm, still), rhythm),
        "moves": moves + moved,
    }


@lru_cache(maxsize=64)
def movements(threshold: float) -> Accumulator:
    """How weights move and stand still; one per threshold, so that rules can share it."""
    return Accumulator(start, partial(folded, threshold=threshold))


def start_gradients() -> dict[str, Array]:
    """No gradient was saved yet."""
    return {"arrived": np.zeros(0, np.int64), "largest": np.zeros(0)}


def add_gradients(state: dict[str, Array], row: Row) -> dict[str, Array]:
    """Per gradient: how often in a row it was finite and not zero, and the largest until now."""
    columns = len(row.values)
    arrived, largest = grown(state["arrived"], columns, 0), grown(state["largest"], columns, 0)
    there = (row.values > 0) & (row.values < np.inf)
    if np.count_nonzero(there) == columns:
        return {"arrived": arrived + 1, "largest": np.maximum(largest, row.values)}
    return {
        "arrived": np.where(there, arrived + 1, np.where(row.saved, 0, arrived)),
        "largest": np.where(there, np.maximum(largest, row.values), largest),
    }


ARRIVALS = Accumulator(start_gradients, add_gradients)
