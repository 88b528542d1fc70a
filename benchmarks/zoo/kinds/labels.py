"""Faults of the data: labels that are unbalanced, mixed up or say nothing, batches that are spoilt once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.zoo.data import clusters
from benchmarks.zoo.evidence import before, ends, learns, loss, since
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.layers import Dense, Random
from benchmarks.zoo.programs import ADAM, MOMENTUM, Shape, classifier, middle
from benchmarks.zoo.run import Run
from benchmarks.zoo.training import Batch, Network, train
from evaluator.modes import Mode

LOSS = "CrossEntropyLoss_output_0"


def _unbalanced(random: Random) -> Run:
    """One class has 2 to 4 percent of the examples."""
    share = float(random.uniform(0.02, 0.04))

    def rare(data: Batch) -> Batch:
        classes = int(data[1].max()) + 1
        common = (1 - share) / (classes - 1)
        return clusters(random, classes, data[0].shape[1], len(data[1]), shares=[common] * (classes - 1) + [share])

    program = classifier(random, replace(ADAM, classes=(2, 3)), rare)
    program.begins = 0
    return train(program, random)


def _renamed(begins: Callable[[Random, int], int]) -> Callable[[Random], Run]:
    """A part of the training data calls class 1 class 0; validation data is right."""

    def record(random: Random) -> Run:
        program = classifier(random, replace(ADAM, classes=(4, 6), passes=16))
        start = program.begins = begins(random, program.steps)
        data = program.data

        def wrong(step: int, worker: int) -> Batch:
            x, y = data(step, worker)
            return (x, np.where(y == 1, 0, y)) if step >= start else (x, y)

        program.data = wrong
        return train(program, random)

    return record


def _shuffled(random: Random) -> Run:
    """Labels and examples are shuffled apart, so there is nothing to learn."""
    program = classifier(random, replace(Shape(), save_every=(3, 4), shown=(44, 56), rate=(0.02, 0.05)))
    program.begins, data = 0, program.data
    classes = len(program.network.layers[-1].values["bias"])

    def shuffled(step: int, worker: int) -> Batch:
        x, y = data(step, worker)
        return x, random.integers(0, classes, len(y))

    program.data = shuffled
    return train(program, random)


def _empty(random: Random) -> Run:
    """The loader fills its batches with zeros."""
    program = classifier(random, replace(Shape(), shown=(44, 56)))
    program.begins, data = 0, program.data
    program.validation = [(np.zeros_like(x), y) for x, y in program.validation]

    def zeros(step: int, worker: int) -> Batch:
        x, y = data(step, worker)
        return np.zeros_like(x), y

    program.data = zeros
    return train(program, random)


def _accuracy_only(random: Random) -> Run:
    """Labels at random, and only an accuracy is saved, 100 to 130 times."""
    program = classifier(
        random, replace(Shape(), classes=(2, 3), save_every=(1, 1), shown=(100, 130), rate=(0.01, 0.03))
    )
    program.begins, program.eval_every, data = 0, 1, program.data
    classes = len(program.network.layers[-1].values["bias"])
    program.validation = [(x, random.integers(0, classes, len(y))) for x, y in program.validation]

    def shuffled(step: int, worker: int) -> Batch:
        x, y = data(step, worker)
        return x, random.integers(0, classes, len(y))

    program.data = shuffled
    return train(program, random).without(r"^(?!scalar/)")


def _scalars_only(random: Random) -> Run:
    """A healthy run of which only losses and the accuracy are saved."""
    program = classifier(random, replace(ADAM, save_every=(2, 3), shown=(50, 80), passes=30))
    return train(program, random).without(r"^(?!scalar/|CrossEntropyLoss)")


def _spoilt_batch(random: Random) -> Run:
    """One batch is scaled wrongly and has other labels; what it did to the weights is repaired within some steps."""
    program = classifier(random, replace(Shape(), rate=(0.02, 0.04), save_every=(4, 5), shown=(44, 56), blocks=(1, 2)))
    begins = program.begins = middle(random, program.steps) // program.save_every * program.save_every
    data = program.data

    def spoilt(step: int, worker: int) -> Batch:
        x, y = data(step, worker)
        return (x * np.float32(8), y[::-1]) if step == begins else (x, y)

    program.data = spoilt
    return train(program, random)


def _head_reset(random: Random) -> Run:
    """A resumed job does not find the head in its checkpoint, and starts it anew."""
    program = classifier(random, replace(MOMENTUM, save_every=(3, 4), shown=(44, 56), blocks=(1, 2), rate=(0.02, 0.04)))
    begins = program.begins = middle(random, program.steps)

    def forget(network: Network, step: int, _: int) -> None:
        if step == begins:
            old = network.layer("head").values["weight"]
            network.layer("head").values = Dense("head", random, old.shape[1], old.shape[0], 3.0).values

    program.tamper = forget
    return train(program, random)


def _proof_unbalanced(run: Run) -> None:
    labels = np.concatenate(run.values("labels"))
    counts = np.bincount(labels)
    assert len(labels) >= 500
    assert counts.max() > 10 * counts.min()


def _proof_renamed(run: Run) -> None:
    """At the end class 1 of the validation data is called 0; the other classes are right."""
    step = run.steps[-1]
    labels = next(value for at, value in run.at("labels", Mode.EVAL) if at == step)
    predictions = next(value for at, value in run.at("predictions", Mode.EVAL) if at == step)
    assert np.mean(predictions[labels == 1] == 0) > 0.75
    assert np.mean((predictions == labels)[labels > 1]) > 0.85
    assert loss(run, Mode.TRAIN)[-5:].mean() < 0.6 * loss(run, Mode.TRAIN)[0]


def _proof_flat(run: Run) -> None:
    series = loss(run, Mode.TRAIN)
    chance = np.log(len(run.values("MLP_head.bias")[0]))
    assert abs(ends(series)[1] - chance) < 0.12 * chance, f"{ends(series)} {chance}"
    assert ends(series)[1] > 0.8 * ends(series)[0]


def _proof_accuracy_only(run: Run) -> None:
    assert run.names() == ["scalar/accuracy"]
    series = run.series("scalar/accuracy")
    assert len(series) >= 100
    assert abs(ends(series)[1] - ends(series)[0]) < 0.12
    assert series.max() < 0.7


def _proof_spike(run: Run) -> None:
    old = np.array(before(run, LOSS, Mode.TRAIN), dtype=float)[-10:]
    new = np.array(since(run, LOSS, Mode.TRAIN), dtype=float)
    assert new[:4].max() > 4 * old.mean(), f"{old.mean()} -> {new[:6]}"
    assert new[-10:].mean() < 1.5 * old.mean(), f"{old.mean()} -> {new}"


CHANCE = ("Confusion", "ClassImbalance", "MetricFlat", "LossNotDecreasing", "Overtraining")

KINDS = (
    Kind("scalars-only", "only losses and the accuracy are saved", _scalars_only, learns(accuracy=0.85), variant=True),
    Kind(
        "unbalanced-labels",
        "one class has 2 to 4 percent of the labels",
        _unbalanced,
        _proof_unbalanced,
        Fault(("ClassImbalance",), ("Confusion",), tensor="labels"),
    ),
    Kind(
        "class-renamed",
        "training data calls class 1 class 0",
        _renamed(lambda _random, _steps: 0),
        _proof_renamed,
        Fault(
            ("Confusion", "ClassImbalance"), ("Overfit", "Overtraining", "LossDiverging"), tensor="labels|predictions"
        ),
    ),
    Kind(
        "class-renamed-later",
        "the same from the middle on",
        _renamed(middle),
        _proof_renamed,
        Fault(
            ("Confusion", "ClassImbalance"),
            ("Overfit", "Overtraining", "LossDiverging", "LossSpike", "MetricFlat", "LossNotDecreasing"),
            tensor="labels|predictions",
        ),
    ),
    Kind(
        "labels-shuffled",
        "labels say nothing about the examples",
        _shuffled,
        _proof_flat,
        Fault(
            ("LossNotDecreasing", "MetricFlat"),
            (*CHANCE, "PoorWeightInitialization"),
            note="the loss falls to that of guessing and stays, as on healthy data that holds no more: "
            "it cannot be told from healthy",
        ),
    ),
    Kind(
        "inputs-empty",
        "every batch is zeros",
        _empty,
        _proof_flat,
        Fault(
            # with zeros for inputs and zeros for first biases every unit puts out zero, which DeadRelu says first
            ("DeadRelu", "LossNotDecreasing", "MetricFlat", "VanishingGradient", "AllZero"),
            (*CHANCE, "PoorWeightInitialization", "UnchangedTensor", "WeightUpdateRatio", "NotLearning"),
        ),
    ),
    Kind(
        "accuracy-flat",
        "only an accuracy is saved, and it stays at chance",
        _accuracy_only,
        _proof_accuracy_only,
        Fault(("MetricFlat",), (), tensor="accuracy"),
    ),
    Kind(
        "spoilt-batch",
        "one batch out of scale",
        _spoilt_batch,
        _proof_spike,
        Fault(
            ("LossSpike",),
            ("Overfit", "WeightUpdateRatio", "LossDiverging", "Confusion", "ClassImbalance"),
            tensor="Loss|gradient",
        ),
    ),
    Kind(
        "head-reset",
        "a resumed job starts the head anew",
        _head_reset,
        _proof_spike,
        Fault(
            ("LossSpike",),
            ("Overfit", "WeightUpdateRatio", "LossDiverging", "Confusion", "ClassImbalance", "MetricFlat"),
            tensor="Loss|gradient",
        ),
    ),
)
