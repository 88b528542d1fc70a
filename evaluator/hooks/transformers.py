"""Saves a training with the Trainer of Hugging Face as a trial, with one argument in the script beside the import.

    from evaluator.hooks.transformers import callback

    Trainer(model, arguments, train_dataset=data, callbacks=[callback("trial")]).train()

Parameters, gradients, activations and tokens are saved every 100th step, as by the hook for PyTorch; what the Trainer
logs (`loss`, `grad_norm`, `learning_rate`, `eval_loss`) when it logs it. A file named STOP in the trial's folder ends
the training after the step. Whatever fails is one warning.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluator.hooks.torch import Hook
from evaluator.modes import Mode

if TYPE_CHECKING:
    from transformers import TrainerCallback

SUMMARY = "train_runtime"
"""Is in the last logs of a training only, whose `train_loss` is an average over all of it."""


def callback(folder: str | os.PathLike[str], **options: Any) -> TrainerCallback:
    """A callback for Trainer; the options are those of `evaluator.hooks.torch.Hook`."""
    from transformers import TrainerCallback  # noqa: PLC0415 - only the user's script needs it

    class Callback(_Saving, TrainerCallback):  # type: ignore[misc, unused-ignore]
        """What the Trainer takes for a callback."""

    return Callback(folder, options)


class _Saving:
    """Saves steps and logs."""

    def __init__(self, folder: str | os.PathLike[str], options: Mapping[str, Any]) -> None:
        super().__init__()
        self._folder = folder
        self._options = options
        self._hook: Hook | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Only now the model is where it will be trained."""
        if given.get("model") is not None:
            self._hook = Hook(given["model"], self._folder, **self._options)

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Save a step, if it is its turn."""
        if self._hook is not None and self._hook.step(mode=Mode.TRAIN):
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **given: Any) -> None:
        """Save what is logged, the numbers of an evaluation as such."""
        if self._hook is None or SUMMARY in logs:
            return
        numbers = {name: value for name, value in logs.items() if isinstance(value, int | float)}
        for mode in (Mode.TRAIN, Mode.EVAL):
            of_mode = {
                name: value
                for name, value in numbers.items()
                if (mode is Mode.EVAL) == name.startswith("eval_") and name != "epoch"
            }
            if of_mode:
                self._hook.record(mode=mode, **of_mode)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Mark the run as ended."""
        if self._hook is not None:
            self._hook.close()
