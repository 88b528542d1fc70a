"""Odd runs against every built-in rule: whatever was saved, none raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.modes import Mode
from evaluator.registry import builtin_rules
from evaluator.rule import Rule
from evaluator.testing import ExampleResult, evaluate, trial_from_series
from evaluator.writer import TrialWriter

RULES = builtin_rules()
NAN, INF = float("nan"), float("inf")
TINY, HUGE = 5e-324, 1.7e308

COLLECTIONS = ("gradients", "weights", "losses")
PARAMETERS: Mapping[str, list[dict[str, Any]]] = {
    "AllZero": [{"threshold": 50}],
    "CheckInputImages": [
        {"regex": ".", "only_images": False, "threshold_samples": 1},
        {"regex": ".", "channel": 0, "threshold_samples": 1, "parameter_set": "sagemaker"},
    ],
    "ClassImbalance": [
        {"labels_regex": ".", "predictions_regex": ".", "samples": 1},
        {"labels_regex": ".", "predictions_regex": ".", "samples": 1, "argmax": True, "parameter_set": "sagemaker"},
    ],
    "Confusion": [
        {"labels": "odd", "predictions": "odd"},
        {"labels": "w", "predictions": "weights"},
        {"labels": "odd", "predictions": "odd", "category_no": 2, "parameter_set": "sagemaker"},
    ],
    "DeadRelu": [{"tensor_regex": ".", "min_samples": 1}, {"tensor_regex": ".", "parameter_set": "sagemaker"}],
    "NLPSequenceRatio": [{"tensor_regex": ".", "min_length": 1}],
    "PoorWeightInitialization": [{"activation_inputs_regex": ".", "units_alike": True, "parameter_set": "sagemaker"}],
    "SaturatedActivation": [{"tensor_regex": "."}],
    "TensorVariance": [{"max_threshold": 0, "min_threshold": 1}],
    "ExplodingTensor": [{"tolerant": False}, {"only_nan": True}],
    "FeatureImportanceOverweight": [{"tensor_regex": ".", "nfeatures": 2}],
    "NotLearning": [{"steps": 2, "first_steps": 2, "threshold": 0.5}],
    "SilentWorker": [{"steps": 1, "times": 1}],
    "SimilarAcrossRuns": [{"equal_nan": False, "rtol": 0, "atol": 0}],
    "StalledTrainingRule": [{"threshold": 1, "times": 0}],
    "TreeDepth": [{"depth": 0}],
    "VanishingGradient": [{"relative": 1, "settled": 1}, {"relative": 0.5, "settled": 2}],
    "WorkersDiverge": [{"tolerance": 0}],
    "NonFinite": [{"constants": True, "gradient_steps": 1, "gradient_window": 63}],
    "UnchangedTensor": [
        {"num_steps": 2, "equal_nan": True, "rtol": 0, "atol": 0, "moved_before": False},
        {"modes": "EVAL,PREDICT", "times": 3},
    ],
    "WeightUpdateRatio": [{"num_steps": 3, "epsilon": 0}],
    "LossNotDecreasing": [{"num_steps": 1, "diff_percent": 0}, {"mode": "EVAL"}],
    "Overfit": [{"patience": 2}, {"tensor_regex": "."}],
}
SERIES: Mapping[str, list[Any]] = {
    "one step": [1.0],
    "all NaN": [np.full((2, 2), NAN)] * 4,
    "all infinite": [INF, -INF, INF, -INF],
    "unsaved between": [1.0, None, None, 1.0, None],
    "empty": [np.zeros((0, 3))] * 4,
    "empty, then not, then again": [np.zeros(0), np.ones(2), np.ones(2), np.zeros(0)],
    "zero": [0.0] * 4,
    "tiny": [TINY, -TINY, 2 * TINY, TINY],
    "huge": [HUGE, -HUGE, HUGE, -HUGE],
    "huge half precision": [np.full(1000, value, np.float16) for value in (65504, -65504, 65504)],
    "huge single precision": [np.full(3, value, np.float32) for value in (3.4e38, -3.4e38, 3.4e38)],
    "another shape at every step": [np.ones(1), np.ones((2, 2)), np.float64(1), np.ones((1, 4))],
    "another type at every step": [np.ones(2, np.float32), np.ones(2, np.int8), np.ones(2, np.bool_), np.ones(2)],
    "text": [np.array(["a", "b"])] * 4,
    "text, then numbers": [np.array(["a"]), np.ones(1), np.array(["a"]), np.ones(1)],
    "truth values": [np.array([True, False])] * 4,
    **{
        f"{np.dtype(dtype)}": [np.array([0, 1, np.iinfo(dtype).max], dtype)] * 4
        for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
    },
    "complex": [np.array([1j, NAN, INF])] * 4,
    "least integer": [np.array([-128], np.int8), np.array([127], np.int8), np.array([-128], np.int8)],
    "scalar": [np.float32(1)] * 4,
}

each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def judged(rule: Rule, folder: Path) -> list[ExampleResult]:
    """The rule with its defaults and with other parameters."""
    results = []
    for parameters in [{}, *PARAMETERS.get(rule.name, [])]:
        configured = configure(RuleRequest(rule.name, {**parameters, "on_finding": "continue"}, "ours", "test"), rule)
        assert isinstance(configured, RuleConfiguration), configured
        results.append(evaluate(str(folder), [configured]))
    return results


def failures(rule: Rule, folder: Path) -> list[str]:
    return [result.why for result in judged(rule, folder) if result.failed]


def save(folder: Path, tensors: Mapping[str, Any], **how: Any) -> None:
    names = list({name for one in tensors.values() for name in one} if how.get("workers") else tensors)
    trial_from_series(folder, tensors, collections=dict.fromkeys(COLLECTIONS, names), **how)


@each_rule
@pytest.mark.parametrize("series", SERIES.values(), ids=SERIES)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a healthy one"])
def test_an_odd_tensor_raises_nothing(rule: Rule, series: list[Any], beside: bool, tmp_path: Path):
    healthy = {"loss": [1.0 / (1 + step) for step in range(5)]} if beside else {}

    save(
        tmp_path,
        {"odd": series, **healthy},
        modes=["TRAIN", "EVAL", "TRAIN", "EVAL", "TRAIN"][: 5 if beside else len(series)],
    )

    assert failures(rule, tmp_path) == []


@each_rule
def test_a_run_without_a_step_raises_nothing(rule: Rule, tmp_path: Path):
    with TrialWriter(tmp_path):
        pass

    assert {(result.word, result.evaluated) for result in judged(rule, tmp_path)} == {("Error", 0)}


@each_rule
def test_a_worker_that_is_late_raises_nothing(rule: Rule, tmp_path: Path):
    late = {"w": [None, None, 1.0, NAN], "only here": [None, 1.0, None, 2.0]}

    save(
        tmp_path,
        {"worker_0": {"w": [1.0, 2.0, 2.0, 2.0]}, "worker_1": late, "worker_10": {"w": [None] * 4}},
        workers=True,
    )

    assert failures(rule, tmp_path) == []


@each_rule
def test_bfloat16_raises_nothing_and_is_read_exactly(rule: Rule, tmp_path: Path):
    bits = (np.array([1.0, -2.5, INF], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    save(tmp_path, {"w": [bits, bits, bits, bits]})
    for path in tmp_path.rglob("*.tfevents"):
        # type code 17 is uint16, 14 is bfloat16: the same bytes, read differently
        data = path.read_bytes()
        assert data.count(b"\x08\x11") == 1
        path.write_bytes(data.replace(b"\x08\x11", b"\x08\x0e"))

    assert failures(rule, tmp_path) == []
    if rule.name == "ExplodingTensor":
        assert judged(rule, tmp_path)[1].findings[0].measured == 1


@each_rule
def test_reductions_and_shapes_without_values_raise_nothing(rule: Rule, tmp_path: Path):
    names = ["min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2"]
    with TrialWriter(tmp_path, collections=dict.fromkeys(COLLECTIONS, ("w", "v", "s"))) as writer:
        for step, value in enumerate([1.0, NAN, INF, 0.0]):
            writer.save(
                step,
                {},
                mode=Mode.TRAIN if step % 2 else Mode.EVAL,
                reductions={"w": dict.fromkeys(names, value), "v": {names[step]: value}},
                shapes={"s": (2, 3)},
            )

    assert failures(rule, tmp_path) == []


@each_rule
def test_values_of_every_mode_at_one_step_raise_nothing(rule: Rule, tmp_path: Path):
    for number, mode in enumerate(Mode):
        writer = TrialWriter(
            tmp_path, worker=f"worker_{number}", num_workers=4, collections=dict.fromkeys(COLLECTIONS, ("w",))
        )
        for step in range(4):
            writer.save(step, {"w": float(step)}, mode=mode)
        writer.close(end=number == 3)

    assert failures(rule, tmp_path) == []


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@each_rule
@pytest.mark.parametrize("damage", [Path.unlink, _cut, _empty], ids=["missing", "cut off", "empty"])
def test_a_damaged_file_raises_nothing(rule: Rule, damage: Callable[[Path], None], tmp_path: Path):
    save(tmp_path, {"w": [np.ones(3) * step for step in range(5)], "v": [float(step) for step in range(5)]})
    damage(sorted(tmp_path.rglob("*.tfevents"))[2])
    damage(sorted(tmp_path.rglob("index/**/*.json"))[3])

    assert failures(rule, tmp_path) == []


def test_every_rule_of_the_parameters_above_exists():
    assert set(PARAMETERS) <= set(RULES)
