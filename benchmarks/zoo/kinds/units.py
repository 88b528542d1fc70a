"""Faults of layers: units that are dead or saturated, gradients that vanish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.zoo.consequences import FLAT, INITIAL, NO_GRADIENT, SHAKEN
from benchmarks.zoo.evidence import before, mean_abs, since, vanished
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.layers import Random
from benchmarks.zoo.optimisers import Sgd
from benchmarks.zoo.programs import ADAM, Shape, classifier, from_middle, from_start, middle
from benchmarks.zoo.run import Run
from benchmarks.zoo.training import Batch, Network, Slopes, train
from evaluator.modes import Mode

DEEP = replace(Shape(), blocks=(9, 11), width=(12, 20), passes=6, shown=(36, 50), rate=(0.02, 0.05))
BLOCKS = replace(Shape(), blocks=(3, 4))


def _kill(network: Network) -> None:
    bias = network.layer("block1.fc").values
    bias["bias"] = bias["bias"] - np.float32(60)


def _blow_up(network: Network) -> None:
    values = network.layer("block1.fc").values
    values["weight"] = values["weight"] * np.float32(3000)


def _raw_features(random: Random) -> Run:
    """Features in their own units, thousands of times larger than what tanh can take."""

    def raw(data: Batch) -> Batch:
        return data[0] * np.float32(4000) + np.float32(1000), data[1]

    program = classifier(random, replace(ADAM, activation="tanh", blocks=(2, 3)), raw)
    program.begins = 0
    return train(program, random)


def _detached(begins: Callable[[Random, int], int]) -> Callable[[Random], Run]:
    """No gradient gets to the first block: it was computed without one."""

    def record(random: Random) -> Run:
        program = classifier(random, replace(ADAM, blocks=(3, 4)))
        start = program.begins = begins(random, program.steps)

        def cut(slopes: Slopes, step: int, _: int) -> None:
            for name in slopes:
                if step >= start and "block0" in name:
                    slopes[name] = np.zeros_like(slopes[name])

        program.spoil = cut
        # plain descent: Adam would go on for a while with what it remembers
        program.optimiser, program.rate = Sgd(), lambda _: 0.08
        return train(program, random)

    return record


def _decays(random: Random) -> Run:
    """From the middle on weight decay is a thousand times too strong."""
    program = classifier(random, BLOCKS)
    start = program.begins = middle(random, program.steps)

    # what a decay that is not part of the gradient does to the weights: a third is gone after each step
    def shrink(network: Network, step: int, _: int) -> None:
        if step > start:
            for name, value in network.parameters().items():
                network.put(name, value * np.float32(0.65))

    program.tamper = shrink
    return train(program, random)


def _proof_dead(run: Run) -> None:
    name = "block1.relu_output_0"
    assert all(np.mean(value.any(axis=0)) < 0.3 for value in since(run, name))
    assert not run.begins or all(np.mean(value.any(axis=0)) > 0.6 for value in before(run, name))


def _saturated(name: str, low: float, high: float) -> Callable[[Run], None]:
    def proof(run: Run) -> None:
        shares = [np.mean(((value > low) & (value < high)).mean(axis=0) < 0.01) for value in since(run, name)]
        assert np.mean(np.array(shares) > 0.5) > 0.9, f"{shares}"
        old = before(run, name)
        assert not old or max(np.mean((value < low) | (value > high)) for value in old) < 0.1

    return proof


def _proof_decays(run: Run) -> None:
    assert mean_abs(since(run, "MLP_block0.fc.weight"))[-1] < 1e-4
    assert run.series("CrossEntropyLoss_output_0", Mode.TRAIN)[-5:].mean() > 0.9


KINDS = (
    Kind(
        "vanishing-sigmoid",
        "ten sigmoid layers",
        from_start(replace(DEEP, activation="sigmoid", gain=1.0)),
        vanished(r"gradient/MLP_block0.fc.weight"),
        Fault(("VanishingGradient",), (*FLAT, *INITIAL), tensor=r"^gradient/MLP_block\d"),
    ),
    Kind(
        "vanishing-tanh",
        "ten tanh layers with small weights",
        from_start(replace(DEEP, activation="tanh", gain=0.25)),
        vanished(r"gradient/MLP_block0.fc.weight"),
        Fault(("VanishingGradient",), (*FLAT, *INITIAL), tensor=r"^gradient/MLP_block\d"),
    ),
    Kind(
        "detached",
        "no gradient reaches the first block",
        _detached(lambda _random, _steps: 0),
        vanished("gradient/MLP_block0.fc.weight"),
        Fault(
            NO_GRADIENT,
            (*FLAT, *INITIAL),
            tensor="MLP_block0",
            note="at its first step the same as healthy LoRA, whose first gradients are zero too",
        ),
    ),
    Kind(
        "detached-later",
        "the same from the middle on",
        _detached(middle),
        vanished("gradient/MLP_block0.fc.weight"),
        Fault(NO_GRADIENT, FLAT, tensor="MLP_block0"),
    ),
    Kind(
        "dead-relu",
        "one ReLU layer is dead from the start",
        from_start(BLOCKS, _kill),
        _proof_dead,
        Fault(("DeadRelu",), (*FLAT, *INITIAL, *NO_GRADIENT), tensor=r"block1\.relu"),
    ),
    Kind(
        "dead-relu-later",
        "one update in the middle kills a ReLU layer",
        from_middle(BLOCKS, _kill),
        _proof_dead,
        Fault(("DeadRelu",), (*FLAT, *SHAKEN, *NO_GRADIENT), tensor=r"block1\.relu"),
    ),
    Kind(
        "saturated-tanh",
        "raw features in the thousands",
        _raw_features,
        _saturated("block0.tanh_input_0", -9.4999, 9.4999),
        Fault(("SaturatedActivation",), (*FLAT, *INITIAL, *NO_GRADIENT), tensor=r"block0\.tanh"),
    ),
    Kind(
        "saturated-sigmoid-later",
        "one update in the middle blows up a layer before a sigmoid",
        from_middle(replace(ADAM, activation="sigmoid", blocks=(2, 3), rate=(0.01, 0.02)), _blow_up),
        _saturated("block1.sigmoid_input_0", -23, 16.99999),
        Fault(
            # the update is the cause, the saturation what it leads to: who names either names the fault
            ("SaturatedActivation", "WeightUpdateRatio"),
            (*FLAT, *SHAKEN, *NO_GRADIENT),
            tensor=r"block1\.(sigmoid|fc)",
        ),
    ),
    Kind(
        "decay-too-strong",
        "from the middle on weight decay pulls all weights to zero",
        _decays,
        _proof_decays,
        Fault(
            ("VanishingGradient", "TensorVariance", "LossDiverging", "LossNotDecreasing", "LossSpike"),
            (*FLAT, *NO_GRADIENT, *SHAKEN, "DeadRelu"),
        ),
    ),
)
