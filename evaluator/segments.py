"""Segments: the values of several tensors of one type laid end to end, so that one array operation serves them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""Values of whatever type was saved."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Segments:
    """Several non-empty tensors of one numeric type.

    Shapes:
        flat: (sum of counts,), each tensor in C order; counts: int64 (tensors,); shapes: one tuple per tensor.
    """

    __slots__ = ("_same", "_starts", "counts", "flat", "shapes")

    def __init__(self, flat: Array, counts: NDArray[np.int64], shapes: Sequence[tuple[int, ...]]) -> None:
        """Take the arrays as they are; nothing is copied."""
        self.flat = flat
        self.counts = counts
        self.shapes = shapes
        self._starts: NDArray[np.int64] | None = None
        self._same: int | None = None

    @classmethod
    def of(cls, arrays: Sequence[Array]) -> Segments:
        """Lay arrays of one type end to end; a single one is taken as it is."""
        flat = np.concatenate([array.reshape(-1) for array in arrays]) if len(arrays) > 1 else arrays[0].reshape(-1)
        counts = np.array([array.size for array in arrays], dtype=np.int64)
        return cls(flat, counts, [array.shape for array in arrays])

    def __len__(self) -> int:
        """How many tensors there are."""
        return len(self.counts)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each tensor begins in `flat`."""
        if self._starts is None:
            self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)[:-1]])
        return self._starts

    @property
    def real(self) -> Array:
        """`flat` as numbers that can be ordered: booleans and small floats widened, complex numbers as magnitudes."""
        kind = self.flat.dtype.kind
        if kind == "c":
            return np.abs(self.flat)
        if kind == "b":
            return self.flat.astype(np.float64)
        return self.flat.astype(np.float32) if self.flat.dtype == np.float16 else self.flat

    def tensors(self) -> Iterator[Array]:
        """Each tensor in its own shape, as a view."""
        stop = 0
        for count, shape in zip(self.counts.tolist(), self.shapes, strict=True):
            start, stop = stop, stop + count
            yield self.flat[start:stop].reshape(shape)

    def sum(self, elements: Array) -> Floats:
        """Per tensor the sum of `elements` (as long as `flat`), accumulated in float64."""
        return self._reduce(np.add, elements, np.float64).astype(np.float64, copy=False)

    def mean(self, elements: Array) -> Floats:
        """Per tensor the mean of `elements`."""
        return self.sum(elements) / self.counts

    def max(self, elements: Array) -> Floats:
        """Per tensor the largest element; NaN where one is NaN."""
        return self._reduce(np.maximum, elements, None).astype(np.float64, copy=False)

    def min(self, elements: Array) -> Floats:
        """Per tensor the smallest element; NaN where one is NaN."""
        return self._reduce(np.minimum, elements, None).astype(np.float64, copy=False)

    def prod(self, elements: Array) -> Floats:
        """Per tensor the product, accumulated in float64."""
        return self._reduce(np.multiply, elements, np.float64).astype(np.float64, copy=False)

    def all(self, elements: Bools) -> Bools:
        """Per tensor whether every element holds."""
        return self._reduce(np.logical_and, elements, None).astype(np.bool_, copy=False)

    def spread(self, per_tensor: Array) -> Array:
        """One number per tensor repeated for each of its elements, as long as `flat`."""
        return np.repeat(per_tensor, self.counts)

    def _reduce(self, operation: np.ufunc, elements: Array, dtype: type | None) -> Array:
        """Per tensor `operation` over its elements; equal sizes as rows of a matrix, which is faster."""
        if len(self.counts) == 1:
            return np.asarray(operation.reduce(elements, dtype=dtype)).reshape(1)
        if self._same is None:
            first = int(self.counts[0])
            self._same = first if bool((self.counts == first).all()) else 0
        if self._same:
            result: Array = operation.reduce(elements.reshape(len(self.counts), self._same), axis=1, dtype=dtype)
            return result
        segments: Array = operation.reduceat(elements, self.starts, dtype=dtype)
        return segments
