"""The rule files of custom-rule-files.md, re-created from their descriptions, run as they stand.

One process runs all of them; it sees the served modules as `smdebug`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.modes import Mode
from evaluator.writer import TrialWriter
from tests.user_rules.served_process import run_served

HERE = Path(__file__).parent
COLLECTING = (
    "ActivationOutputs",
    "ActivationInputs",
    "GradientsLayer",
    "GradientsAcrossLayers",
    "WeightRatio",
    "Inputs",
    "Outputs",
)


def write_trials(folder: Path) -> None:
    """`output`: gradients that grow past 10 at step 3; `eval`: accuracy that falls; `odd`: what else is asked for."""
    gradients = ["gradient/a.weight", "gradient/b.weight"]
    with TrialWriter(folder / "output", collections={"gradients": gradients, "weights": ["a.weight"]}) as writer:
        for step in range(5):
            values: dict[str, Any] = {
                "gradient/a.weight": np.array([-5.0, 5.0]),
                "gradient/b.weight": np.array([-4.0, 4.0]) * step,
                "a.weight": np.array([1.0, 2.0]) * (step + 1),
                "relu_input_0": np.ones(3) * step,
            }
            if step != 2:
                values["relu_output_0"] = np.ones(3)
            writer.save(step, values, mode=Mode.TRAIN)
    guessed = np.eye(3)[[0, 1, 2, 0]]
    with TrialWriter(folder / "eval") as writer:
        for step in range(6):
            labels = np.array([0, 1, 2, 0]) if step < 3 else np.array([1, 2, 0, 1])
            mode = Mode.EVAL if step % 2 else Mode.TRAIN
            writer.save(step, {"preds": guessed, "labels": labels}, mode=mode, mode_step=step // 2)
    with TrialWriter(folder / "odd", collections={"weights": ["w"]}) as writer:
        for step in range(4):
            scores = np.zeros((4, 40))
            scores[:, 33] = 1
            values = {
                "t": np.ones(2),
                "w": np.array([1.0, 1.0 + (step < 2)]),
                "CrossEntropyLoss_input_0": scores,
                "CrossEntropyLoss_input_1": np.array([34, 34, 33, 34]),
                "attention_0": np.full((2, 4), 0.25) if step < 2 else np.eye(2, 4),
            }
            writer.save(step, values)


@pytest.fixture(scope="module")
def came_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("published")
    write_trials(folder)
    jobs: dict[str, dict[str, Any]] = {}

    def job(name: str, file: str, rule: str, trial: str = "output", **parameters: str) -> None:
        where = {"file": str(HERE / "rule_files" / f"{file}.py"), "folder": str(folder)}
        jobs[name] = {**where, "class": rule, "trial": str(folder / trial), "parameters": parameters}

    for file in ("gradient_mean", "gradient_required", "names_of_2019", "with_trial", "never"):
        job(file, file, "CustomGradientRule")
    job("gradient_mean 20.0", "gradient_mean", "CustomGradientRule", threshold="20.0")
    job("gradient_required 4.5", "gradient_required", "CustomGradientRule", threshold="4.5")
    job("accuracy", "accuracy_drop", "check_accuracy", "eval", previous_accuracy="0.9", threshold="0.2")
    job("accuracy high", "accuracy_drop", "check_accuracy", "eval", previous_accuracy="0.1")
    for rule in COLLECTING:
        job(rule, "collecting", rule)
    job("frozen", "frozen", "TestRule", "odd")
    job("confusion", "confusion", "MyCustomRule", "odd")
    job("documented", "documented", "VanishingGradientRule", threshold="0.5")
    job("no_such_module", "no_such_module", "CustomGradientRule")
    for rule in ("TanhSaturationRule", "DeadReluRule", "MyAttentionEntropyRule", "ValuesUnchangedRule"):
        job(rule, "saturation", rule, "odd")
    job("notebook", "notebook", "PoorInitialization")
    told: dict[str, Any] = json.loads(run_served(str(HERE / "driver.py"), json.dumps(jobs)))
    return told


@pytest.mark.parametrize(
    ("job", "met_at"),
    [
        ("gradient_mean", 3),
        ("gradient_mean 20.0", None),
        ("gradient_required", 3),
        ("gradient_required 4.5", 0),
        ("names_of_2019", 3),
        ("with_trial", 3),
        ("never", None),
        ("documented", 0),
        ("accuracy", 3),
        ("accuracy high", None),
        ("confusion", 1),
        ("TanhSaturationRule", 2),
        ("MyAttentionEntropyRule", 2),
    ],
)
def test_a_published_rule_fires_where_its_description_says(came_of, job, met_at):
    assert came_of["results"][job].get("met_at", came_of["results"][job]) == met_at


@pytest.mark.parametrize(
    ("rule", "steps"),
    [
        ("ActivationOutputs", {"relu_output_0": ["0", "1", "3", "4"]}),
        ("ActivationInputs", {"relu_input_0": ["0", "1", "2", "3", "4"]}),
        ("GradientsLayer", {f"gradient/{name}.weight": ["0", "1", "2", "3", "4"] for name in "ab"}),
        ("GradientsAcrossLayers", {f"gradient/{name}.weight": ["0", "1", "2", "3", "4"] for name in "ab"}),
        ("WeightRatio", {"a.weight": ["1", "2", "3", "4"]}),
        ("Inputs", {"relu_input_0": ["0", "1", "2", "3", "4"]}),
        ("Outputs", {"relu_output_0": ["0", "1", "3", "4"]}),
    ],
)
def test_a_collecting_rule_keeps_its_state_and_never_fires(came_of, rule, steps):
    result = came_of["results"][rule]

    assert result["met_at"] is None
    assert {name: list(found) for name, found in result["found"].items()} == steps


def test_within_an_invocation_a_trial_stands_still(came_of):
    # the trial is complete, so the next step is there: the file's own assertion speaks
    assert came_of["results"]["frozen"] == {"raised": "AssertionError", "text": "1"}


@pytest.mark.parametrize(
    ("job", "raised", "words"),
    [
        ("no_such_module", "ModuleNotFoundError", "sagemaker"),
        ("DeadReluRule", "TypeError", "append"),
        ("ValuesUnchangedRule", "SMDebugTypeError", "no method 'invoke'"),
    ],
)
def test_a_defective_file_raises_its_own_error(came_of, job, raised, words):
    result = came_of["results"][job]

    assert (result["raised"], words in result["text"]) == (raised, True)


def test_detectors_of_notebooks_use_a_trial_without_being_rules(came_of):
    found, gradients = came_of["results"]["notebook"]["found"]

    assert (found["a.weight 1"], len(found), gradients) == ([[2], 3.0], 5, 2)


def test_rules_log_through_the_logger_of_the_api(came_of):
    assert "accuracy at step 3" in came_of["said"]
