"""Faults that validation shows: models that learn their examples by heart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.zoo.data import batches, clusters, cut, split
from benchmarks.zoo.evidence import loss, validation_loss
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.layers import Random
from benchmarks.zoo.optimisers import Adam, constant
from benchmarks.zoo.programs import ADAM, Shape, between, stack, whole
from benchmarks.zoo.run import Run
from benchmarks.zoo.training import Program, train
from evaluator.modes import Mode

WIDE = replace(ADAM, width=(48, 64), blocks=(2, 3), save_every=(5, 6), shown=(40, 54), batch=(16, 24))


def _by_heart(
    random: Random, examples: int, distance: float, wrong: float, rate: tuple[float, float], shape: Shape
) -> Run:
    """Few examples, many weights; a share of the training labels is random."""
    classes, features = whole(random, (3, 4)), whole(random, (10, 14))
    training, validation = split(clusters(random, classes, features, examples + 256, distance=distance), 256)
    y = training[1].copy()
    rows = random.random(len(y)) < wrong
    y[rows] = random.integers(0, classes, int(rows.sum()))
    save_every = whole(random, shape.save_every)
    steps = whole(random, shape.shown) * save_every
    program = Program(
        stack(random, shape, features, classes),
        batches(random, (training[0], y), whole(random, shape.batch), steps),
        cut(validation, 1),
        steps,
        constant(between(random, rate)),
        optimiser=Adam(),
        save_every=save_every,
        eval_every=steps // 16,
    )
    run = train(program, random)
    run.begins = _turn(run)
    return run


def _turn(run: Run) -> int:
    """The step at which the validation loss is best: it gets worse from there on."""
    name = "CrossEntropyLoss_output_0"
    steps = [step for step, _ in run.at(name, Mode.EVAL)]
    return steps[int(np.argmin(run.series(name, Mode.EVAL)))]


def _noise(random: Random) -> Run:
    return _by_heart(random, whole(random, (80, 120)), 3.0, 1.0, (4e-3, 8e-3), WIDE)


def _small(random: Random) -> Run:
    return _by_heart(random, whole(random, (40, 60)), 2.2, 0.0, (2e-3, 4e-3), WIDE)


def _too_long(random: Random) -> Run:
    return _by_heart(random, whole(random, (200, 260)), 2.8, 0.3, (2e-3, 4e-3), replace(WIDE, save_every=(12, 13)))


def _rises(run: Run, rise: float, left: float) -> None:
    validation, training = validation_loss(run), loss(run, Mode.TRAIN)
    assert np.mean(validation[-3:]) > rise * validation.min(), f"{validation}"
    assert np.mean(training[-5:]) < left * np.mean(training[:2]), f"{training[0]} -> {training[-1]}"
    assert np.argmin(validation) < 0.6 * len(validation)


def _proof_noise(run: Run) -> None:
    _rises(run, 1.5, 0.3)


def _proof_small(run: Run) -> None:
    _rises(run, 1.3, 0.1)


def _proof_too_long(run: Run) -> None:
    _rises(run, 1.3, 0.7)


BOTH = ("Overfit", "Overtraining")
AFTER = ("LossDiverging", "LossNotDecreasing", "MetricFlat", "Confusion", "ClassImbalance", "VanishingGradient")

KINDS = (
    Kind("overfits-noise", "random labels, learnt by heart", _noise, _proof_noise, Fault(BOTH, AFTER)),
    Kind("overfits-few", "forty to sixty examples, learnt by heart", _small, _proof_small, Fault(BOTH, AFTER)),
    Kind(
        "overtrained",
        "trained on long after validation was at its best",
        _too_long,
        _proof_too_long,
        Fault(BOTH, AFTER),
    ),
)
