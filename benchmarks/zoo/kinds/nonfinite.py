"""Faults that end in NaN or inf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.zoo.evidence import before, movement, since
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.layers import Random
from benchmarks.zoo.optimisers import Scaler
from benchmarks.zoo.programs import ADAM, Shape, classifier, middle, regression
from benchmarks.zoo.run import Array, Run
from benchmarks.zoo.training import Batch, Network, Program, Slopes, train
from evaluator.modes import Mode

BLOCKS = replace(Shape(), blocks=(3, 4))
HIDDEN = "MLP_block1.fc.weight"


def _begun(random: Random, shape: Shape) -> tuple[Program, int]:
    """A program, and the saved step in its middle at which the fault begins."""
    program = classifier(random, shape)
    program.begins = middle(random, program.steps) // program.save_every * program.save_every
    return program, program.begins


def _gradient(name: str) -> Callable[[Random], Run]:
    """The backward pass divides by zero in one place."""

    def record(random: Random) -> Run:
        program, begins = _begun(random, BLOCKS)

        def divide(slopes: Slopes, step: int, _: int) -> None:
            if step == begins:
                slopes[name] = slopes[name].copy()
                slopes[name].flat[0] = np.nan

        program.spoil = divide
        return train(program, random)

    return record


def _weight(random: Random) -> Run:
    """A value of one layer is overwritten: broken memory, or a broken kernel."""
    program, begins = _begun(random, replace(ADAM, blocks=(3, 4)))

    def overwrite(network: Network, step: int, _: int) -> None:
        if step == begins:
            value = network.parameters()[HIDDEN].copy()
            value[0, 0] = np.nan
            network.put(HIDDEN, value)

    program.tamper = overwrite
    return train(program, random)


def _hidden(random: Random) -> Run:
    """NaN in all weights, but the script saves its running mean instead of a loss that is NaN, and no activations."""
    program, begins = _begun(random, BLOCKS)
    mean = [0.0]

    def divide(slopes: Slopes, step: int, _: int) -> None:
        if step == begins:
            slopes["MLP_head.bias"] = slopes["MLP_head.bias"] * np.float32(np.nan)

    def filtered(loss: Array, _: int) -> Array:
        if np.isfinite(loss):
            mean[0] = float(loss) if mean[0] == 0 else 0.9 * mean[0] + 0.1 * float(loss)
        return np.asarray(mean[0], np.float32)

    program.spoil, program.shows = divide, filtered
    program.eval_every = program.steps + 1
    program.validation = ()
    return train(program, random).without("relu_|predictions|labels")


def _bad_record(random: Random) -> Run:
    """One record of the data has a missing value."""
    program, begins = _begun(random, BLOCKS)
    data = program.data

    def with_gap(step: int, worker: int) -> Batch:
        x, y = data(step, worker)
        if step == begins:
            x = x.copy()
            x[0, 0] = np.nan
        return x, y

    program.data = with_gap
    return train(program, random)


def _scaler_stuck(random: Random) -> Run:
    """The loss scale is never lowered, so every step overflows and is skipped."""
    program = classifier(random, replace(ADAM, blocks=(2, 3)))
    program.scaler, program.begins = Scaler(too_high=4, growth=10**9), 0
    program.scaler.backs_off = False
    return train(program, random)


def _explodes(random: Random) -> Run:
    """From the middle on the rate is a thousand times as high; the error is squared, so everything overflows."""
    program = regression(random, replace(BLOCKS, save_every=(1, 1), rate=(0.01, 0.03)))
    program.begins, rate = middle(random, program.steps), program.rate(0)
    start = program.begins
    program.rate = lambda step: rate if step < start else 1000 * rate
    return train(program, random)


def _any(values: list[Array]) -> bool:
    return any(not np.isfinite(value).all() for value in values)


def _first(*, pattern: str) -> Callable[[Run], None]:
    """The first tensor that is not finite, in the order of saving, and all before it is finite."""

    def proof(run: Run) -> None:
        for saved in run.saved:
            bad = [n for n, v in saved.values.items() if v.dtype.kind == "f" and not np.isfinite(v).all()]
            if bad:
                assert saved.step == run.begins, f"step {saved.step}, not {run.begins}"
                assert bad[0] == run.names(pattern)[0], bad[0]
                break
        else:
            raise AssertionError("everything is finite")
        weights = since(run, run.names("^MLP.*head.weight")[0])
        assert _any(weights[1:])

    return proof


def _proof_hidden(run: Run) -> None:
    _first(pattern=r"gradient/MLP_head\.bias")(run)
    assert not _any(run.values("CrossEntropyLoss_output_0"))


def _proof_stuck(run: Run) -> None:
    slopes = run.values("gradient/MLP_head.weight")
    assert all(not np.isfinite(value).all() for value in slopes)
    assert movement(run.values("MLP_head.weight", Mode.TRAIN)).max() == 0


def _proof_explodes(run: Run) -> None:
    name = "MSELoss_output_0"
    assert not _any(before(run, name, Mode.TRAIN))
    new = np.array(since(run, name, Mode.TRAIN), dtype=float)
    assert not np.isfinite(new[-1])
    assert np.nanmax(new) > 10 * float(np.mean(before(run, name, Mode.TRAIN)[-5:]))


AS_OVERFLOW = "at its first step a half-precision overflow, which is skipped, may look the same; the next step tells"
NAN = ("NonFinite", "ExplodingTensor")
AFTER = (
    "LossNotDecreasing", "LossDiverging", "LossSpike", "MetricFlat", "NotLearning", "UnchangedTensor",
    "WeightUpdateRatio", "DeadRelu", "Confusion", "ClassImbalance", "Overfit", "Overtraining", "AllZero",
    "VanishingGradient", "TensorVariance",
)  # fmt: skip

KINDS = (
    Kind(
        "nan-gradient",
        "one element of one gradient is NaN at a step in the middle",
        _gradient(HIDDEN),
        _first(pattern=f"gradient/{HIDDEN}"),
        Fault(NAN, AFTER, tensor=rf"gradient/{HIDDEN}$", note=AS_OVERFLOW),
    ),
    Kind(
        "nan-weight",
        "one element of one weight is NaN at a step in the middle",
        _weight,
        _first(pattern=f"^{HIDDEN}"),
        Fault(NAN, AFTER, tensor=rf"^{HIDDEN}$"),
    ),
    Kind(
        "nan-hidden",
        "NaN in the weights, a filter keeps the saved loss finite",
        _hidden,
        _proof_hidden,
        Fault(NAN, AFTER, tensor=r"gradient/MLP_head\.bias$"),
    ),
    Kind(
        "nan-record",
        "one example of one batch has a NaN",
        _bad_record,
        _first(pattern="block0.relu_input_0"),
        Fault(NAN, AFTER, tensor=r"block0\.relu_input_0$"),
    ),
    Kind(
        "loss-scale-stuck",
        "every step overflows and is skipped",
        _scaler_stuck,
        _proof_stuck,
        Fault(
            (*NAN, "NotLearning", "UnchangedTensor", "WeightUpdateRatio"),
            (*AFTER, "PoorWeightInitialization"),
            tensor="^(gradient/)?MLP_",
            note="for its first steps the same as a healthy scale that starts too high",
        ),
    ),
    Kind(
        "explodes",
        "from the middle on the rate is a thousand times as high, squared error",
        _explodes,
        _proof_explodes,
        Fault((*NAN, "LossSpike", "LossDiverging", "WeightUpdateRatio"), AFTER),
    ),
)
