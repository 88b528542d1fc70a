"""The callback for the Trainer of Hugging Face: with the Trainer where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.modes import Mode
from tests.hooks.trials import collections, findings, saved

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make hooks` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="the Trainer needs accelerate, which is not installed")

from torch import nn  # noqa: E402 - only where it is installed

from evaluator.hooks.transformers import callback  # noqa: E402

# what frameworks say to each other is not ours
pytestmark = pytest.mark.filterwarnings("ignore")


class Classifier(nn.Module):  # type: ignore[misc, unused-ignore]
    """A model as the Trainer wants it."""

    def __init__(self, bias: float) -> None:
        super().__init__()
        self.embed, self.fc, self.act, self.out = nn.Embedding(20, 16), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2)
        nn.init.constant_(self.fc.bias, bias)

    def forward(self, input_ids: Any = None, labels: Any = None) -> Any:
        logits = self.out(self.act(self.fc(self.embed(input_ids).mean(1))))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def trained(folder: Path, bias: float = 0.0, trial: Path | None = None) -> Any:
    torch.manual_seed(0)
    data = [{"input_ids": torch.randint(0, 20, (6,)), "labels": number % 2} for number in range(160)]
    arguments = transformers.TrainingArguments(
        str(folder / "output"), num_train_epochs=2, per_device_train_batch_size=16, logging_steps=5, report_to=[],
        eval_strategy="epoch", save_strategy="no", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    hook = callback(folder / "trial" if trial is None else trial, every=5)
    trainer = transformers.Trainer(
        Classifier(bias), arguments, train_dataset=data, eval_dataset=data[:32], callbacks=[hook]
    )
    trainer.train()
    return trainer


def test_steps_and_logs_are_saved_and_the_run_ends(tmp_path: Path):
    trained(tmp_path)
    steps = saved(tmp_path / "trial").values()

    full = [step for step in steps if "fc.weight" in step]
    assert len(full) == 4
    assert {"embed_input_0", "act.relu_output_0", "gradient/fc.weight"} < set(full[0])
    assert sum("loss" in step and step[""] is Mode.TRAIN for step in steps) == 4
    assert [list(step)[1] for step in steps if step[""] is Mode.EVAL] == ["eval_loss", "eval_loss"]
    assert collections(tmp_path / "trial")["losses"] == {"loss", "eval_loss"}
    assert (tmp_path / "trial" / "training_job_end.ts").exists()


def test_a_file_named_stop_ends_the_training(tmp_path: Path):
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "STOP").write_bytes(b"")

    assert trained(tmp_path).state.global_step == 1


def test_a_folder_that_cannot_be_written_ends_no_training(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")

    assert trained(tmp_path, trial=tmp_path / "file" / "trial").state.global_step == 20


def test_a_healthy_training_is_quiet(tmp_path: Path):
    trained(tmp_path)

    assert findings(tmp_path / "trial") == {}


def test_a_dead_layer_is_found(tmp_path: Path):
    trained(tmp_path, bias=-100.0)

    assert findings(tmp_path / "trial")["DeadRelu"] == "act.relu_output_0"
