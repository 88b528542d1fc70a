"""Values are compared with those of the same parameter, whatever wraps the model on the other side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluator.config.parameters import configure
from evaluator.config.request import RuleRequest
from evaluator.engine.counterparts import counterpart
from evaluator.registry import builtin_rules
from evaluator.rule import Example
from evaluator.sources.base import VALUE, Layout
from evaluator.testing import evaluate, run_example, trial_from_series

START, MOVED, DRIFTED = [[0.5, -0.5], [0.6, -0.4]], [0.7, -0.3], [0.7, -0.301]


def layout(*names: str) -> Layout:
    return Layout(names, (VALUE,) * len(names))


@pytest.mark.parametrize(
    ("name", "mine", "theirs", "expected"),
    [
        ("fc.weight", ["fc.weight"], ["module.fc.weight"], "module.fc.weight"),
        ("module.fc.weight", ["module.fc.weight"], ["fc.weight"], "fc.weight"),
        ("_orig_mod.fc.weight", ["_orig_mod.fc.weight"], ["module.fc.weight"], "module.fc.weight"),
        ("gradient/module.fc.weight", ["gradient/module.fc.weight"], ["gradient/fc.weight"], "gradient/fc.weight"),
        ("fc.weight", ["fc.weight"], ["fc.bias"], None),
        ("fc.weight", ["fc.weight"], ["module.fc.weight", "_orig_mod.fc.weight"], None),
        ("module.fc.weight", ["module.fc.weight", "fc.weight"], ["fc.weight"], None),
        ("module.fc.weight", ["module.fc.weight", "_orig_mod.fc.weight"], ["fc.weight"], None),
        ("fc.weight", ["fc.weight"], [], None),
    ],
)
def test_the_same_parameter_under_another_wrapper(name: str, mine: list[str], theirs: list[str], expected: str | None):
    assert counterpart(name, layout(*mine), layout(*theirs)) == expected


def met_at(rule: str, **given: Any) -> int | None:
    result = run_example(builtin_rules()[rule], Example("x", **given))
    assert not result.failed
    return result.met_at


def workers(first: Mapping[str, Sequence[Any]], second: Mapping[str, Sequence[Any]]) -> Any:
    return {"worker_0": first, "worker_1": second}


def test_workers_that_wrap_the_model_differently_are_compared():
    drifts = workers({"fc.weight": [*START, MOVED]}, {"module.fc.weight": [*START, DRIFTED]})
    alike = workers({"fc.weight": [*START, MOVED]}, {"module.fc.weight": [*START, MOVED]})

    assert met_at("WorkersDiverge", workers=drifts) == 2
    assert met_at("WorkersDiverge", workers=alike) is None


def test_another_run_with_another_wrapper_is_compared():
    here = {"module.fc.weight": [1.0, 2.0], "loss": [1.0, 0.5]}

    assert met_at("SimilarAcrossRuns", tensors=here, other={"fc.weight": [1.0, 2.5], "loss": [1.0, 0.5]}) == 1
    assert met_at("SimilarAcrossRuns", tensors=here, other={"fc.weight": [1.0, 2.0], "loss": [1.0, 0.5]}) is None
    assert met_at("SimilarAcrossRuns", tensors=here, other={"head.weight": [9.0, 9.0], "loss": [1.0, 0.5]}) is None


def test_a_name_that_is_on_both_sides_goes_before_one_that_only_looks_like_it():
    here = {"module.fc.weight": [1.0, 2.0]}
    other = {"fc.weight": [9.0, 9.0], "module.fc.weight": [1.0, 2.0]}

    assert met_at("SimilarAcrossRuns", tensors=here, other=other) is None


def test_values_that_are_read_one_by_one_have_the_same_partners(tmp_path: Path):
    large = [[float(at) for at in range(2000)], [float(at) for at in range(2000)]]
    moved = [large[0], [at + 1.0 for at in large[0]]]
    trial_from_series(tmp_path / "here", {"module.fc.weight": large})
    trial_from_series(tmp_path / "there", {"fc.weight": moved})
    rule = builtin_rules()["SimilarAcrossRuns"]
    asked = {"other_trials": str(tmp_path / "there")}
    configuration = configure(RuleRequest(rule.name, asked, "ours", rule.name), rule)
    assert not isinstance(configuration, list)

    result = evaluate(str(tmp_path / "here"), [configuration], memory_budget=2000)

    assert result.met_at == 1
