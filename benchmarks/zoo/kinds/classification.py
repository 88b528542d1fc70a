"""Healthy: dense classifiers with several activations and optimisers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.zoo.evidence import learns, validation_loss
from benchmarks.zoo.kind import Kind
from benchmarks.zoo.layers import Random
from benchmarks.zoo.optimisers import Adam
from benchmarks.zoo.programs import ADAM, MOMENTUM, Shape, classifier
from benchmarks.zoo.run import Run
from benchmarks.zoo.training import train
from evaluator.modes import Mode


def _of(shape: Shape) -> Callable[[Random], Run]:
    return lambda random: train(classifier(random, shape), random)


def _converges(run: Run) -> None:
    learns(accuracy=0.97)(run)
    end = float(np.mean(run.series("CrossEntropyLoss_output_0", Mode.TRAIN)[-5:]))
    assert end < 0.03, f"training loss {end:.4g}"
    assert validation_loss(run)[-1] < 0.15


KINDS = (
    Kind("relu-sgd", "dense, ReLU, SGD", _of(Shape()), learns(accuracy=0.85)),
    Kind("relu-adam", "dense, ReLU, Adam", _of(ADAM), learns(accuracy=0.85)),
    Kind("tanh-momentum", "dense, tanh, momentum", _of(replace(MOMENTUM, activation="tanh")), learns(accuracy=0.85)),
    Kind(
        "sigmoid-adam",
        "dense, one or two sigmoid layers, Adam",
        _of(replace(ADAM, activation="sigmoid", blocks=(1, 2), rate=(0.01, 0.03))),
        learns(accuracy=0.85),
    ),
    Kind(
        "gelu-adam",
        "dense, GELU, AdamW",
        _of(replace(ADAM, activation="gelu", optimiser=lambda: Adam(0.01))),
        learns(accuracy=0.85),
    ),
    Kind(
        "converged",
        "an easy problem, trained until the loss is near zero",
        _of(replace(ADAM, distance=9.0, rate=(0.01, 0.02), save_every=(8, 9), shown=(40, 50), blocks=(2, 3))),
        _converges,
    ),
    Kind(
        "noisy-batches",
        "batches of 2 to 4 examples, so a noisy loss",
        _of(replace(Shape(), batch=(2, 4), rate=(0.02, 0.03), save_every=(14, 18), shown=(40, 50), blocks=(2, 3))),
        learns(accuracy=0.85, rise=1.4),
    ),
    Kind(
        "overlapping-classes",
        "classes that overlap: the loss levels off far above zero, accuracy far below 1",
        _of(replace(Shape(), distance=2.3, classes=(3, 4), examples=(4000, 5000), rate=(0.03, 0.06), blocks=(1, 2))),
        learns(accuracy=0.55, fall=0.85),
    ),
    Kind(
        "dropout",
        "dense, ReLU, half of the units dropped",
        _of(replace(ADAM, dropout=0.4, width=(32, 48), blocks=(2, 3), save_every=(6, 7))),
        learns(accuracy=0.85),
        variant=True,
    ),
)
