"""Small convolutional networks; the faults are pictures that nobody normalised."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.zoo.data import batches, cut, normalised, pictures, split
from benchmarks.zoo.evidence import before, learns, since
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.layers import Dense, Layer, Random, Relu
from benchmarks.zoo.optimisers import Adam, constant
from benchmarks.zoo.programs import between, middle, whole
from benchmarks.zoo.run import Array, Run
from benchmarks.zoo.structure import Conv, Flatten, Pool
from benchmarks.zoo.training import Batch, Network, Program, train

GLUON, TORCH = "hybridsequential0", "ConvNet"
"""The first module as MXNet's Gluon numbers it (which the hosted rule looks for), and as PyTorch names it."""


class Entry(Layer):
    """The whole network's input, saved under the name of the outermost module."""

    saves = ("input",)


def _program(random: Random, module: str, prepare: Callable[[Array], Array]) -> Program:
    channels, side, classes = whole(random, (2, 3)), 8, whole(random, (3, 4))
    x, y = pictures(random, classes, channels, side, 1328)
    training, validation = split((prepare(x), y), 128)
    filters, save_every, shown = whole(random, (6, 8)), 3, whole(random, (30, 36))
    inner: list[Layer] = []
    for number, (inputs, outputs) in enumerate(((channels, filters), (filters, 2 * filters))):
        inner += [Conv(f"conv{number}", random, inputs, outputs), Relu(f"relu{number}.relu"), Pool(f"pool{number}")]
    layers = [
        Entry(module),
        *inner,
        Flatten("flatten"),
        Dense("head", random, 2 * filters * side * side // 16, classes),
    ]
    return Program(
        Network("ConvNet", layers),
        batches(random, training, whole(random, (24, 40)), shown * save_every),
        cut(validation, 2),
        shown * save_every,
        constant(between(random, (5e-3, 1e-2))),
        optimiser=Adam(),
        save_every=save_every,
        eval_every=shown * save_every // 5,
    )


def _healthy(module: str) -> Callable[[Random], Run]:
    return lambda random: train(_program(random, module, normalised), random)


def _raw(module: str, scale: float) -> Callable[[Random], Run]:
    """Pixels as they come, divided by `scale`."""

    def record(random: Random) -> Run:
        program = _program(random, module, lambda x: np.asarray(x / np.float32(scale)))
        program.begins = 0
        return train(program, random)

    return record


def _raw_from_the_middle(random: Random) -> Run:
    """A second data shard, prepared by other code: the training batches are not normalised any more."""
    program = _program(random, TORCH, normalised)
    program.begins, data = middle(random, program.steps), program.data

    def shifted(step: int, worker: int) -> Batch:
        x, y = data(step, worker)
        return (x, y) if step < (program.begins or 0) else (x * np.float32(0.5) + np.float32(1.7), y)

    program.data = shifted
    return train(program, random)


def _means(values: list[Array]) -> float:
    return float(np.mean([np.abs(value.mean(axis=(0, 2, 3))).max() for value in values]))


def _proof_raw(run: Run) -> None:
    (name,) = run.names("^(hybridsequential0|ConvNet)_input_0$")
    assert _means(since(run, name)) > 0.3
    assert sum(len(value) for value in run.values(name)) >= 500
    if run.begins:
        assert _means(before(run, name)) < 0.3


CONSEQUENCES = (
    "PoorWeightInitialization", "WeightUpdateRatio", "LossSpike", "LossDiverging", "LossNotDecreasing", "DeadRelu",
    "ClassImbalance", "Confusion", "MetricFlat", "VanishingGradient", "TensorVariance", "Overfit", "Overtraining",
)  # fmt: skip

KINDS = (
    Kind(
        "convolutions",
        "small convolutional network, normalised pictures",
        _healthy(TORCH),
        learns(accuracy=0.8, fall=0.6),
    ),
    Kind(
        "convolutions-gluon",
        "the same, input named as by Gluon",
        _healthy(GLUON),
        learns(accuracy=0.8, fall=0.6),
        variant=True,
    ),
    Kind(
        "pictures-in-bytes",
        "pixels from 0 to 255, input named as by Gluon",
        _raw(GLUON, 1.0),
        _proof_raw,
        Fault(("CheckInputImages",), CONSEQUENCES, tensor="_input_0$"),
    ),
    Kind(
        "pictures-from-0-to-1",
        "pixels divided by 255 and not centred, input named as by PyTorch",
        _raw(TORCH, 255.0),
        _proof_raw,
        Fault(("CheckInputImages",), CONSEQUENCES, tensor="_input_0$"),
    ),
    Kind(
        "pictures-shifted-later",
        "from the middle on the pictures are not normalised, input named as by PyTorch",
        _raw_from_the_middle,
        _proof_raw,
        Fault(("CheckInputImages",), CONSEQUENCES, tensor="_input_0$"),
    ),
)
