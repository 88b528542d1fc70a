"""The callback for Keras 3: what it saves, and that nothing it does ends a training."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.modes import Mode
from tests.hooks.trials import collections, findings, saved

pytest.importorskip("torch", reason="PyTorch is not installed; `make hooks` installs it")
# the backend that is installed with the hooks' tests; Keras reads this when it is imported
os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="Keras is not installed; `make hooks` installs it")

from evaluator.hooks.keras import callback  # noqa: E402 - only where it is installed

# what frameworks say to each other is not ours
pytestmark = pytest.mark.filterwarnings("ignore")


def fitted(folder: Path | None, *, rate: float = 0.05, epochs: int = 3, fits: int = 1, **options: Any) -> Any:
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(rate), "mse", metrics=["mae"])
    x = np.random.default_rng(0).normal(size=(320, 8))
    hooks = [] if folder is None else [callback(folder, **{"every": 2, **options})]
    for _ in range(fits):
        model.fit(x, x[:, :1], epochs=epochs, batch_size=32, validation_split=0.1, verbose=0, callbacks=hooks)
    return model


VARIABLES = ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]


def of(names: Any, prefix: str = "") -> list[str]:
    """The variables among these, without the name of the model, which Keras counts."""
    return [name.partition("/")[2] for name in names if name.startswith(f"{prefix}sequential")]


def test_batches_and_validations_are_steps_and_the_run_ends(tmp_path: Path):
    fitted(tmp_path)
    modes = {step: values[""] for step, values in saved(tmp_path).items()}

    assert [step for step, mode in modes.items() if mode is Mode.EVAL] == [9, 19, 29]
    assert [step for step, mode in modes.items() if mode is Mode.TRAIN][:4] == [0, 2, 4, 6]
    assert (tmp_path / "training_job_end.ts").exists()


def test_variables_gradients_and_logs_are_saved(tmp_path: Path):
    fitted(tmp_path)
    steps = saved(tmp_path)

    assert of(steps[0]) == VARIABLES
    assert sum(name.startswith("gradient/") for name in steps[0]) == (4 if keras.backend.backend() == "torch" else 0)
    assert {"loss", "mae"} < set(steps[0])
    assert list(steps[9])[1:] == ["val_loss", "val_mae"]


def test_collections_hold_them(tmp_path: Path):
    fitted(tmp_path)
    found = collections(tmp_path)

    assert found["losses"] == {"loss", "val_loss"}
    assert found["metrics"] == {"mae", "val_mae"}
    assert sorted(of(found["weights"])) == ["dense/kernel", "dense_1/kernel"]


def test_values_are_those_of_the_last_batch(tmp_path: Path):
    model = fitted(tmp_path, every=1, epochs=1)
    last = saved(tmp_path)[8]
    kernel = next(name for name in last if name.endswith("dense/kernel") and not name.startswith("gradient"))

    np.testing.assert_array_equal(last[kernel], model.trainable_variables[0].numpy())


def test_a_training_comes_to_the_same_with_and_without_the_callback(tmp_path: Path):
    for one, other in zip(fitted(tmp_path).get_weights(), fitted(None).get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_large_variables_are_saved_as_reductions(tmp_path: Path):
    fitted(tmp_path, most_elements=100)
    names = list(saved(tmp_path)[0])

    assert "dense/kernel" not in of(names)
    assert any(name.startswith("smdebug/reductions/abs_mean/sequential") for name in names)


def test_a_second_fit_goes_on_where_the_first_has_ended(tmp_path: Path):
    fitted(tmp_path, fits=2)

    assert max(saved(tmp_path)) == 59
    assert (tmp_path / "training_job_end.ts").exists()


def test_a_file_named_stop_ends_the_training(tmp_path: Path):
    (tmp_path / "STOP").write_bytes(b"")
    fitted(tmp_path, every=1)

    assert [step for step, values in saved(tmp_path).items() if values[""] is Mode.TRAIN] == [0]


def test_a_folder_that_cannot_be_written_ends_no_training(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    model = fitted(tmp_path / "file" / "trial")

    assert model.optimizer.iterations == 27


def test_a_healthy_training_is_quiet(tmp_path: Path):
    fitted(tmp_path, epochs=6)

    assert findings(tmp_path) == {}


def test_a_training_that_explodes_is_found(tmp_path: Path):
    fitted(tmp_path, rate=1e3)

    assert "NonFinite" in findings(tmp_path)
