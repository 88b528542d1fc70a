"""Faults of the learning rate and of the optimiser: weights that stand still, go the wrong way, or fly off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.zoo.evidence import before, ends, loss, mean_abs, movement, since, validation_loss
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.layers import Random
from benchmarks.zoo.optimisers import constant, from_step
from benchmarks.zoo.programs import ADAM, MOMENTUM, Shape, classifier, middle, regression
from benchmarks.zoo.run import Run
from benchmarks.zoo.training import Network, Program, train
from evaluator.modes import Mode

BLOCKS = replace(Shape(), blocks=(3, 4))


def _rate(rate: float, shape: Shape = BLOCKS) -> Callable[[Random], Run]:
    def record(random: Random) -> Run:
        program = classifier(random, shape)
        program.rate, program.begins = constant(rate), 0
        return train(program, random)

    return record


def _rate_later(factor: float, shape: Shape = BLOCKS) -> Callable[[Random], Run]:
    """From the middle on the rate is multiplied."""

    def record(random: Random) -> Run:
        program = classifier(random, shape)
        program.begins = middle(random, program.steps)
        program.rate = from_step(program.begins, program.rate, constant(factor * program.rate(0)))
        return train(program, random)

    return record


def _regression_rate(rate: float) -> Callable[[Random], Run]:
    def record(random: Random) -> Run:
        program = regression(random, replace(BLOCKS, save_every=(1, 1)))
        program.rate, program.begins = constant(rate), 0
        return train(program, random)

    return record


def _slow_divergence(random: Random) -> Run:
    """From two fifths on every update is rounded coarsely, as in too short a number format, and the errors add up."""
    program = regression(
        random, replace(Shape(), save_every=(2, 3), blocks=(1, 2), shown=(70, 90), width=(24, 40), rate=(0.02, 0.04))
    )
    begins = program.begins = int(program.steps * 0.4)
    program.rate = from_step(begins, program.rate, constant(0.02 * program.rate(0)))
    share = 0.8 / np.sqrt(program.steps)

    def rounded(network: Network, step: int, _: int) -> None:
        if step >= begins:
            for name, value in network.parameters().items():
                error = random.normal(0, share * float(np.abs(value).mean()), value.shape)
                network.put(name, value + error.astype(np.float32))

    program.tamper = rounded
    return train(program, random)


def _held(program: Program, begins: int) -> None:
    program.begins = begins
    program.moves = lambda name, step: step < begins or "block1" not in name


def _frozen_layer(random: Random) -> Run:
    """The optimiser was made before the layer was replaced."""
    program = classifier(random, replace(ADAM, blocks=(3, 4)))
    _held(program, 0)
    return train(program, random)


def _frozen_layer_later(random: Random) -> Run:
    program = classifier(random, replace(MOMENTUM, blocks=(3, 4)))
    _held(program, middle(random, program.steps))
    return train(program, random)


def _still(pattern: str = "block1", most: float = 0.0) -> Callable[[Run], None]:
    """The weights do not move from the fault on, though there are gradients; they moved before."""

    def proof(run: Run) -> None:
        for name in run.names(f"^MLP.*{pattern}.*weight"):
            assert movement(since(run, name, Mode.TRAIN)[1:]).max() <= most
            assert mean_abs(since(run, f"gradient/{name}")).min() > 1e-7
            assert not run.begins or movement(before(run, name, Mode.TRAIN)).min() > 1e-7

    return proof


def _proof_stuck(run: Run) -> None:
    """The loss ends far above where it began, or is not finite."""
    series = loss(run, Mode.TRAIN)
    first = np.mean(series[:1])
    assert not np.isfinite(series).all() or ends(series)[1] > 0.9 * first, f"{first} -> {ends(series)[1]}"


def _proof_jumped(run: Run) -> None:
    name = run.names("Loss_output")[0]
    old = float(np.mean(before(run, name, Mode.TRAIN)[-5:]))
    new = np.array(since(run, name, Mode.TRAIN), dtype=float)
    assert not np.isfinite(new).all() or np.mean(new[-10:]) > 3 * old, f"{old} -> {np.mean(new[-10:])}"


def _proof_blows_up(run: Run) -> None:
    series = loss(run, Mode.TRAIN)
    assert not np.isfinite(series).all()
    assert np.isfinite(series[0])


def _proof_ascent(run: Run) -> None:
    series = loss(run, Mode.TRAIN)
    assert not np.isfinite(series).all() or ends(series)[1] > 2 * ends(series)[0], f"{series}"


def _proof_slow(run: Run) -> None:
    """It rises by a third at least, but never to the triple within five saved steps."""
    validation = validation_loss(run)
    assert np.mean(validation[-3:]) > 1.3 * validation.min(), f"{validation}"
    new = np.array(since(run, "MSELoss_output_0", Mode.TRAIN), dtype=float)
    smooth = np.convolve(new, np.ones(5) / 5, "valid")
    assert (smooth[5:] / smooth[:-5]).max() < 3, f"{(smooth[5:] / smooth[:-5]).max()}"
    assert np.isfinite(new).all()


FLAT = ("LossNotDecreasing", "MetricFlat", "Overtraining", "Confusion", "ClassImbalance")
STILL = ("NotLearning", "UnchangedTensor", "WeightUpdateRatio")
WEIGHT = r"^MLP_.*(weight|bias)$"
WILD = (
    "WeightUpdateRatio", "LossSpike", "LossDiverging", "LossNotDecreasing", "NonFinite", "ExplodingTensor",
)  # fmt: skip
BESIDE_WILD = (
    "VanishingGradient", "DeadRelu", "AllZero", "PoorWeightInitialization", "TensorVariance", "Overfit", "Overtraining",
    "MetricFlat", "Confusion", "ClassImbalance", "UnchangedTensor", "NotLearning",
)  # fmt: skip

KINDS = (
    Kind(
        "rate-zero",
        "learning rate 0",
        _rate(0.0),
        _still("block"),
        Fault(STILL, (*FLAT, "PoorWeightInitialization"), tensor=WEIGHT),
    ),
    Kind(
        "rate-zero-later",
        "learning rate 0 from the middle on",
        _rate_later(0.0),
        _still("block"),
        Fault(STILL, FLAT, tensor=WEIGHT),
    ),
    Kind(
        "rate-tiny",
        "learning rate 1e-9 with Adam",
        _rate(1e-9, replace(ADAM, blocks=(3, 4))),
        _still("block", 1e-7),
        Fault(STILL, (*FLAT, "PoorWeightInitialization"), tensor=WEIGHT),
    ),
    Kind(
        "rate-huge-adam",
        "learning rate 30 with Adam",
        _rate(30.0, replace(ADAM, blocks=(3, 4))),
        _proof_stuck,
        Fault(WILD, BESIDE_WILD),
    ),
    Kind("rate-huge-sgd", "learning rate 30 with SGD", _rate(30.0), _proof_stuck, Fault(WILD, BESIDE_WILD)),
    Kind(
        "rate-huge-regression",
        "learning rate 8, squared error: overflows",
        _regression_rate(8.0),
        _proof_blows_up,
        Fault(WILD, BESIDE_WILD),
    ),
    Kind(
        "rate-jumps",
        "from the middle on the rate of Adam is 300 times as high",
        _rate_later(300, replace(ADAM, blocks=(3, 4))),
        _proof_jumped,
        Fault(WILD, BESIDE_WILD),
    ),
    Kind(
        "ascent",
        "the sign of the loss is wrong",
        _rate(-0.016, replace(Shape(), blocks=(2, 3), save_every=(2, 3))),
        _proof_ascent,
        Fault(
            ("LossDiverging", "LossNotDecreasing", "LossSpike"),
            (*BESIDE_WILD, "NonFinite", "ExplodingTensor", "WeightUpdateRatio"),
        ),
    ),
    Kind(
        "slow-divergence",
        "from two fifths on weights are rounded too coarsely: the loss creeps up",
        _slow_divergence,
        _proof_slow,
        Fault(("LossDiverging", "LossNotDecreasing"), ("Overfit", "Overtraining", "MetricFlat")),
    ),
    Kind(
        "frozen-layer",
        "one layer has gradients and is not moved",
        _frozen_layer,
        _still(),
        Fault(STILL, tensor=r"MLP_block1\."),
    ),
    Kind(
        "frozen-layer-later",
        "the same from the middle on",
        _frozen_layer_later,
        _still(),
        Fault(STILL, tensor=r"MLP_block1\."),
    ),
)
