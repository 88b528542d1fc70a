"""Healthy: regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.zoo.data import batches, cut, linear_function, split
from benchmarks.zoo.evidence import learns, validation_loss
from benchmarks.zoo.kind import Kind
from benchmarks.zoo.layers import Dense, Random
from benchmarks.zoo.optimisers import Sgd, constant, squared_error
from benchmarks.zoo.programs import ADAM, MOMENTUM, Shape, between, regression, whole
from benchmarks.zoo.run import Run
from benchmarks.zoo.training import Network, Program, train


def _of(shape: Shape) -> Callable[[Random], Run]:
    return lambda random: train(regression(random, shape), random)


def _linear(random: Random) -> Run:
    """One layer, which soon is as good as the noise allows; the loss is flat for the rest of the run."""
    features, steps, save_every = whole(random, (5, 12)), whole(random, (60, 90)), whole(random, (2, 4))
    noise = between(random, (0.2, 0.6))
    training, validation = split(linear_function(random, features, 2256, noise=noise), 256)
    program = Program(
        Network("Linear", [Dense("fc", random, features, 1)]),
        batches(random, training, whole(random, (16, 64)), steps * save_every),
        cut(validation, 1),
        steps * save_every,
        constant(between(random, (0.02, 0.08))),
        optimiser=Sgd(),
        loss=squared_error,
        loss_name="MSELoss_output_0",
        save_every=save_every,
        eval_every=steps * save_every // 10,
    )
    return train(program, random)


def _proof_linear(run: Run) -> None:
    validation = validation_loss(run)
    assert validation[-1] < 0.9 * run.series("MSELoss_output_0")[:3].max()
    assert validation[-1] < 1.15 * validation.min()
    assert np.ptp(validation[-4:]) < 0.1 * validation[-1]


KINDS = (
    Kind(
        "regression-adam", "smooth function, dense, ReLU, Adam", _of(replace(ADAM, width=(24, 40))), learns(fall=0.35)
    ),
    Kind(
        "regression-tanh",
        "smooth function, dense, tanh, momentum",
        _of(replace(MOMENTUM, activation="tanh", blocks=(1, 3), width=(24, 40))),
        learns(fall=0.35),
        variant=True,
    ),
    Kind("regression-linear", "one linear layer, which reaches the noise early", _linear, _proof_linear, variant=True),
)
