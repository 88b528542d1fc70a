"""Healthy: what training scripts do with rates, scales and saving, some of which looks like a fault for a while."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.zoo.evidence import learns, loss, mean_abs, movement
from benchmarks.zoo.kind import Kind
from benchmarks.zoo.layers import Random
from benchmarks.zoo.optimisers import Scaler, restarts, warm_up_and_decay
from benchmarks.zoo.programs import ADAM, MOMENTUM, classifier, whole
from benchmarks.zoo.run import Run
from benchmarks.zoo.training import train
from evaluator.modes import Mode

GRADIENT = "gradient/MLP_block0.fc.weight"
WEIGHT = "MLP_block0.fc.weight"


def _warm_up(random: Random) -> Run:
    program = classifier(random, replace(MOMENTUM, rate=(0.04, 0.08)))
    program.rate = warm_up_and_decay(program.rate(0), program.steps // whole(random, (6, 10)), program.steps)
    return train(program, random)


def _warm_restarts(random: Random) -> Run:
    program = classifier(random, ADAM)
    program.rate = restarts(2 * program.rate(0), program.steps // whole(random, (2, 4)))
    return train(program, random)


def _sparse(random: Random) -> Run:
    return train(classifier(random, replace(ADAM, save_every=(15, 25), shown=(30, 36), rate=(1e-3, 3e-3))), random)


def _accumulates(random: Random) -> Run:
    program = classifier(
        random,
        replace(
            ADAM, batch=(8, 16), save_every=(1, 1), shown=(90, 110), rate=(8e-3, 1e-2), blocks=(2, 3), distance=8.0
        ),
    )
    program.accumulate = whole(random, (3, 4))
    return train(program, random)


def _loss_scaling(random: Random) -> Run:
    program = classifier(random, replace(ADAM, save_every=(1, 2), shown=(50, 70), rate=(6e-3, 1e-2)))
    program.scaler = Scaler(too_high=whole(random, (1, 4)), growth=10**9)
    return train(program, random)


def _loss_scaling_grows(random: Random) -> Run:
    program = classifier(random, replace(ADAM, save_every=(1, 1), shown=(70, 90), rate=(5e-3, 8e-3)))
    program.scaler = Scaler(too_high=whole(random, (1, 2)), growth=whole(random, (12, 18)))
    return train(program, random)


def _small_start(random: Random) -> Run:
    """The head starts near zero, so that hardly any gradient gets past it at first; a warm-up makes that last."""
    program = classifier(random, replace(ADAM, rate=(3e-3, 6e-3), save_every=(4, 5), blocks=(2, 3)))
    head = program.network.layer("head")
    head.values["weight"] = head.values["weight"] * np.float32(1e-5)
    rate, warm_up = program.rate(0), program.steps // 6
    program.rate = lambda step: rate * min(1.0, ((step + 1) / warm_up) ** 4)
    return train(program, random)


def _proof_scaled(run: Run) -> None:
    learns(accuracy=0.85)(run)
    infinite = [not np.isfinite(value).all() for value in run.values("gradient/MLP_head.weight", Mode.TRAIN)]
    anywhere = [
        any(not np.isfinite(value).all() for name, value in saved.values.items() if name.startswith("gradient/"))
        for saved in run.saved
    ]
    assert anywhere[0], "no gradient overflowed at the first step"
    assert sum(infinite) <= 0.12 * len(infinite), f"{sum(infinite)} steps overflowed"
    still = movement(run.values(WEIGHT, Mode.TRAIN)[:2])[0]
    assert still == 0 or run.saved[1].step > 1, "weights moved although the gradients had overflowed"


def _proof_small_start(run: Run) -> None:
    learns(accuracy=0.85)(run)
    sizes = mean_abs(run.values(GRADIENT, Mode.TRAIN))
    assert sizes[0] < 1e-6 < sizes.max() / 1e3, f"mean |gradient| starts at {sizes[0]:.3g}"


def _proof_accumulates(run: Run) -> None:
    learns(accuracy=0.8, rise=1.5)(run)
    moved = movement(run.values(WEIGHT, Mode.TRAIN))
    assert 0.5 < np.mean(moved == 0) < 0.9, "weights do not stand still between updates"


def _proof_warm_up(run: Run) -> None:
    learns(accuracy=0.85)(run)
    moved = movement(run.values(WEIGHT, Mode.TRAIN))
    assert moved[-1] < 0.05 * moved.max(), "the rate has not decayed"
    assert len(loss(run, Mode.TRAIN)) >= 30


KINDS = (
    Kind("warm-up-decay", "linear warm-up, then a cosine to zero", _warm_up, _proof_warm_up),
    Kind("warm-restarts", "a cosine that starts anew a few times", _warm_restarts, learns(accuracy=0.85), variant=True),
    Kind("sparse-saving", "every 15th to 25th step saved", _sparse, learns(accuracy=0.85)),
    Kind("accumulation", "gradients of 3 or 4 batches per update, each batch saved", _accumulates, _proof_accumulates),
    Kind("loss-scaling", "inf gradients in the first 1 to 4 steps, which are skipped", _loss_scaling, _proof_scaled),
    Kind(
        "loss-scaling-grows",
        "the same, and the scale is doubled now and then until a step overflows",
        _loss_scaling_grows,
        _proof_scaled,
        variant=True,
    ),
    Kind("small-gradients-early", "a head that starts near zero, long warm-up", _small_start, _proof_small_start),
)
