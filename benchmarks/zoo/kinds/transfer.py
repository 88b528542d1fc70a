"""Healthy: programs that start from trained weights and train a part of them only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.zoo.data import batches, clusters, cut, split
from benchmarks.zoo.evidence import learns, loss, movement, validation_loss
from benchmarks.zoo.kind import Kind
from benchmarks.zoo.layers import Dense, Lora, Random
from benchmarks.zoo.optimisers import Adam, constant
from benchmarks.zoo.programs import ADAM, Shape, between, stack, whole
from benchmarks.zoo.run import Array, Run
from benchmarks.zoo.training import Network, Program, train
from evaluator.modes import Mode

SHAPE = replace(ADAM, blocks=(2, 3), width=(24, 32))


def _program(random: Random, network: Network, x: Array, y: Array, rate: tuple[float, float], shape: Shape) -> Program:
    training, validation = split((x, y), 256)
    save_every = whole(random, shape.save_every)
    steps = whole(random, shape.shown) * save_every
    return Program(
        network,
        batches(random, training, whole(random, shape.batch), steps),
        cut(validation, 1),
        steps,
        constant(between(random, rate)),
        optimiser=Adam(),
        save_every=save_every,
        eval_every=steps // shape.passes,
    )


def _trained(random: Random) -> tuple[Network, Array, Array, int]:
    """A network that was trained on many classes, and new points, as yet without labels for the next task."""
    classes = whole(random, (6, 8))
    x, y = clusters(random, classes, whole(random, (10, 16)), 2600)
    network = stack(random, SHAPE, x.shape[1], classes)
    train(_program(random, network, x[:1300], y[:1300], (3e-3, 6e-3), replace(SHAPE, save_every=(4, 4))), random)
    return network, x[1300:], y[1300:], classes


def _frozen_backbone(random: Random) -> Run:
    """A new head learns to tell pairs of the old classes."""
    network, x, y, classes = _trained(random)
    width = network.layers[-1].values["weight"].shape[1]
    network.layers[-1] = Dense("head", random, width, (classes + 1) // 2)
    program = _program(random, network, x, y // 2, (0.01, 0.02), SHAPE)
    program.trains = lambda name: "head" in name
    return train(program, random)


def _lora(random: Random) -> Run:
    """The old classes have other numbers now; low-rank factors in all layers learn that."""
    network, x, y, classes = _trained(random)
    renamed = random.permutation(classes)
    network.layers = [
        Lora(layer.name, random, layer, 6) if isinstance(layer, Dense) else layer for layer in network.layers
    ]
    program = _program(random, network, x, renamed[y], (3e-3, 6e-3), replace(SHAPE, batch=(48, 64), save_every=(4, 7)))
    program.trains = lambda name: "lora" in name
    return train(program, random)


def _fine_tuning(random: Random) -> Run:
    """The same task on shifted points: the loss is small at once, and falls slowly."""
    network, x, y, _ = _trained(random)
    shifted = (x + random.normal(0, 0.5, x.shape[1])).astype(np.float32)
    program = _program(random, network, shifted, y, (2e-4, 4e-4), replace(SHAPE, batch=(48, 64), save_every=(4, 6)))
    return train(program, random)


def _proof_frozen(run: Run) -> None:
    learns(accuracy=0.85)(run)
    assert run.names("^gradient") == ["gradient/MLP_head.bias", "gradient/MLP_head.weight"]
    assert movement(run.values("MLP_block0.fc.weight", Mode.TRAIN)).max() == 0


def _proof_lora(run: Run) -> None:
    learns(accuracy=0.85, rise=1.5)(run)
    assert not run.values("MLP_head.lora_B.weight")[0].any()
    assert not run.values("gradient/MLP_head.lora_A.weight")[0].any()


def _proof_fine_tuning(run: Run) -> None:
    assert loss(run, Mode.TRAIN)[:3].mean() < 1.2
    validation = validation_loss(run)
    assert validation[-1] < 0.95 * validation[0]
    assert validation[-1] < 1.05 * validation.min()
    assert run.series("scalar/accuracy")[-1] > 0.75


KINDS = (
    Kind(
        "frozen-backbone", "only the head trains; no gradients are saved for the rest", _frozen_backbone, _proof_frozen
    ),
    Kind("lora", "low-rank factors, the second of which starts at zero", _lora, _proof_lora, variant=True),
    Kind(
        "fine-tuning",
        "a small rate from trained weights: the loss falls slowly",
        _fine_tuning,
        _proof_fine_tuning,
        variant=True,
    ),
)
