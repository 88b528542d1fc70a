"""What proofs measure: plain numpy over the saved arrays, never a rule."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from benchmarks.zoo.run import Array, Run
from evaluator.modes import Mode

LOSS = "Loss_output_0"


def ends(series: Array, share: float = 0.1) -> tuple[float, float]:
    """The means of the first and of the last values of a series, a tenth of it each."""
    count = max(1, round(len(series) * share))
    return float(np.mean(series[:count])), float(np.mean(series[-count:]))


def loss(run: Run, mode: Mode, worker: int = 0) -> Array:
    """The saved losses of a mode."""
    return run.series(run.names(LOSS)[0], mode, worker)


def validation_loss(run: Run) -> Array:
    """The mean loss of each validation pass: batches that follow each other at once."""
    points = [(step, float(value)) for step, value in run.at(run.names(LOSS)[0], Mode.EVAL)]
    passes: list[list[float]] = []
    for number, (step, value) in enumerate(points):
        if number and step == points[number - 1][0] + 1:
            passes[-1].append(value)
        else:
            passes.append([value])
    return np.array([np.mean(values) for values in passes])


def finite(run: Run, pattern: str = "") -> bool:
    """Whether everything saved under such names is finite."""
    return all(
        np.isfinite(value).all()
        for saved in run.saved
        for name, value in saved.values.items()
        if value.dtype.kind == "f"
        and not name.startswith("trees/")
        and any(name == found for found in run.names(pattern))
    )


def learns(*, accuracy: float = 0.0, fall: float = 0.5, rise: float = 1.25) -> Callable[[Run], None]:
    """A healthy run.

    Args:
        accuracy: the least accuracy on validation data at the end.
        fall: the most that is left of training and validation loss at the end, as a share of the start.
        rise: the most by which the last validation loss is above the best one, or 0.05 above it.
    """

    def proof(run: Run) -> None:
        training, validation = loss(run, Mode.TRAIN), validation_loss(run)
        # in a steep start the first value alone is the start
        start = float(training[:3].max())
        for name, end in (("training", ends(training)[1]), ("validation", ends(validation)[1])):
            assert end < fall * start, f"{name} loss {start:.4g} -> {end:.4g}"
        assert validation[-1] < max(rise * validation.min(), validation.min() + 0.05), f"validation {validation}"
        if accuracy:
            reached = run.series("scalar/accuracy")[-1]
            assert reached >= accuracy, f"accuracy {reached:.3f}"
        assert len(run.steps) >= 30, f"{len(run.steps)} steps saved"

    return proof


def before(run: Run, name: str, mode: Mode | None = None, worker: int = 0) -> list[Array]:
    """The values of a tensor before the fault."""
    assert run.begins is not None
    return [value for step, value in run.at(name, mode, worker) if step < run.begins]


def since(run: Run, name: str, mode: Mode | None = None, worker: int = 0) -> list[Array]:
    """The values of a tensor from the fault on."""
    assert run.begins is not None
    return [value for step, value in run.at(name, mode, worker) if step >= run.begins]


def mean_abs(values: list[Array]) -> Array:
    """Mean |x| of each value."""
    return np.array([np.abs(value.astype(np.float64)).mean() for value in values])


def movement(values: list[Array]) -> Array:
    """Mean |change| from each value to the next, over mean |value|."""
    return np.array([np.abs(new - old).mean() / (np.abs(old).mean() + 1e-30) for old, new in pairwise(values)])


def vanished(pattern: str, most: float = 1e-7) -> Callable[[Run], None]:
    """Mean |gradient| of the first block is below `most` from the fault on, and was not before."""

    def proof(run: Run) -> None:
        (name,) = run.names(pattern)
        assert mean_abs(since(run, name)).max() < most, f"{mean_abs(since(run, name)).max()}"
        assert not run.begins or mean_abs(before(run, name)).min() > 100 * most

    return proof
