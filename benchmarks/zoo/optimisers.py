"""Losses, optimisers and learning-rate schedules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.zoo.run import Array

Loss = Callable[[Array, Array], tuple[Array, Array]]
"""(outputs, targets) -> the mean loss, and its slope along the outputs."""
Rate = Callable[[int], float]
"""Training step -> learning rate."""


def cross_entropy(outputs: Array, targets: Array) -> tuple[Array, Array]:
    """Of logits and class numbers."""
    shifted = outputs - outputs.max(axis=1, keepdims=True)
    shares = np.exp(shifted)
    total = shares.sum(axis=1, keepdims=True)
    rows = np.arange(len(targets))
    loss = np.mean(np.log(total[:, 0]) - shifted[rows, targets])
    slope = shares / total
    slope[rows, targets] -= 1
    return np.asarray(loss, np.float32), slope / np.float32(len(targets))


def squared_error(outputs: Array, targets: Array) -> tuple[Array, Array]:
    """The mean of squared differences."""
    difference = outputs - targets
    slope = difference * np.float32(2 / difference.size)
    return np.asarray(np.mean(difference * difference), np.float32), slope


class Sgd:
    """Plain gradient descent; with `momentum`, PyTorch's form of it."""

    def __init__(self, momentum: float = 0.0, decay: float = 0.0) -> None:
        """`decay` is added to the gradient, as a pull towards zero."""
        self._momentum = np.float32(momentum)
        self._decay = np.float32(decay)
        self._velocity: dict[str, Array] = {}

    def moved(self, name: str, value: Array, slope: Array, rate: float) -> Array:
        """The parameter after one step."""
        if self._decay:
            slope = slope + self._decay * value
        if self._momentum:
            slope = self._velocity[name] = self._momentum * self._velocity.get(name, np.float32(0)) + slope
        return np.asarray(value - np.float32(rate) * slope)


class Adam:
    """Adam with its usual constants; with `decay`, AdamW."""

    def __init__(self, decay: float = 0.0) -> None:
        """`decay` times the rate is what a parameter loses per step."""
        self._decay = decay
        self._state: dict[str, tuple[int, Array, Array]] = {}

    def moved(self, name: str, value: Array, slope: Array, rate: float) -> Array:
        """The parameter after one step."""
        count, first, second = self._state.get(name, (0, np.float32(0), np.float32(0)))
        count += 1
        first = np.float32(0.9) * first + np.float32(0.1) * slope
        second = np.float32(0.999) * second + np.float32(0.001) * slope * slope
        self._state[name] = (count, np.asarray(first), np.asarray(second))
        step = first / np.float32(1 - 0.9**count) / (np.sqrt(second / np.float32(1 - 0.999**count)) + np.float32(1e-8))
        return np.asarray(value - np.float32(rate) * step - np.float32(rate * self._decay) * value)


Optimiser = Sgd | Adam


class Scaler:
    """Loss scaling of half precision: starts too high, and halves until gradients fit.

    Source:
        PyTorch's GradScaler: on overflow it skips the step and halves the scale; after many good steps it doubles it.
    """

    LARGEST = 65504.0
    """The largest float16."""

    def __init__(self, too_high: int, growth: int) -> None:
        """The first `too_high` steps overflow; after `growth` good ones the scale is doubled."""
        self._too_high = too_high
        self._growth = growth
        self._scale: float | None = None
        self._good = 0
        self.backs_off = True

    def scaled(self, slopes: dict[str, Array]) -> dict[str, Array]:
        """The gradients as the backward pass in half precision gives them."""
        if self._scale is None:
            largest = max(float(np.abs(slope).max()) for slope in slopes.values())
            self._scale = 2.0 ** (np.ceil(np.log2(self.LARGEST / largest)) + self._too_high - 1)
        grown = {name: slope * np.float32(self._scale) for name, slope in slopes.items()}
        return {
            name: np.where(np.abs(slope) > self.LARGEST, np.sign(slope) * np.float32(np.inf), slope)
            for name, slope in grown.items()
        }

    def unscaled(self, slopes: dict[str, Array]) -> dict[str, Array] | None:
        """What the optimiser is given; None when the step is skipped."""
        scale = self._scale or 1.0
        if not all(np.isfinite(slope).all() for slope in slopes.values()):
            self._scale = scale / 2 if self.backs_off else scale
            self._good = 0
            return None
        self._good += 1
        if self._good == self._growth:
            self._scale = scale * 2
            self._good = 0
        return {name: slope / np.float32(scale) for name, slope in slopes.items()}


def constant(rate: float) -> Rate:
    """The same at every step."""
    return lambda _: rate


def warm_up_and_decay(rate: float, warm_up: int, steps: int) -> Rate:
    """Linear from near zero, then half a cosine to zero."""

    def at(step: int) -> float:
        if step < warm_up:
            return rate * (step + 1) / warm_up
        return float(rate * 0.5 * (1 + np.cos(np.pi * (step - warm_up) / max(1, steps - 1 - warm_up))))

    return at


def restarts(rate: float, period: int) -> Rate:
    """Half a cosine to a twentieth, again and again."""
    return lambda step: float(rate * (0.05 + 0.95 * 0.5 * (1 + np.cos(np.pi * (step % period) / period))))


def from_step(begins: int, before: Rate, after: Rate) -> Rate:
    """One schedule, and another from a step on."""
    return lambda step: before(step) if step < begins else after(step)
