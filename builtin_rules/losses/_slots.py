"""What folds of losses and metrics keep: one row of an array for each slot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluator.segments import Array, Floats


def with_room(array: Array, slots: int, new: float | Sequence[float]) -> Array:
    """A copy of an array with so many slots at least; `new` is what those that are added begin with."""
    if len(array) >= slots:
        return array.copy()
    return np.concatenate([array, np.full((slots - len(array), *array.shape[1:]), new, array.dtype)])


def push(recent: Floats, value: float) -> None:
    """Add a value to the recent ones of one slot in place, for which the oldest goes."""
    recent[:-1] = recent[1:]
    recent[-1] = value
