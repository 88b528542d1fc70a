"""What can be wrong with a model at its first steps; each check looks at the values that one step adds to a window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from builtin_rules.losses._losses import falling
from evaluator.rule import Measure, Met, Selection, Tensor, Window
from evaluator.segments import Array, Bools

Indices = NDArray[np.int64]

ALIKE = 1e-4
"""Units of a weight are the same within this part of its largest element: what rounding leaves of it in training."""


@dataclass(frozen=True)
class Check:
    """One of the checks: what it looks at, and whether a step's values meet it."""

    of: Selection
    by: str | Measure
    meets: Callable[[Window, Bools], Met | None]


def gradient_range(gradient: Array, _: Tensor) -> float:
    """From the 5th to the 95th percentile of its elements."""
    low, high = np.percentile(gradient.astype(np.float64, copy=False), (5, 95))
    return float(high - low)


DIFFERENT, SAME, ZERO = 0.0, 1.0, 2.0


def units_alike(weight: Array, _: Tensor) -> float:
    """Whether all units are the same, or all of it is zero; NaN for a weight without units.

    Our choice: the units are the rows (PyTorch) or the last axis (TensorFlow) of a weight of two or more axes. Filters
    that each have one channel of their own are left alone: bilinear ones are the same on purpose.
    """
    if weight.ndim < 2:
        return float("nan")
    size = float(np.abs(weight).max())
    if size == 0:
        return ZERO
    if weight.ndim > 2 and weight.shape[1] == 1:
        return DIFFERENT
    axes = [axis for axis in {0, weight.ndim - 1} if weight.shape[axis] > 1]
    return SAME if any(_same(np.moveaxis(weight, axis, 0), ALIKE * size) for axis in axes) else DIFFERENT


def _same(units: Array, tolerance: float) -> bool:
    """Whether all are like the first one; the second mostly tells."""
    units = units.astype(np.float64, copy=False)
    return all(bool((np.abs(units[1:last] - units[0]) <= tolerance).all()) for last in (2, len(units)))


RANGE = Measure(gradient_range, each=True, kinds="fiu")
SAME_UNITS = Measure(units_alike, each=True, kinds="f")


def unequal(inputs: Window, now: Bools, *, least_variance: float, threshold: float) -> Met | None:
    """The layers with the smallest and the largest variance, where they are too far apart.

    Our choice: the variance is that of all elements of an activation input, and layers are compared within one worker.
    Any variance is infinitely larger than zero; a single layer is compared with nothing.
    """
    variance = np.where(now & (inputs.values[-1] >= least_variance), inputs.values[-1], np.nan)
    ratios = np.zeros(len(variance))
    for columns in _of_each_worker(inputs, ~np.isnan(variance)):
        low, high = columns[np.argmin(variance[columns])], columns[np.argmax(variance[columns])]
        if variance[high] > 0:
            ratios[[low, high]] = variance[high] / variance[low] if variance[low] > 0 else np.inf
    met = ratios > threshold
    if not met.any():
        return None
    message = "the variances of the activation inputs differ by a factor of {measured}, more than {limit}"
    each = {"variance": variance, "check": np.full(len(variance), "variance of activation inputs")}
    return inputs.met(met, measured=ratios, limit=threshold, of=int(now.sum()), message=message, each=each)


def narrow(gradients: Window, now: Bools, *, least_range: float) -> Met | None:
    """The gradients that spread too little.

    Our choice: each tensor of the collection is judged by itself, also one of a single element, which spreads by zero.
    """
    met = now & (gradients.values[-1] < least_range)
    if not met.any():
        return None
    message = "the middle 90 % of the gradient spread over {measured}, less than {limit}, in {tensors} of {of} tensors"
    details = {"check": "range of gradients"}
    return gradients.met(met, limit=least_range, of=int(now.sum()), message=message, details=details)


def stuck(losses: Window, now: Bools, *, patience: int) -> Met | None:
    """The losses, where the best one is `patience` saved steps old.

    Our choice: the loss of a step is the mean over all losses saved there that are single numbers and should fall, of
    all workers; one as low as the best one so far is no fall, and neither is NaN.
    """
    usable = losses.saved & (losses.values[..., 1] == 1) & falling(losses.columns)
    rows = usable.any(axis=1)
    if not (usable[-1] & now).any():
        return None
    sums = np.where(usable, losses.values[..., 0], 0.0).sum(axis=1)[rows]
    mean = sums / usable.sum(axis=1)[rows]
    best = int(np.argmin(np.where(np.isnan(mean), np.inf, mean)))
    since = len(mean) - 1 - best
    if since < patience:
        return None
    message = "the loss has not fallen for {measured} saved steps from the start, where {limit} are the most"
    measured = np.full(len(losses.columns), float(since))
    details = {"check": "fall of the loss", "loss": float(mean[-1]), "best_loss": float(mean[best])}
    return losses.met(usable[-1], measured=measured, limit=float(patience), message=message, details=details)


def alike(weights: Window, now: Bools) -> Met | None:
    """The weights whose units are the same.

    Our choice: zero weights count only where all of a worker's weights are zero, and there are several: adapters,
    residual branches and heads often start there, and a model of one layer can.
    """
    found = weights.values[-1]
    met = now & (found == SAME)
    for columns in _of_each_worker(weights, now & ~np.isnan(found)):
        if len(columns) > 1 and (found[columns] == ZERO).all():
            met[columns] = True
    if not met.any():
        return None
    message = "all units have the same weights, so they stay the same, in {tensors} of {of} weights"
    details = {"check": "units alike"}
    return weights.met(met, limit=0.0, of=int(now.sum()), message=message, details=details)


def _of_each_worker(window: Window, there: Bools) -> list[Indices]:
    """The columns of each worker that are there."""
    workers = np.array([column.worker for column in window.columns])
    return [np.flatnonzero(there & (workers == worker)) for worker in np.unique(workers[there])]
