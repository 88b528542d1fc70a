"""An attention block over token sequences; the faults are batches that are mostly padding."""

from __future__ import annotations

import numpy as np

from benchmarks.zoo.data import batches, cut, sentences, split
from benchmarks.zoo.evidence import before, learns, since
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.layers import Dense, Gelu, Random
from benchmarks.zoo.optimisers import Adam, constant
from benchmarks.zoo.programs import between, middle, whole
from benchmarks.zoo.run import Array, Run
from benchmarks.zoo.structure import Attention, Embedding, LayerNorm, Mean
from benchmarks.zoo.training import Batch, Network, Program, train
from evaluator.modes import Mode

NAME = "embedding0_input_0"


def _program(random: Random, length: tuple[int, int], shortest: float) -> Program:
    classes, tokens, width, longest = whole(random, (3, 5)), whole(random, (40, 60)), 16, whole(random, length)
    data = sentences(random, classes, tokens, longest, 1656, shortest=max(4, int(shortest * longest)))
    training, validation = split(data, 256)
    save_every, shown = whole(random, (2, 3)), whole(random, (40, 60))
    return Program(
        Network(
            "Attention",
            [
                Embedding("embedding0", random, tokens, longest, width),
                Attention("attention", random, width),
                LayerNorm("norm", width),
                Mean("mean"),
                Dense("block0.fc", random, width, 2 * width, 1.7),
                Gelu("block0.gelu"),
                Dense("head", random, 2 * width, classes),
            ],
        ),
        batches(random, training, whole(random, (24, 40)), shown * save_every),
        cut(validation, 2),
        shown * save_every,
        constant(between(random, (3e-3, 6e-3))),
        optimiser=Adam(),
        save_every=save_every,
        eval_every=shown * save_every // 8,
    )


def _healthy(random: Random) -> Run:
    return train(_program(random, (12, 20), 0.4), random)


def _padded(random: Random) -> Run:
    """Every sequence padded to the longest one there ever was."""
    program = _program(random, (40, 56), 0.1)
    x = program.data
    lengths = whole(random, (10, 14))

    def cut_short(step: int, worker: int) -> Batch:
        tokens, y = x(step, worker)
        tokens = tokens.copy()
        tokens[:, lengths:] = 0
        return tokens, y

    program.data, program.begins = cut_short, 0
    return train(program, random)


def _padded_later(random: Random) -> Run:
    """From the middle on the loader cuts sequences down to a few tokens."""
    program = _program(random, (16, 24), 0.5)
    program.begins, data = middle(random, program.steps), program.data

    def cut_short(step: int, worker: int) -> Batch:
        tokens, y = data(step, worker)
        if step >= (program.begins or 0):
            tokens = tokens.copy()
            tokens[:, 4:] = 0
        return tokens, y

    program.data = cut_short
    return train(program, random)


def _share(values: list[Array]) -> float:
    return float(np.mean([np.mean(value == 0) for value in values]))


def _proof_healthy(run: Run) -> None:
    learns(accuracy=0.85)(run)
    assert max(np.mean(value == 0) for value in run.values(NAME)) < 0.45


def _proof_padded(run: Run) -> None:
    assert _share(since(run, NAME, Mode.TRAIN)) > 0.6
    assert not run.begins or _share(before(run, NAME, Mode.TRAIN)) < 0.4


CONSEQUENCES = (
    "LossSpike", "LossDiverging", "LossNotDecreasing", "AllZero", "MetricFlat", "Overfit", "Overtraining", "Confusion",
)  # fmt: skip

KINDS = (
    Kind("attention", "embedding, attention, classifier; a quarter padding", _healthy, _proof_healthy),
    Kind(
        "padding-dominates",
        "sequences padded to four times their length",
        _padded,
        _proof_padded,
        Fault(("NLPSequenceRatio",), CONSEQUENCES, tensor=NAME),
    ),
    Kind(
        "padding-dominates-later",
        "from the middle on all but four tokens are padding",
        _padded_later,
        _proof_padded,
        Fault(("NLPSequenceRatio",), CONSEQUENCES, tensor=NAME),
    ),
)
