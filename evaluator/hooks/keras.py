"""Saves a Keras 3 training as a trial, with one argument in the script beside the import.

    from evaluator.hooks.keras import callback

    model.fit(x, y, validation_split=0.1, callbacks=[callback("trial")])

Every 100th batch is saved: its logs (`loss`, which Keras averages since the start of the epoch, and metrics), the
trainable variables (`dense/kernel`), and their gradients where Keras leaves them, which is with the backend torch.
The logs of a validation are a step of mode EVAL. A file named STOP in the trial's folder ends the training after the
batch. Whatever fails is one warning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluator.hooks._hooked_trial import HookedTrial, by_kind
from evaluator.modes import Mode
from evaluator.reductions import REDUCTIONS
from evaluator.segments import Array, Segments

if TYPE_CHECKING:
    import keras

MOST_ELEMENTS = 2**16
"""256 KiB of float32; of larger variables reductions are saved. Ours."""

OF_LARGE = ("min", "max", "mean", "variance", "std", "abs_mean", "abs_max", "l2")


def callback(
    folder: str | os.PathLike[str], *, every: int = 100, most_elements: int = MOST_ELEMENTS, **trial: Any
) -> keras.callbacks.Callback:
    """A callback for `fit`.

    Args:
        folder: the trial's, made when it is not there.
        every: so many batches lie between two that are saved.
        most_elements: of larger variables and gradients, reductions are saved.
        trial: `workers="one"` (only the first worker saves), `keep_steps`, `keep_bytes`, `rank_of`.
    """
    import keras  # noqa: PLC0415 - only the user's script needs it

    class Callback(_Saving, keras.callbacks.Callback):  # type: ignore[misc, unused-ignore]
        """What Keras takes for a callback."""

    return Callback(HookedTrial(folder, **trial), max(1, every), most_elements)


class _Saving:
    """Saves batches."""

    model: Any

    def __init__(self, trial: HookedTrial, every: int, most_elements: int) -> None:
        super().__init__()
        self._trial = trial
        self._every = every
        self._most = most_elements

    def on_train_begin(self, logs: Any = None) -> None:
        """Go on where an earlier `fit` has ended."""
        self._trial.open()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Save a batch, if it is its turn."""
        with self._trial.failures.guard("a batch was not saved"):
            step, mode_step = self._trial.count(Mode.TRAIN)
            if mode_step % self._every == 0:
                self._save(step, mode_step, _numbers(logs))
            if self._trial.should_stop(step):
                self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save the logs of the validation."""
        with self._trial.failures.guard("a validation was not saved"):
            values = {name: value for name, value in _numbers(logs).items() if name.startswith("val_")}
            if values:
                step, mode_step = self._trial.count(Mode.EVAL)
                self._trial.save(step, values, mode=Mode.EVAL, mode_step=mode_step, collections=by_kind(values))

    def on_train_end(self, logs: Any = None) -> None:
        """Mark the run as ended; another `fit` takes that back."""
        self._trial.close()

    def _save(self, step: int, mode_step: int, logs: Mapping[str, Any]) -> None:
        values, reductions = dict(logs), {}
        collections: dict[str, list[str]] = {"weights": [], "biases": [], "gradients": [], **by_kind(logs)}
        for collection, name, array in self._arrays():
            collections[collection].append(name)
            if array.size > self._most:
                reductions[name] = reduced(array)
            elif array.size:
                values[name] = array
        more: Any = {"reductions": reductions, "collections": collections}
        self._trial.save(step, values, mode=Mode.TRAIN, mode_step=mode_step, **more)

    def _arrays(self) -> Iterator[tuple[str, str, Array]]:
        """Collection, name and a copy of each variable, and of each gradient that is there."""
        for variable in self.model.trainable_variables:
            with self._trial.failures.guard(f"variable {variable.path!r} was not saved"):
                yield "biases" if variable.path.endswith("bias") else "weights", variable.path, _array(variable.value)
                gradient = getattr(variable.value, "grad", None)
                if gradient is not None:
                    yield "gradients", f"gradient/{variable.path}", _array(gradient)


def _array(tensor: Any) -> Array:
    """A copy that the training does not change; a type that numpy lacks becomes float32."""
    import keras  # noqa: PLC0415 - only the user's script needs it

    if keras.backend.standardize_dtype(tensor.dtype) == "bfloat16":
        tensor = keras.ops.cast(tensor, "float32")
    return np.array(keras.ops.convert_to_numpy(tensor))


def reduced(array: Array) -> dict[str, float]:
    """The reductions of a large array."""
    segments = Segments.of([array])
    return {name: float(REDUCTIONS[name](segments)[0]) for name in OF_LARGE}


def _numbers(logs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The logs as numbers; some are results per class, which are no single number."""
    return {name: np.float64(value) for name, value in (logs or {}).items() if np.ndim(value) == 0}
