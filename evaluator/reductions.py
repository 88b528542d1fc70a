"""The named reductions: one number per tensor, as the saved format names them and a few more.

float16, bfloat16 and float32 values are accumulated in float64, so that a sum of squares of float16 cannot overflow.
`l1` and `l2` are over the flattened tensor; `std` and `variance` divide by the number of elements.

Source:
    names from the saved format (section 6); where the reference computes spectral norms of matrices we do not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evaluator.segments import Array, Floats, Segments

SegmentsFunction = Callable[[Segments], Floats]


def _magnitudes(elements: Array) -> Array:
    """|element|; of the least signed integer there is none in its own type, but in the unsigned one."""
    magnitudes: Array = np.abs(elements)
    return magnitudes.view(f"u{elements.dtype.itemsize}") if elements.dtype.kind == "i" else magnitudes


def _variance(segments: Segments, elements: Array) -> Floats:
    deviation = segments.spread(segments.mean(elements))
    # of many tensors at once these are long: one of them is enough, unless what was saved is wider than float64
    narrow = elements.dtype.itemsize <= deviation.dtype.itemsize
    deviation = np.subtract(elements, deviation, out=deviation if narrow else None)
    deviation *= deviation
    return segments.mean(deviation)


def _l2(segments: Segments, elements: Array) -> Floats:
    # The square of a large float32 overflows float32, so the elements are widened before they are squared.
    return np.sqrt(segments.sum(np.square(elements, dtype=np.float64)))


def _plain() -> dict[str, Callable[[Segments, Array], Floats]]:
    return {
        "min": Segments.min,
        "max": Segments.max,
        "mean": Segments.mean,
        "sum": Segments.sum,
        "prod": Segments.prod,
        "std": lambda segments, elements: np.sqrt(_variance(segments, elements)),
        "variance": _variance,
        "l1": lambda segments, elements: segments.sum(_magnitudes(elements)),
        "l2": _l2,
    }


def _with_absolutes() -> dict[str, SegmentsFunction]:
    table: dict[str, SegmentsFunction] = {}
    for name, function in _plain().items():
        table[name] = lambda segments, function=function: function(segments, segments.real)  # type: ignore[misc]
        table[f"abs_{name}"] = lambda segments, function=function: function(segments, _magnitudes(segments.real))  # type: ignore[misc]
    return table


REDUCTIONS: dict[str, SegmentsFunction] = _with_absolutes()
"""Name -> function of Segments that gives one float64 per tensor. A saved reduction of the name is used instead."""
