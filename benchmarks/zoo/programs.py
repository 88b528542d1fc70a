"""The programs that several families start from: a classifier and a regression of dense layers, varied by seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.zoo.data import batches, clusters, cut, smooth_function, split
from benchmarks.zoo.layers import Dense, Dropout, Gelu, Layer, Random, Relu, Sigmoid, Tanh
from benchmarks.zoo.optimisers import Adam, Optimiser, Sgd, constant, squared_error
from benchmarks.zoo.run import Run
from benchmarks.zoo.training import Batch, Network, Program, train

ACTIVATIONS: dict[str, type[Layer]] = {"relu": Relu, "tanh": Tanh, "sigmoid": Sigmoid, "gelu": Gelu}
GAINS = {"relu": 2.4, "tanh": 1.7, "sigmoid": 3.0, "gelu": 2.4}
"""Times 1/sqrt(inputs): what keeps the size of activations from layer to layer (He, Glorot)."""


@dataclass(frozen=True)
class Shape:
    """What a seed chooses between; each pair is a lowest and a highest value."""

    activation: str = "relu"
    optimiser: Callable[[], Optimiser] = Sgd
    rate: tuple[float, float] = (0.05, 0.15)
    blocks: tuple[int, int] = (2, 4)
    width: tuple[int, int] = (16, 32)
    classes: tuple[int, int] = (3, 6)
    distance: float = 6.0
    batch: tuple[int, int] = (24, 64)
    shown: tuple[int, int] = (32, 50)
    """How many training steps are saved."""
    save_every: tuple[int, int] = (3, 5)
    examples: tuple[int, int] = (1000, 1600)
    passes: int = 8
    """About how many validation passes there are."""
    gain: float | None = None
    dropout: float = 0.0
    workers: int = 1


ADAM = Shape(optimiser=Adam, rate=(3e-3, 8e-3))
MOMENTUM = Shape(optimiser=lambda: Sgd(0.9), rate=(0.01, 0.03))


def whole(random: Random, limits: tuple[int, int]) -> int:
    """A whole number within limits, both of them possible."""
    return int(random.integers(limits[0], limits[1] + 1))


def between(random: Random, limits: tuple[float, float]) -> float:
    """A number within limits, as often in one doubling as in another."""
    low, high = np.log(limits)
    return float(np.exp(random.uniform(low, high)))


def middle(random: Random, steps: int) -> int:
    """A step in the middle third of a run."""
    return whole(random, (steps * 2 // 5, steps * 3 // 5))


def stack(random: Random, shape: Shape, inputs: int, outputs: int) -> Network:
    """Blocks of a dense layer and an activation, and a head."""
    width = whole(random, shape.width)
    gain = GAINS[shape.activation] if shape.gain is None else shape.gain
    layers: list[Layer] = []
    for number in range(whole(random, shape.blocks)):
        layers.append(Dense(f"block{number}.fc", random, inputs, width, gain))
        layers.append(ACTIVATIONS[shape.activation](f"block{number}.{shape.activation}"))
        if shape.dropout:
            layers.append(Dropout(f"block{number}.dropout", random, shape.dropout))
        inputs = width
    return Network("MLP", [*layers, Dense("head", random, inputs, outputs)])


def classifier(random: Random, shape: Shape, change: Callable[[Batch], Batch] = lambda data: data) -> Program:
    """Learns clusters of points; `change` is given all the data before it is split."""
    classes = whole(random, shape.classes)
    features = whole(random, (8, 20))
    data = change(clusters(random, classes, features, whole(random, shape.examples) + 256, distance=shape.distance))
    return _program(random, shape, stack(random, shape, features, classes), data)


def regression(random: Random, shape: Shape, noise: float = 0.1) -> Program:
    """Learns a smooth function of points."""
    features = whole(random, (4, 10))
    data = smooth_function(random, features, whole(random, shape.examples) + 256, noise=noise)
    program = _program(random, shape, stack(random, shape, features, 1), data)
    program.loss = squared_error
    program.loss_name = "MSELoss_output_0"
    return program


def _program(random: Random, shape: Shape, network: Network, data: Batch) -> Program:
    training, validation = split(data, 256)
    save_every = whole(random, shape.save_every)
    steps = whole(random, shape.shown) * save_every
    return Program(
        network,
        batches(random, training, whole(random, shape.batch), steps, shape.workers),
        cut(validation, whole(random, (1, 2))),
        steps,
        constant(between(random, shape.rate)),
        optimiser=shape.optimiser(),
        save_every=save_every,
        eval_every=max(1, steps // shape.passes),
        workers=shape.workers,
        seconds=between(random, (0.05, 2.0)),
    )


def from_start(shape: Shape, change: Callable[[Network], None] = lambda _: None) -> Callable[[Random], Run]:
    """`change` is given the network before the first step."""

    def record(random: Random) -> Run:
        program = classifier(random, shape)
        program.begins = 0
        change(program.network)
        return train(program, random)

    return record


def from_middle(shape: Shape, change: Callable[[Network], None]) -> Callable[[Random], Run]:
    """`change` is given the network at a step in the middle: one update that went wrong."""

    def record(random: Random) -> Run:
        program = classifier(random, shape)
        program.begins = begins = middle(random, program.steps)

        def once(network: Network, step: int, _: int) -> None:
            if step == begins:
                change(network)

        program.tamper = once
        return train(program, random)

    return record
