"""UnchangedTensor: how many saved values of a tensor in a row are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from builtin_rules.weights.unchanged_tensor import Parameters, needs
from evaluator.modes import Mode
from evaluator.registry import builtin_rules
from evaluator.segments import Segments
from tests.builtin_rules.judging import defaults, judge, mistakes

ONES = np.ones((10, 3, 2))
VECTOR = {"foo_0": [ONES, ONES, ONES, None], "foo_1": [ONES, ONES, ONES, None], "boo_0": [None, None, None, ONES]}


def slowly(series: list[np.ndarray | None], num_steps: int) -> int | None:
    """The first step at which the last saved values are all close to each other, neighbour to neighbour."""
    saved: list[np.ndarray] = []
    for step, value in enumerate(series):
        if value is None:
            continue
        saved.append(value)
        last = saved[-num_steps:]
        pairs = zip(last[1:], last[:-1], strict=True)
        if len(last) == num_steps and all(a.shape == b.shape and np.allclose(a, b) for a, b in pairs):
            return step
    return None


def test_parameters_are_sagemakers():
    assert defaults("UnchangedTensor") == {
        "collection_names": None,
        "tensor_regex": None,
        "num_steps": 3,
        "rtol": 1e-5,
        "atol": 1e-8,
        "equal_nan": False,
    }
    assert builtin_rules()["UnchangedTensor"].parameters.model_fields["modes"].default == {Mode.TRAIN, Mode.GLOBAL}


def test_without_names_it_is_a_mistake():
    assert "neither 'collection_names' nor 'tensor_regex' is given" in mistakes("UnchangedTensor", num_steps="3")[0]


@pytest.mark.parametrize(("first", "end", "expected"), [(0, 2, None), (0, 3, 2), (2, 3, 2), (3, 6, None)])
def test_the_vector_of_the_old_tests(first: int, end: int, expected: int | None):
    result = judge("UnchangedTensor", VECTOR, steps=[0, 1, 2, 5], tensor_regex=".*", start_step=first, end_step=end)

    assert result.met_at == expected


@pytest.mark.parametrize("num_steps", [2, 3, 5])
@pytest.mark.parametrize("seed", range(6))
def test_it_agrees_with_the_slow_way(num_steps: int, seed: int):
    generator = np.random.default_rng(seed)
    series: list[np.ndarray | None] = []
    value = np.ones(3)
    for _ in range(14):
        if generator.random() < 0.3:
            value = generator.normal(size=generator.integers(3, 5))
        value = value * (1 + generator.choice([0, 5e-6, 1e-4], p=[0.6, 0.3, 0.1]))
        series.append(None if generator.random() < 0.2 else value)

    result = judge("UnchangedTensor", {"w": series, "clock": list(range(14))}, tensor_regex="w", num_steps=num_steps)

    assert result.met_at == slowly(series, num_steps)


@pytest.mark.parametrize("equal_nan", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int8, np.uint8, np.bool_])
def test_the_measure_is_numpys(dtype: type, equal_nan: bool):
    generator = np.random.default_rng(0)
    need = needs(Parameters.model_validate({"tensor_regex": ["w"], "equal_nan": equal_nan}))[0]
    special = [0, 1, np.inf, -np.inf, np.nan] if np.dtype(dtype).kind in "fc" else [0, 1]
    with np.errstate(all="ignore"):
        before: list[Any] = [generator.choice(special, size=3).astype(dtype) for _ in range(40)]
        after = [one if number % 3 else one * np.array(1.000001).astype(dtype) for number, one in enumerate(before)]
        after[1::4] = [one[::-1].copy() for one in after[1::4]]
        expected = [np.allclose(a, b, equal_nan=equal_nan) for a, b in zip(after, before, strict=True)]

        actual = need.measure(Segments.of(after), Segments.of(before))

    assert (actual == 1).tolist() == expected


@pytest.mark.parametrize("tolerance", [0.0, 1e-5])
@pytest.mark.parametrize("begin_alike", [1, 10, 30])
@pytest.mark.parametrize("largest", [4, 9])
def test_of_many_tensors_each_is_compared_as_by_itself(largest: int, begin_alike: int, tolerance: float):
    generator = np.random.default_rng(begin_alike)
    options = {"tensor_regex": ["w"], "rtol": tolerance, "atol": tolerance}
    need = needs(Parameters.model_validate(options))[0]
    before = [generator.normal(size=generator.integers(4, largest, endpoint=True)) for _ in range(30)]
    after = [one + 1 for one in before]
    for number in range(begin_alike):
        after[number] = before[number] + 1e-6
        after[number][0] = before[number][0]
        after[number][1:] = before[number][1:] if number % 2 == 0 else after[number][1:] + (number % 4 - 1)
    expected = [np.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(after, before, strict=True)]

    actual = need.measure(Segments.of(after), Segments.of(before))

    assert 0 < sum(expected) <= begin_alike
    assert (actual == 1).tolist() == expected


def test_half_precision_far_apart_does_not_overflow_into_the_same():
    run = {"w": [np.full(3, value, np.float16) for value in (-6e4, 6e4, -6e4, 6e4)]}

    assert judge("UnchangedTensor", run, tensor_regex="w").met_at is None


def test_too_few_values_are_said_with_their_number():
    result = judge("UnchangedTensor", {"w": [1.0, 1.0, 2.0]}, tensor_regex="w", num_steps=4)

    assert result.word == "Error"
    assert "no tensor has more than 3 of 4 saved values so far" in result.why


def test_a_tensor_that_is_not_saved_any_more_is_not_judged():
    run: dict[str, list[Any]] = {"w": [1.0, 1.0, None, None], "v": [1.0, 2.0, 3.0, 4.0]}

    assert judge("UnchangedTensor", run, tensor_regex=".*", num_steps=2, start_step=2).met_at is None


def test_weights_that_stand_still_between_steps_of_evaluation_are_quiet_unless_asked_for():
    run = {"w": [1.0, 2.0, 2.0, 2.0, 3.0]}
    modes = ["TRAIN", "EVAL", "EVAL", "EVAL", "TRAIN"]

    assert judge("UnchangedTensor", run, tensor_regex="w", modes=modes).met_at is None


def test_the_modes_can_be_named():
    run = {"w": [1.0, 2.0, 2.0, 2.0, 3.0]}
    example_modes = ["TRAIN", "EVAL", "EVAL", "EVAL", "TRAIN"]

    result = judge(
        "UnchangedTensor",
        run,
        parameters={"tensor_regex": "w", "modes": "EVAL", "parameter_set": "sagemaker"},
        modes=example_modes,
    )

    assert result.met_at == 3


def test_the_finding_says_for_how_many_values():
    finding = judge("UnchangedTensor", {"a": [1.0, 2.0, 3.0], "w": [1.0, 1.0, 1.0]}, tensor_regex=".*").findings[0]

    assert (finding.tensor, finding.measured, finding.limit, finding.mode) == ("w", 3, 3, "GLOBAL")


RECOMMENDED = {"parameter_set": "recommended"}


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([1.0, 1.1, *[1.2] * 10], 11),
        ([1.0, 1.1, *[1.2] * 9], None),
        ([1.0] * 30, None),
        ([1.0, 1.1] + [1.2 + 1e-9 * step for step in range(20)], None),
        ([1.0 + (step // 8) / 10 for step in range(40)], None),
        ([1.0 + (step // 8) / 10 for step in range(24)] + [1.2] * 14, 30),
    ],
    ids=["stopped", "not for long enough", "frozen", "converging", "accumulated", "longer than between updates"],
)
def test_the_recommended_parameters_want_that_it_moved_and_stopped(series: list[float], expected: int | None):
    assert judge("UnchangedTensor", {"w": series}, **RECOMMENDED).met_at == expected
