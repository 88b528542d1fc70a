"""Boosted trees, saved as the XGBoost hook does: one step a round, all in GLOBAL mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.zoo.boosting import Boosting, Tree, tree_columns
from benchmarks.zoo.evidence import ends
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.layers import Random
from benchmarks.zoo.programs import between, middle, whole
from benchmarks.zoo.run import XGBOOST, Array, Run, Saved
from evaluator.modes import Mode


@dataclass(frozen=True)
class Task:
    """What a seed chooses between, and what a fault changes."""

    logistic: bool = True
    depth: tuple[int, int] = (3, 6)
    rate: tuple[float, float] = (0.1, 0.3)
    least: float = 1.0
    noise: float = 0.3
    """Of the score that decides about the label."""
    wrong: float = 0.0
    """The share of training labels that are random."""
    examples: tuple[int, int] = (500, 700)
    rounds: tuple[int, int] = (32, 50)
    leak: bool = False
    """Whether one feature gives the training and validation label away."""
    stops: bool = False
    """Whether trees add nothing any more from the middle on."""


def _data(random: Random, task: Task) -> tuple[Array, Array]:
    """Ten features, of which eight matter about equally."""
    x = random.normal(0, 1, (whole(random, task.examples) + 200, 10))
    strengths = random.uniform(0.7, 1.3, 8) * random.choice([-1, 1], 8)
    score = np.tanh(x[:, :8]) @ strengths + 0.8 * x[:, 0] * x[:, 1]
    score = (score - score.mean()) / score.std() + random.normal(0, task.noise, len(x))
    y = (score > 0).astype(float) if task.logistic else score
    return x, y


def _record(random: Random, task: Task) -> Run:
    x, y = _data(random, task)
    rows = random.random(len(y)) < task.wrong
    rows[-200:] = False
    y[rows] = random.permutation(y[rows])
    if task.leak:
        x[:, 3] = y + random.normal(0, 0.02, len(y))
    rounds, save_every = whole(random, task.rounds), whole(random, (1, 2))
    begins = middle(random, rounds) // save_every * save_every if task.stops else 0
    model = Boosting(
        x[:-200], y[:-200], task.logistic, whole(random, task.depth), between(random, task.rate), task.least
    )
    run = Run(patterns=XGBOOST, begins=begins)
    validation = np.full(200, model.margin[0])

    def nothing(tree: Tree) -> None:
        tree.leaf = dict.fromkeys(tree.leaf, 0.0)

    for step in range(rounds * save_every):
        tree = model.round(nothing) if task.stops and step >= begins else model.round()
        validation = validation + tree.predict(x[-200:])
        if step % save_every == 0:
            values = _values(model, task, validation, y[-200:], tree, step)
            run.saved.append(Saved(step, Mode.GLOBAL, step, values, seconds=0.3 * step + random.uniform(0, 0.05)))
    return run


def _values(model: Boosting, task: Task, margin: Array, y: Array, tree: Tree, step: int) -> dict[str, Array]:
    """What the hook saves of one round."""
    predictions = 1 / (1 + np.exp(-margin)) if task.logistic else margin
    values: dict[str, Array] = {
        "hyperparameters/objective": np.array(["binary:logistic" if task.logistic else "reg:squarederror"]),
        "hyperparameters/max_depth": np.array([model.depth]),
    }
    for name, scores, truth in (("train", model.margin, model.y), ("validation", margin, y)):
        measured = _classification(scores, truth) if task.logistic else _regression(scores, truth)
        values |= {f"{name}-{metric}": np.array([round(value, 6)]) for metric, value in measured.items()}
    values |= {"predictions": predictions.astype(np.float32), "labels": y.astype(np.float32)}
    for what in ("weight", "gain"):
        shares = model.importance(what)
        values |= {f"feature_importance/{what}/f{name}": np.array([share]) for name, share in shares.items()}
    return values | tree_columns(tree, step)


def _classification(margin: Array, y: Array) -> dict[str, float]:
    signs = np.where(y > 0, -margin, margin)
    order = np.argsort(np.argsort(margin))
    positive = y > 0
    pairs = positive.sum() * (~positive).sum()
    above = order[positive].sum() - positive.sum() * (positive.sum() - 1) / 2
    return {
        "logloss": float(np.mean(np.logaddexp(0, signs))),
        "error": float(np.mean(signs > 0)),
        "auc": float(above / pairs),
    }


def _regression(margin: Array, y: Array) -> dict[str, float]:
    return {"rmse": float(np.sqrt(np.mean((margin - y) ** 2))), "mae": float(np.mean(np.abs(margin - y)))}


def _of(task: Task) -> Callable[[Random], Run]:
    return lambda random: _record(random, task)


def _healthy(task: Task) -> Callable[[Random], Run]:
    def record(random: Random) -> Run:
        run = _record(random, task)
        run.begins = None
        return run

    return record


def _proof_healthy(run: Run) -> None:
    (name,) = run.names("^validation-(logloss|rmse)$")
    training, validation = run.series(name.replace("validation", "train")), run.series(name)
    assert training[-1] < 0.7 * training[0], f"{training[0]} -> {training[-1]}"
    assert validation[-1] < 0.8 * validation[0], f"{validation[0]} -> {validation[-1]}"
    assert validation[-1] < 1.1 * validation.min()
    assert _top_three(run) < 0.7
    assert len(run.steps) >= 30


def _top_three(run: Run) -> float:
    shares = [run.series(name)[-1] for name in run.names("^feature_importance/weight/")]
    return float(sum(sorted(shares)[-3:]) / sum(shares))


def _proof_deep(run: Run) -> None:
    assert np.median([np.log2(value.max() + 1) for value in run.values("trees/Node")]) > 9


def _proof_leak(run: Run) -> None:
    assert run.series("feature_importance/weight/f3")[-1] > 0.8
    assert _top_three(run) > 0.85


def _proof_overfit(run: Run) -> None:
    training, validation = run.series("train-logloss"), run.series("validation-logloss")
    assert training[-1] < 0.3 * training[0]
    assert validation[-1] > 1.25 * validation.min(), f"{validation.min()} -> {validation[-1]}"
    assert np.argmin(validation) < 0.5 * len(validation)


def _proof_stops(run: Run) -> None:
    series = np.array([float(value[0]) for step, value in run.at("train-logloss") if step >= (run.begins or 0)])
    assert np.ptp(series) == 0
    assert ends(series)[0] > 0.05
    assert len(series) >= 12


OVERFITS = Task(depth=(7, 9), rate=(0.5, 0.7), least=0.01, wrong=0.5, noise=1.0, examples=(150, 180), rounds=(50, 60))

KINDS = (
    Kind(
        "trees-classification",
        "boosted trees, logloss and auc",
        _healthy(Task(rate=(0.1, 0.2), depth=(3, 5))),
        _proof_healthy,
    ),
    Kind(
        "trees-regression",
        "boosted trees, rmse",
        _healthy(Task(logistic=False, depth=(3, 6), rate=(0.08, 0.15), rounds=(40, 60), least=5)),
        _proof_healthy,
    ),
    Kind(
        "trees-too-deep",
        "no limit of depth, leaves of single examples",
        _of(Task(depth=(16, 20), least=0.0, logistic=False, wrong=0.3, examples=(180, 220), rounds=(30, 34))),
        _proof_deep,
        Fault(("TreeDepth",), ("Overfit", "Overtraining", "LossNotDecreasing"), tensor="^trees/Node$"),
    ),
    Kind(
        "trees-one-feature",
        "a feature that gives the label away",
        _of(Task(leak=True, depth=(3, 5))),
        _proof_leak,
        Fault(
            ("FeatureImportanceOverweight",), ("LossNotDecreasing", "Overtraining"), tensor="^feature_importance/weight"
        ),
    ),
    Kind(
        "trees-overfit",
        "deep trees on noisy labels: validation logloss rises",
        _of(OVERFITS),
        _proof_overfit,
        Fault(("Overfit", "Overtraining"), ("TreeDepth", "LossDiverging", "LossNotDecreasing", "MetricFlat")),
    ),
    Kind(
        "trees-stop",
        "from the middle on trees add nothing",
        _of(Task(rounds=(50, 70), stops=True, rate=(0.08, 0.12), depth=(3, 4))),
        _proof_stops,
        Fault(
            ("LossNotDecreasing", "MetricFlat"),
            ("Overtraining", "UnchangedTensor"),
            note="the same numbers as a run that has converged: it cannot be told from healthy",
        ),
    ),
)
