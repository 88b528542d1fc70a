"""Rows of numbers for the report: their named parts, the sample they are made of, and equal bins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from builtin_rules.trees._report.shown import number
from evaluator.segments import Array, Bools, Floats

MOST_ROWS = 200_000
"""Of more labels than that, a sample of so many is taken: a curve over all of them would cost more than it tells."""
MOST_CLASSES = 100
"""Classes are the whole numbers from 0 to below this; XGBoost numbers them from 0 up."""

Parts = Mapping[str, Floats]


class RowOf:
    """Named parts of one row: a measure gives a row of fixed width, whatever it found out."""

    def __init__(self, **sizes: int) -> None:
        """Lay the parts of these sizes end to end."""
        self.width = sum(sizes.values())
        ends = np.cumsum(list(sizes.values())).tolist()
        self._places = {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    def pack(self, **parts: Any) -> Floats:
        """A row with these parts, NaN in the others."""
        row = np.full(self.width, np.nan)
        for name, values in parts.items():
            row[self._places[name]] = np.asarray(values, np.float64).reshape(-1)
        return row

    def unpack(self, row: Floats) -> Parts:
        """The parts of a row, by name."""
        return {name: row[place] for name, place in self._places.items()}


def sampled(count: int) -> NDArray[np.int64]:
    """Which of so many rows to look at: all, or one from each of MOST_ROWS equal stretches, the same in every run.

    The place within a stretch is drawn, because labels often repeat in a pattern that equal strides would follow.
    """
    if count <= MOST_ROWS:
        return np.arange(count)
    ends = np.arange(MOST_ROWS + 1) * count // MOST_ROWS
    return ends[:-1] + (np.random.default_rng(0).random(MOST_ROWS) * np.diff(ends)).astype(np.int64)


def are_classes(values: Floats) -> Bools:
    """Which values are the number of a class."""
    classes: Bools = (values >= 0) & (values < MOST_CLASSES) & (values == np.rint(values))
    return classes


@dataclass(frozen=True)
class Bins:
    """Equal bins from the lowest to the highest of some finite values."""

    low: float
    high: float
    count: int

    @classmethod
    def between(cls, ends: Floats, count: int) -> Bins:
        """The bins between two values."""
        return cls(float(ends[0]), float(ends[1]), count)

    @classmethod
    def over(cls, values: Floats, count: int) -> Bins:
        """The bins that hold all values; around them where they are all the same."""
        low, high = float(values.min()), float(values.max())
        if low == high:
            room = max(0.5, abs(low) * 1e-3)
            low, high = low - room, high + room
        return cls(low, high, count)

    def places(self, values: Floats) -> NDArray[np.int64]:
        """In which bin each value lies; halves, so that the width of the widest range can be told."""
        width = self.high / 2 - self.low / 2
        share = (values / 2 - self.low / 2) / width
        return np.clip((share * self.count).astype(np.int64), 0, self.count - 1)

    def counts(self, values: Floats) -> Array:
        """How many values lie in each bin."""
        return np.bincount(self.places(values), minlength=self.count)

    @property
    def edges(self) -> Floats:
        """Where bins begin and end, one more than there are bins."""
        shares = np.linspace(0.0, 1.0, self.count + 1)
        return self.low * (1 - shares) + self.high * shares

    @property
    def names(self) -> list[str]:
        """What each bin is called."""
        ends = [number(float(edge)) for edge in self.edges]
        return [f"{low} to {high}" for low, high in pairwise(ends)]
