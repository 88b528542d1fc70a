"""Segments: every reduction of many tensors at once is what numpy says of each by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evaluator.needs import named
from evaluator.reductions import REDUCTIONS
from evaluator.segments import Array, Segments

DTYPES = [
    np.bool_,
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
]


def plain(array: Array) -> np.ndarray:
    """The elements as numbers that can be ordered, in double precision."""
    return np.abs(array).astype(np.float64) if array.dtype.kind == "c" else array.astype(np.float64)


SLOW: dict[str, Callable[[np.ndarray], float]] = {
    "min": lambda x: float(np.min(x)),
    "max": lambda x: float(np.max(x)),
    "mean": lambda x: float(np.sum(x) / x.size),
    "sum": lambda x: float(np.sum(x)),
    "prod": lambda x: float(np.prod(x)),
    "std": lambda x: float(np.std(x)),
    "variance": lambda x: float(np.var(x)),
    "l1": lambda x: float(np.sum(np.abs(x))),
    "l2": lambda x: float(np.sqrt(np.sum(x * x))),
}


def slowly(name: str, array: Array) -> float:
    """A reduction of one tensor, the plain way."""
    values = plain(array).reshape(-1)
    return SLOW[name.removeprefix("abs_")](np.abs(values) if name.startswith("abs_") else values)


def elements(dtype: np.dtype[Any]) -> st.SearchStrategy[Any] | None:
    """Numbers small enough that sums of their squares are exact, or nearly."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return st.integers(max(limits.min, -1000), min(limits.max, 1000))
    if dtype.kind == "f":
        width: Any = 8 * dtype.itemsize
        bound = 60000.0 if dtype == np.float16 else 2.0**60
        return st.floats(-bound, bound, width=width, allow_subnormal=False)
    if dtype.kind == "c":
        width = 8 * dtype.itemsize
        return st.complex_numbers(max_magnitude=2.0**20, width=width, allow_subnormal=False)
    return None


@st.composite
def tensors(draw: st.DrawFn) -> list[Array]:
    """A few non-empty tensors of one type."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, max_side=4)
    return draw(st.lists(hnp.arrays(dtype, shapes, elements=elements(dtype)), min_size=1, max_size=5))


@settings(max_examples=300)
@given(arrays=tensors())
def test_a_reduction_of_many_tensors_is_that_of_each(arrays: list[Array]):
    segments = Segments.of(arrays)
    size = max(float(np.abs(plain(array)).max()) for array in arrays)
    # magnitudes of complex64, and products and deviations of float32, are single precision
    tolerance = 1e-5 if arrays[0].dtype in (np.float32, np.complex64) else 1e-9

    for name, reduce in REDUCTIONS.items():
        with np.errstate(all="ignore"):
            actual = reduce(segments)
            expected = [slowly(name, array) for array in arrays]
        # sums of numbers that cancel out are exact to the last digits of the numbers, not of the result
        scale = {"variance": size**2, "prod": 0.0}.get(name.removeprefix("abs_"), size)
        assert actual.dtype == np.float64
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=scale * tolerance, err_msg=name)


@pytest.mark.parametrize("sizes", [[1], [3, 3, 3], [1, 5, 2], [1000, 1]])
def test_equal_and_unequal_sizes_are_reduced_alike(sizes: list[int]):
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=size).astype(np.float32) for size in sizes]

    actual = {name: reduce(Segments.of(arrays)) for name, reduce in REDUCTIONS.items()}

    for name, values in actual.items():
        np.testing.assert_allclose(values, [slowly(name, array) for array in arrays], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sum", "l1", "l2", "mean", "std", "variance", "abs_mean"])
def test_half_precision_does_not_overflow(name: str):
    arrays = [np.full(500, 300, np.float16), np.linspace(-6e4, 6e4, 70).astype(np.float16)]

    actual = REDUCTIONS[name](Segments.of(arrays))

    np.testing.assert_allclose(actual, [slowly(name, array) for array in arrays], rtol=1e-5, atol=1e-3)


def test_the_norm_of_large_single_precision_numbers_does_not_overflow():
    assert REDUCTIONS["l2"](Segments.of([np.full(4, 1e30, np.float32)])) == pytest.approx(2e30)


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
def test_a_nan_stays_in_its_own_tensor(name: str):
    arrays = [np.array([1.0, 2.0]), np.array([1.0, np.nan]), np.array([3.0, 4.0])]

    assert np.isnan(REDUCTIONS[name](Segments.of(arrays))).tolist() == [False, True, False]


def test_tensors_come_back_in_their_own_shapes():
    arrays = [np.arange(6).reshape(2, 3), np.arange(1).reshape(()), np.arange(4)]

    back = list(Segments.of(arrays).tensors())

    assert [one.shape for one in back] == [(2, 3), (), (4,)]
    assert all(np.array_equal(one, array) for one, array in zip(back, arrays, strict=True))


def test_one_number_per_tensor_is_spread_over_its_elements():
    segments = Segments.of([np.zeros(2), np.zeros(1), np.zeros(3)])

    assert segments.spread(np.array([1, 2, 3])).tolist() == [1, 1, 2, 3, 3, 3]


@pytest.mark.parametrize("sizes", [[2, 2], [1, 3]])
def test_all_is_asked_per_tensor(sizes: list[int]):
    first, second = (np.ones(size, np.bool_) for size in sizes)
    second[-1] = False

    segments = Segments.of([first, second])

    assert segments.all(segments.flat.astype(np.bool_)).tolist() == [True, False]


def test_an_unknown_reduction_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match=r"reduction 'median' is not known; known: abs_l1, .*variance"):
        named("median")
