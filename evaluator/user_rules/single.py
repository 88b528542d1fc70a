"""Values of one element, which rule files take as numbers: `float(tensor.value(step))` is in many of them.

NumPy gave a number for any array of one element until 2.4, which takes arrays without dimensions only; the reference
saves single numbers with one dimension (saved-format.md), so every such file would end in a TypeError.
"""

from __future__ import annotations

import numpy as np

from evaluator.segments import Array


class Single(np.ndarray):
    """An array that was given as one element; it converts to a Python number as long as it has no more."""

    def __float__(self) -> float:
        """The element."""
        return float(self.item())

    def __int__(self) -> int:
        """The element, cut to a whole number."""
        return int(self.item())

    def __complex__(self) -> complex:
        """The element."""
        return complex(self.item())


def single(array: Array) -> Array:
    """The same array; as a Single where it has one element and dimensions."""
    if array.size != 1 or not array.ndim or array.dtype.kind not in "biufc" or isinstance(array, Single):
        return array
    return array.view(Single)
