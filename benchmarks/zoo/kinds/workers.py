"""Programs of two workers, which train one model on different data; and runs that stop for a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.zoo.evidence import learns, loss
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.layers import Random
from benchmarks.zoo.programs import MOMENTUM, between, classifier, middle
from benchmarks.zoo.run import Run
from benchmarks.zoo.training import Network, Program, Slopes, train
from evaluator.modes import Mode

TWO = replace(
    MOMENTUM,
    workers=2,
    width=(14, 20),
    blocks=(2, 3),
    shown=(36, 44),
    save_every=(3, 4),
    rate=(0.02, 0.03),
    batch=(16, 32),
)
WEIGHT = "MLP_block0.fc.weight"


def _healthy(random: Random) -> Run:
    return train(classifier(random, TWO), random)


def _sharded(random: Random) -> Run:
    """Each worker saves its rows of every parameter, as fully sharded training does."""
    run = train(classifier(random, TWO), random)
    for saved in run.saved:
        for name, value in saved.values.items():
            if "MLP_" in name:
                saved.values[name] = np.array_split(value, 2)[saved.worker]
    return run


def _changed(change: Callable[[Random, Program], None]) -> Callable[[Random], Run]:
    def record(random: Random) -> Run:
        program = classifier(random, TWO)
        change(random, program)
        return train(program, random)

    return record


def _clips_alone(random: Random, program: Program) -> None:
    """From the middle on one worker clips its gradients, and the other does not."""
    begins = program.begins = middle(random, program.steps)

    def clip(slopes: Slopes, step: int, worker: int) -> None:
        if worker == 1 and step >= begins:
            norm = np.sqrt(sum(float((slope**2).sum()) for slope in slopes.values()))
            for name, slope in slopes.items():
                slopes[name] = slope * np.float32(min(1.0, 1e-3 / norm))

    program.spoil = clip


def _never_averages(_: Random, program: Program) -> None:
    program.begins, program.averages = 0, lambda _: False


def _one_value(random: Random, program: Program) -> None:
    """From the middle on one parameter of one worker has an error in one element."""
    begins = program.begins = middle(random, program.steps)

    def add(network: Network, step: int, worker: int) -> None:
        if worker == 1 and step == begins:
            value = network.parameters()[WEIGHT].copy()
            value[0, 0] += np.float32(1e-2)
            network.put(WEIGHT, value)

    program.tamper = add


def _ends_early(share: tuple[float, float]) -> Callable[[Random], Run]:
    """The second worker saves nothing after this share of the steps."""

    def record(random: Random) -> Run:
        run = train(classifier(random, replace(TWO, shown=(50, 60))), random)
        steps = run.steps
        # it is missing from the step after on
        run.begins = steps[int(len(steps) * between(random, share)) - 1]
        run.saved = [saved for saved in run.saved if saved.worker == 0 or saved.step <= run.begins]
        return run

    return record


def _nan_then_silence(random: Random) -> Run:
    """One worker has NaN and leaves; the other waits for it for ever."""
    program = classifier(random, TWO)
    begins = program.begins = middle(random, program.steps) // program.save_every * program.save_every
    program.averages = lambda step: step < begins

    def divide(slopes: Slopes, step: int, worker: int) -> None:
        if worker == 1 and step == begins:
            slopes.update({name: slope * np.float32(np.nan) for name, slope in slopes.items()})

    program.spoil = divide
    run = train(program, random)
    run.saved = [saved for saved in run.saved if saved.step <= (run.begins or 0)]
    return run


def _apart(run: Run, name: str = WEIGHT) -> list[tuple[int, bool]]:
    """At each training step, whether the workers' values differ."""
    other = dict(run.at(name, Mode.TRAIN, 1))
    return [(step, not np.array_equal(value, other[step])) for step, value in run.at(name, Mode.TRAIN) if step in other]


def _proof_healthy(run: Run) -> None:
    learns(accuracy=0.85)(run)
    for name in run.names("MLP_"):
        assert not any(differ for _, differ in _apart(run, name)), name
    assert not np.array_equal(loss(run, Mode.TRAIN), loss(run, Mode.TRAIN, 1))


def _proof_sharded(run: Run) -> None:
    learns(accuracy=0.85)(run)
    assert all(differ for _, differ in _apart(run))


def _proof_apart(run: Run) -> None:
    begins = run.begins or 0
    assert not any(differ for step, differ in _apart(run) if step < begins)
    assert all(differ for step, differ in _apart(run) if step > begins)


def _missing(least: float, most: float) -> Callable[[Run], None]:
    def proof(run: Run) -> None:
        missing = 1 - len(run.values(WEIGHT, None, 1)) / len(run.values(WEIGHT))
        assert least < missing < most, f"{missing:.0%} missing"

    return proof


def _proof_nan_then_silence(run: Run) -> None:
    for worker in (0, 1):
        last = run.values(f"gradient/{WEIGHT}", None, worker)
        assert np.isfinite(last[-2]).all()
        assert np.isfinite(last[-1]).all() == (worker == 0)
    assert run.steps[-1] == run.begins


APART = Fault(("WorkersDiverge",), ("SimilarAcrossRuns", "UnevenSteps"), tensor="^MLP_")
ABSENT = ("SilentWorker", "UnevenSteps", "StalledTrainingRule")

KINDS = (
    Kind("two-workers", "replicated weights, different data, averaged gradients", _healthy, _proof_healthy),
    Kind(
        "two-workers-sharded",
        "each worker saves its own part of the parameters",
        _sharded,
        _proof_sharded,
        variant=True,
    ),
    Kind(
        "replica-clips-alone",
        "from the middle on one worker clips its gradients",
        _changed(_clips_alone),
        _proof_apart,
        APART,
    ),
    Kind("replicas-not-averaged", "gradients are not averaged", _changed(_never_averages), _proof_apart, APART),
    Kind(
        "replica-one-value",
        "one element of one weight is off by 0.01 on one worker",
        _changed(_one_value),
        _proof_apart,
        APART,
    ),
    Kind(
        "worker-silent",
        "one worker saves nothing after two fifths of the run",
        _ends_early((0.35, 0.45)),
        _missing(0.4, 0.8),
        Fault(("SilentWorker",), ABSENT, worker="worker_1"),
    ),
    Kind(
        "uneven-steps",
        "one worker ends with a few steps less",
        _ends_early((0.88, 0.95)),
        _missing(0.01, 0.15),
        Fault(("UnevenSteps", "SilentWorker"), ABSENT, worker="worker_1"),
    ),
    Kind(
        "nan-then-silence",
        "one worker has NaN, then nobody saves anything",
        _nan_then_silence,
        _proof_nan_then_silence,
        Fault(("NonFinite", "ExplodingTensor"), (*ABSENT, "WorkersDiverge"), worker="worker_1"),
    ),
)
