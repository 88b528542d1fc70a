"""Data sets that can be learnt, and the batches made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.zoo.layers import Random
from benchmarks.zoo.run import Array
from benchmarks.zoo.training import Batch


def clusters(
    random: Random, classes: int, features: int, count: int, *, distance: float = 5.0, shares: Sequence[float] = ()
) -> Batch:
    """Points of several classes, each of two round clouds, standardised.

    Args:
        random: where clouds and points come from.
        classes: how many classes.
        features: how many numbers a point has.
        count: how many points.
        distance: of the centres from the origin, in standard deviations of a cloud; 5 is easy, 1.5 overlaps.
        shares: of the classes; equal when not given.
    """
    centres = random.normal(0, 1, (classes, 2, features))
    centres *= distance / np.linalg.norm(centres, axis=2, keepdims=True)
    y = random.choice(classes, count, p=shares or None)
    x = centres[y, random.integers(0, 2, count)] + random.normal(0, 1, (count, features))
    return ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32), y.astype(np.int64)


def smooth_function(random: Random, features: int, count: int, *, noise: float = 0.1) -> Batch:
    """Points and a smooth function of them, with noise."""
    x = random.normal(0, 1, (count, features))
    first = random.normal(0, 1 / np.sqrt(features), (features, 8))
    y = np.tanh(x @ first) @ random.normal(0, 1, (8, 1))
    y = (y - y.mean()) / y.std() + random.normal(0, noise, y.shape)
    return x.astype(np.float32), y.astype(np.float32)


def linear_function(random: Random, features: int, count: int, *, noise: float = 0.3) -> Batch:
    """Points and a linear function of them, with noise."""
    x = random.normal(0, 1, (count, features))
    y = x @ random.normal(0, 1, (features, 1)) / np.sqrt(features) + random.normal(0, noise, (count, 1))
    return x.astype(np.float32), y.astype(np.float32)


def pictures(random: Random, classes: int, channels: int, side: int, count: int) -> Batch:
    """Pictures of one smooth pattern per class, shifted a little and noisy, with pixels from 0 to 255."""
    rows, columns = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    waves = random.uniform(0.5, 2.0, (classes, channels, 2)) * 2 * np.pi / side
    phases = random.uniform(0, 2 * np.pi, (classes, channels))
    y = random.integers(0, classes, count)
    shifts = random.integers(-1, 2, (count, 2))
    angle = (
        waves[y, :, 0, None, None] * (rows + shifts[:, 0, None, None])[:, None]
        + waves[y, :, 1, None, None] * (columns + shifts[:, 1, None, None])[:, None]
        + phases[y, :, None, None]
    )
    pixels = 110 + 70 * np.sin(angle) + random.normal(0, 25, angle.shape)
    return np.clip(pixels, 0, 255).astype(np.float32), y.astype(np.int64)


def normalised(x: Array) -> Array:
    """Each channel with zero mean and unit variance."""
    axes = (0, 2, 3)
    return np.asarray((x - x.mean(axis=axes, keepdims=True)) / x.std(axis=axes, keepdims=True))


def sentences(random: Random, classes: int, tokens: int, length: int, count: int, *, shortest: int) -> Batch:
    """Token sequences with words of their class among common ones, padded with zeros at the end."""
    y = random.integers(0, classes, count)
    x = random.integers(1 + 3 * classes, tokens, (count, length))
    own = 1 + 3 * y[:, None] + random.integers(0, 3, (count, length))
    x = np.where(random.random((count, length)) < 0.35, own, x)
    ends = random.integers(shortest, length + 1, count)
    x[np.arange(length)[None] >= ends[:, None]] = 0
    return x.astype(np.int64), y.astype(np.int64)


def split(data: Batch, validation: int) -> tuple[Batch, Batch]:
    """The first part to train on, the last `validation` examples to validate on."""
    x, y = data
    return (x[:-validation], y[:-validation]), (x[-validation:], y[-validation:])


def cut(data: Batch, parts: int) -> list[Batch]:
    """The batches of one validation pass."""
    x, y = data
    return list(zip(np.array_split(x, parts), np.array_split(y, parts), strict=True))


def batches(random: Random, data: Batch, size: int, steps: int, workers: int = 1) -> Callable[[int, int], Batch]:
    """Shuffled anew in every epoch; the workers of a step share out its examples."""
    x, y = data
    needed = steps * size * workers
    order = np.concatenate([random.permutation(len(x)) for _ in range(-(-needed // len(x)))])

    def at(step: int, worker: int) -> Batch:
        first = (step * workers + worker) * size
        chosen = order[first : first + size]
        return x[chosen], y[chosen]

    return at
