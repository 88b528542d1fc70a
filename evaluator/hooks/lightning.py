"""Saves a training with Lightning as a trial, with one argument in the script beside the import.

    from evaluator.hooks.lightning import callback

    Trainer(callbacks=[callback("trial")]).fit(module, batches)

Parameters, gradients, activations and the loss that `training_step` returns are saved every 100th batch, as by the hook
for PyTorch; what was logged in a validation is a step of mode EVAL. A file named STOP in the trial's folder ends the
training after the batch. Whatever fails is one warning.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluator.hooks.torch import Hook
from evaluator.modes import Mode
from evaluator.scalar_names import of_evaluation

if TYPE_CHECKING:
    from lightning.pytorch import Callback as LightningCallback


def callback(folder: str | os.PathLike[str], **options: Any) -> LightningCallback:
    """A callback for Trainer; the options are those of `evaluator.hooks.torch.Hook`."""
    try:
        from lightning.pytorch import Callback as Base  # noqa: PLC0415 - only the user's script needs it
    except ImportError:
        # the same under the name that it has had before
        from pytorch_lightning import Callback as Base  # noqa: PLC0415

    class Callback(_Saving, Base):  # type: ignore[misc, unused-ignore]
        """What the Trainer takes for a callback."""

    return Callback(folder, options)


class _Saving:
    """Saves batches and validations."""

    def __init__(self, folder: str | os.PathLike[str], options: Mapping[str, Any]) -> None:
        super().__init__()
        self._folder = folder
        self._options = options
        self._hook: Hook | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Only now the module is where it will be trained."""
        self._hook = Hook(pl_module, self._folder, **self._options)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Save a batch, if it is its turn."""
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if self._hook is not None and self._hook.step(loss=loss, mode=Mode.TRAIN):
            trainer.should_stop = True

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Save what was logged of a validation."""
        values = {name: value for name, value in trainer.callback_metrics.items() if of_evaluation(name)}
        if self._hook is not None and values and not trainer.sanity_checking:
            self._hook.record(mode=Mode.EVAL, **values)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Mark the run as ended."""
        if self._hook is not None:
            self._hook.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Write what is there; a run that failed has not ended well."""
        if self._hook is not None:
            self._hook.close(end=False)
