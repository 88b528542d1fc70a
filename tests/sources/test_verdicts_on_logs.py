"""With no configuration, rules about losses, metrics and values that are not finite work on logs of every kind."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from benchmarks.evaluate import candidates, judge
from evaluator.trial.opening import open_run
from tests.sources.event_files import event, simple, version

Rows = Mapping[int, Mapping[str, float]]
"""Step -> name -> value; validation's names begin with val_."""


def noise(step: int) -> float:
    return 0.01 * math.sin(12.9898 * step)


def healthy() -> Rows:
    return {
        step: {
            "loss": 2 * math.exp(-step / 20) + 0.3 + noise(step),
            "val_loss": 2 * math.exp(-step / 20) + 0.4 + noise(step + 1),
            "accuracy": 0.9 - 0.8 * math.exp(-step / 20) + noise(step),
            "val_accuracy": 0.88 - 0.8 * math.exp(-step / 20) + noise(step + 3),
            "grad_norm": 1 + noise(step),
            "lr": 0.1,
        }
        for step in range(100)
    }


def with_changes(changes: Callable[[int], Mapping[str, float]]) -> Rows:
    return {step: {**values, **changes(step)} for step, values in healthy().items()}


RUNS: Mapping[str, tuple[Rows, set[str]]] = {
    "healthy": (healthy(), set()),
    "not finite": (with_changes(lambda step: {"loss": math.nan} if step >= 60 else {}), {"NonFinite"}),
    "overfit": (
        with_changes(
            lambda step: (
                {"val_loss": 0.5 + (step - 30) / 30, "val_accuracy": 0.7 - (step - 30) / 200} if step > 30 else {}
            )
        ),
        {"Overfit"},
    ),
    "diverging": (with_changes(lambda step: {"loss": 0.8 + (step - 40) / 4} if step > 40 else {}), {"LossDiverging"}),
    "not learning": (
        with_changes(
            lambda step: {
                "loss": 2.3 + noise(step),
                "val_loss": 2.3 + noise(step + 1),
                "accuracy": 0.1 + noise(step) / 10,
                "val_accuracy": 0.1 + noise(step + 1) / 10,
            }
        ),
        {"LossNotDecreasing", "MetricFlat"},
    ),
}


def as_json_lines(folder: Path, rows: Rows) -> None:
    lines = (json.dumps({"step": step, **values}) for step, values in rows.items())
    (folder / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))


def as_lightning(folder: Path, rows: Rows) -> None:
    names = ["epoch", "step", *rows[0]]
    with (folder / "metrics.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for step, values in rows.items():
            for validation in (False, True):
                some = {name: value for name, value in values.items() if name.startswith("val_") is validation}
                writer.writerow({"epoch": step // 10, "step": step, **some})


def as_keras(folder: Path, rows: Rows) -> None:
    with (folder / "training.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["epoch", *rows[0]])
        writer.writeheader()
        writer.writerows({"epoch": step, **values} for step, values in rows.items())


def as_trainer_state(folder: Path, rows: Rows) -> None:
    history = []
    for step, values in rows.items():
        for validation in (False, True):
            some = {name: value for name, value in values.items() if name.startswith("val_") is validation}
            named = {name.replace("val_", "eval_"): value for name, value in some.items()}
            history.append({**named, "epoch": step / 10, "step": step})
    (folder / "checkpoint-99").mkdir()
    (folder / "checkpoint-99" / "trainer_state.json").write_text(json.dumps({"log_history": history}))


def as_tensorboard(folder: Path, rows: Rows) -> None:
    for split in ("train", "validation"):
        data = version()
        for step, values in rows.items():
            some = {name: value for name, value in values.items() if name.startswith("val_") is (split != "train")}
            data += event(step, *(simple(name.removeprefix("val_"), value) for name, value in some.items()))
        (folder / split).mkdir()
        (folder / split / "events.out.tfevents.1700000000.host").write_bytes(data)


FORMS = (as_json_lines, as_lightning, as_keras, as_trainer_state, as_tensorboard)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("run", RUNS)
def test_a_fault_is_found_in_every_kind_of_log(tmp_path: Path, form: Callable[[Path, Rows], None], run: str):
    rows, expected = RUNS[run]
    form(tmp_path, rows)
    judged = judge(open_run(str(tmp_path)), candidates("recommended"))
    found = {finding.rule for finding in judged.findings}

    assert judged.raised == {}
    assert expected <= found
    assert found - expected <= ({"ExplodingTensor", "Overtraining"} if expected else set())
    assert judged.evaluated >= {"NonFinite", "LossDiverging", "LossNotDecreasing", "LossSpike", "Overfit", "MetricFlat"}
