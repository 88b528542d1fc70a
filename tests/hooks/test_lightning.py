"""The callback for Lightning: with its Trainer where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.modes import Mode
from tests.hooks.trials import collections, findings, saved

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make hooks` installs it")
# its own imports warn
pytestmark = pytest.mark.filterwarnings("ignore")
try:
    import lightning.pytorch as lightning
except ImportError:
    pytest.skip("Lightning is not installed", allow_module_level=True)

from torch import nn  # noqa: E402 - only where it is installed
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from evaluator.hooks.lightning import callback  # noqa: E402


class Regression(lightning.LightningModule):  # type: ignore[misc, unused-ignore]
    """A module as the Trainer wants it."""

    def __init__(self, bias: float, fails_at: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Sigmoid(), nn.Linear(16, 1))
        nn.init.constant_(self.net[0].bias, bias)
        self.fails_at = fails_at

    def training_step(self, batch: Any, number: int) -> Any:
        if self.global_step == self.fails_at:
            raise ValueError(number)
        return nn.functional.mse_loss(self.net(batch[0]), batch[1])

    def validation_step(self, batch: Any, number: int) -> None:
        self.log("val_loss", nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


def trained(trial: Path | None, bias: float = 0.0, fails_at: int = -1) -> Any:
    """A trainer that has trained; without a callback where there is no trial."""
    torch.manual_seed(0)
    x = torch.randn(160, 8)
    batches = DataLoader(TensorDataset(x, x[:, :1]), 16)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[] if trial is None else [callback(trial, every=5)],
    )  # fmt: skip
    trainer.fit(Regression(bias, fails_at), batches, batches)
    return trainer


def test_batches_and_validations_are_saved_and_the_run_ends(tmp_path: Path):
    trained(tmp_path)
    steps = saved(tmp_path).values()

    of_training = [step for step in steps if step[""] is Mode.TRAIN]
    assert len(of_training) == 4
    assert {"net.1.sigmoid_input_0", "net.0.weight", "gradient/net.0.weight", "loss"} < set(of_training[0])
    assert [list(step)[1:] for step in steps if step[""] is Mode.EVAL] == [["val_loss"], ["val_loss"]]
    assert collections(tmp_path)["losses"] == {"loss", "val_loss"}
    assert (tmp_path / "training_job_end.ts").exists()


def test_a_training_that_failed_has_not_ended_and_all_until_then_is_saved(tmp_path: Path):
    with pytest.raises(ValueError, match="7"):
        trained(tmp_path, fails_at=7)

    assert list(saved(tmp_path)) == [0, 5]
    assert not (tmp_path / "training_job_end.ts").exists()


def test_a_file_named_stop_ends_the_training(tmp_path: Path):
    (tmp_path / "STOP").write_bytes(b"")

    assert trained(tmp_path).global_step == 1


def test_a_folder_that_cannot_be_written_ends_no_training(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")

    assert trained(tmp_path / "file" / "trial").global_step == 20


def test_a_training_comes_to_the_same_with_and_without_the_callback(tmp_path: Path):
    with_it, without = trained(tmp_path).lightning_module.net, trained(None).lightning_module.net

    for one, other in zip(with_it.parameters(), without.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_healthy_training_is_quiet(tmp_path: Path):
    trained(tmp_path)

    assert findings(tmp_path) == {}


def test_a_saturated_layer_is_found(tmp_path: Path):
    trained(tmp_path, bias=50.0)

    assert findings(tmp_path)["SaturatedActivation"] == "net.1.sigmoid_input_0"
