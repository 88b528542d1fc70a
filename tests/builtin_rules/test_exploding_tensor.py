"""ExplodingTensor: NaN and infinity, in values and in saved reductions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.registry import builtin_rules
from evaluator.testing import evaluate
from evaluator.writer import TrialWriter
from tests.builtin_rules.judging import defaults, judge

NAN, INF = float("nan"), float("inf")
FOO = {"foo_0": [[NAN, 1.0], [1.0, 1.0], [NAN, NAN]], "foo_1": [[1.0], [1.0], [NAN]]}


def configured(**parameters: str) -> RuleConfiguration:
    found = configure(
        RuleRequest("ExplodingTensor", parameters, "sagemaker", "test"), builtin_rules()["ExplodingTensor"]
    )
    assert isinstance(found, RuleConfiguration)
    return found


def met_at(folder: Path, reductions: dict[str, float], **parameters: str) -> int | None:
    """The step at which a tensor fires of which only these reductions were saved at step 1."""
    with TrialWriter(folder) as writer:
        writer.save(0, {}, reductions={"w": dict.fromkeys(reductions, 1.0)})
        writer.save(1, {}, reductions={"w": reductions})
    return evaluate(str(folder), [configured(**parameters)]).met_at


def test_parameters_are_sagemakers():
    assert defaults("ExplodingTensor") == {"collection_names": None, "tensor_regex": None, "only_nan": False}


@pytest.mark.parametrize(("start_step", "expected"), [(0, 0), (1, 2)])
def test_the_vector_of_the_old_tests(start_step: int, expected: int):
    result = judge("ExplodingTensor", FOO, collection_names="gradients,weights", start_step=start_step)

    assert result.met_at == expected


def test_names_that_match_nothing_are_no_reason_to_look_at_everything():
    result = judge("ExplodingTensor", FOO, tensor_regex="bar")

    assert (result.word, result.met_at) == ("Error", None)
    assert "no tensor of regex 'bar'" in result.why


@pytest.mark.parametrize("seed", range(10))
def test_it_counts_as_the_slow_way_does(seed: int):
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(5, 7))
    values[generator.random((5, 7)) < 0.1] = generator.choice([NAN, INF, -INF])
    counts = [sum(1 for number in row if number - number != 0) for row in values.tolist()]
    first = next((step for step, count in enumerate(counts) if count), None)

    result = judge("ExplodingTensor", {"w": list(values), "v": [np.ones(3)] * 5})

    assert result.met_at == first
    assert first is None or result.findings[0].measured == counts[first]


def test_the_finding_says_what_was_found():
    finding = judge("ExplodingTensor", {"a": [[1.0, INF]], "w": [[NAN, NAN, 1.0]]}).findings[0]

    assert (finding.tensor, finding.measured, finding.limit) == ("a", 1, 0)
    assert finding.details == {"found": "inf", "nan": 0, "inf": 1}
    assert (finding.affected.tensors, finding.affected.of) == (2, 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_every_floating_type_is_looked_at(dtype: type):
    assert judge("ExplodingTensor", {"w": [np.ones(3, dtype), np.array([1, INF, 1], dtype)]}).met_at == 1


@pytest.mark.parametrize(("only_nan", "expected"), [("False", 0), ("True", 1)])
def test_only_nan_leaves_infinity_alone(only_nan: str, expected: int):
    assert judge("ExplodingTensor", {"w": [[INF, -INF], [NAN, 1.0]]}, only_nan=only_nan).met_at == expected


@pytest.mark.parametrize(
    "reductions",
    [
        {"max": INF},
        {"l2": INF},
        {"l2": NAN},
        {"mean": NAN},
        {"min": -INF, "max": 1.0},
        {"min": 1.0, "max": 2.0, "std": NAN},
    ],
)
def test_a_saved_reduction_shows_it_too(tmp_path: Path, reductions: dict[str, float]):
    assert met_at(tmp_path, reductions) == 1


@pytest.mark.parametrize(
    "reductions",
    [
        {"max": 3e38},
        {"prod": INF},
        {"abs_max": 300.0, "l2": INF, "variance": INF},
        {"min": -300.0, "max": 300.0, "l2": INF, "mean": INF},
    ],
)
def test_a_reduction_that_overflowed_itself_is_no_proof(tmp_path: Path, reductions: dict[str, float]):
    assert met_at(tmp_path, reductions) is None


@pytest.mark.parametrize(("reductions", "expected"), [({"max": INF, "std": NAN}, None), ({"max": NAN, "std": NAN}, 1)])
def test_a_deviation_that_infinity_made_nan_is_not_nan(
    tmp_path: Path, reductions: dict[str, float], expected: int | None
):
    assert met_at(tmp_path, reductions, only_nan="True") == expected


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"gradient/w": [INF, INF, 1.0, 1.0], "w": [1.0, 1.0, 1.0, 1.1]}, None),
        ({"attention.mask_output_0": [[0.0, -INF]] * 3}, None),
        ({"trees/Split": [[0.5, NAN]] * 3}, None),
        ({"gradient/w": [1.0, INF, NAN, INF]}, 3),
        ({"w": [1.0, 1.0, NAN]}, 2),
        ({"loss": [NAN]}, 0),
    ],
)
def test_the_recommended_parameters_leave_alone_what_is_not_finite_by_design(
    run: dict[str, list[float]], expected: int | None
):
    assert judge("ExplodingTensor", run, parameter_set="recommended").met_at == expected
