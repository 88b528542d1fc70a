"""The values of tensors, each read once and kept while there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from evaluator.segments import Array
from evaluator.sources.base import StepFile
from evaluator.user_rules.reader import Reader
from evaluator.user_rules.single import single

OVERHEAD = 512
"""Bytes of an array, its key and its place in the table beside its elements; measured as about 300."""


class Unreadable(Exception):
    """The bytes of a value are missing or damaged; the message says how."""


class Values:
    """Values by step file and position, the least recently used ones forgotten first."""

    def __init__(self, reader: Reader, limit: int) -> None:
        """Keep at most `limit` bytes, but always the last value."""
        self._reader = reader
        self._limit = limit
        self._kept: OrderedDict[tuple[StepFile, int], Array] = OrderedDict()
        self._size = 0

    def get(self, file: StepFile, position: int) -> Array:
        """The value, which must not be changed: it is kept.

        Raises:
            Unreadable: its bytes are missing or damaged.
        """
        found = self._kept.get((file, position))
        if found is not None:
            self._kept.move_to_end((file, position))
            return found
        arrays, problems = self._read(file, [position])
        if position in arrays:
            return arrays[position]
        raise Unreadable(problems.get(position, "it was not found"))

    def fetch(self, file: StepFile, positions: Sequence[int]) -> None:
        """Read several values at once, as far as they are not kept already; what cannot be read is left out."""
        missing = [position for position in positions if (file, position) not in self._kept]
        if missing:
            self._read(file, missing)

    def own(self, file: StepFile, position: int) -> Array:
        """The value as an array that belongs to the caller alone, and is given again as long as it is kept."""
        array = self.get(file, position)
        if not array.flags.writeable or single(array) is not array:
            array = single(array.copy())
            if (file, position) in self._kept:
                self._kept[file, position] = array
        return array

    def _read(self, file: StepFile, positions: Sequence[int]) -> tuple[dict[int, Array], dict[int, str]]:
        values = self._reader.read(file, np.array(sorted(positions), np.int64))
        arrays = values.arrays()
        # Those that were asked for come last, so that they are the last to be forgotten.
        for position in sorted(arrays, key=lambda at: at in positions):
            self._keep((file, position), arrays[position])
        return arrays, values.problems

    def _keep(self, key: tuple[StepFile, int], array: Array) -> None:
        former = self._kept.pop(key, None)
        self._size += _cost(array) - (0 if former is None else _cost(former))
        self._kept[key] = array
        while self._size > self._limit and len(self._kept) > 1:
            self._size -= _cost(self._kept.popitem(last=False)[1])


def _cost(array: Array) -> int:
    """Bytes that it takes to keep it: most values are small, and what is around them is not."""
    return array.nbytes + OVERHEAD
