"""Saves an XGBoost training as a trial, with one argument in the script beside the import.

    from evaluator.hooks.xgboost import callback

    xgboost.train(parameters, data, evals=[(data, "train")], callbacks=[callback("trial", data=data)])

Each round is a step: the metrics of all that is in `evals` (`train-rmse`), the importance of each feature, the trees of
the round and, where `data` is given, labels and predictions. Names and collections are those of Debugger's own hook.
A file named STOP in the trial's folder ends the training after the round. Whatever fails is one warning.

Source:
    saved format of smdebug 1.0.34, section 2 (xgboost/hook.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluator.hooks._hooked_trial import HookedTrial
from evaluator.modes import Mode
from evaluator.scalar_names import RISING, kind_of

if TYPE_CHECKING:
    from xgboost import Booster, DMatrix
    from xgboost.callback import TrainingCallback

COLLECTIONS = {
    name: {"include_regex": [pattern]}
    for name, pattern in {
        "hyperparameters": "^hyperparameters/.*$",
        "metrics": "^[a-zA-z]+-[a-zA-z0-9]+$",
        "losses": "^[a-zA-z]+-.+(?<!(auc|map))$",
        "predictions": "^predictions$",
        "labels": "^labels$",
        "feature_importance": "^feature_importance/.*",
        "trees": "^trees/.*",
    }.items()
}
"""Source: saved format, section 2; the letter z twice is the original's."""

IMPORTANCES = ("weight", "gain", "cover", "total_gain", "total_cover")

TREE_COLUMNS = ("Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing", "Gain", "Cover")
"""The columns of XGBoost's own table of trees (Booster.trees_to_dataframe), which needs pandas."""


def callback(
    folder: str | os.PathLike[str], *, data: DMatrix | None = None, every: int = 1, **trial: Any
) -> TrainingCallback:
    """A callback for `xgboost.train`, or for the `callbacks` of an estimator.

    Args:
        folder: the trial's, made when it is not there.
        data: what labels and predictions are saved of; each saved round predicts it once more.
        every: so many rounds lie between two that are saved.
        trial: `workers="one"` (only the first worker saves), `keep_steps`, `keep_bytes`, `rank_of`.
    """
    from xgboost.callback import TrainingCallback  # noqa: PLC0415 - only the user's script needs it

    class Callback(_Saving, TrainingCallback):  # type: ignore[misc, unused-ignore]
        """What XGBoost takes for a callback."""

    return Callback(folder, data, every, trial)


class _Saving:
    """Saves rounds."""

    def __init__(
        self, folder: str | os.PathLike[str], data: DMatrix | None, every: int, options: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self._folder = folder
        self._data = data
        self._every = max(1, every)
        self._options = options
        self._trial: HookedTrial | None = None

    def before_training(self, model: Any) -> Any:
        """Open the trial: only now it is known which of several workers this is."""
        from xgboost import collective  # noqa: PLC0415 - only the user's script needs it

        rank_of = collective.get_rank(), collective.get_world_size()
        self._trial = HookedTrial(self._folder, **{"rank_of": rank_of, **self._options})
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Save a round; whether to end the training."""
        if self._trial is None:
            return False
        with self._trial.failures.guard(f"round {epoch} was not saved"):
            if epoch % self._every == 0:
                values = dict(_values(model, epoch, evals_log, self._data, self._trial))
                collections = COLLECTIONS | _named(evals_log)
                self._trial.save(epoch, values, mode=Mode.GLOBAL, mode_step=epoch, collections=collections)
        return self._trial.should_stop(epoch)

    def after_training(self, model: Any) -> Any:
        """Mark the run as ended."""
        if self._trial is not None:
            self._trial.close()
        return model


def _values(
    model: Booster, epoch: int, evals_log: Mapping[str, Any], data: DMatrix | None, trial: HookedTrial
) -> Iterator[tuple[str, Any]]:
    """All that is saved of a round, as far as it is to be had."""
    for of, metrics in evals_log.items():
        for metric, history in metrics.items():
            # cross validation has a mean and a deviation
            last = history[-1][0] if isinstance(history[-1], tuple) else history[-1]
            yield f"{of}-{metric}", np.float64(last)
    if not hasattr(model, "get_score"):
        return  # the models of a cross validation
    with trial.failures.guard("the objective was not saved"):
        yield "hyperparameters/objective", json.loads(model.save_config())["learner"]["objective"]["name"]
    with trial.failures.guard("the importance of features was not saved"):
        # linear boosters know weights only
        for kind in IMPORTANCES if _has_trees(model) else ("weight",):
            for feature, score in model.get_score(importance_type=kind).items():
                yield f"feature_importance/{kind}/{feature}", np.asarray(score, np.float64)
    if _has_trees(model):
        with trial.failures.guard("trees were not saved"):
            for column, cells in tree_columns(model, epoch).items():
                yield f"trees/{column}", cells
    if data is not None and data.get_label().size:
        with trial.failures.guard("predictions were not saved"):
            yield "labels", data.get_label()
            yield "predictions", model.predict(data)


def _named(evals_log: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """The metrics and losses by name: Debugger's patterns miss `validation_0`, as estimators call their data."""
    metrics = [f"{of}-{metric}" for of, found in evals_log.items() for metric in found]
    named = {"metrics": metrics, "losses": [name for name in metrics if kind_of(name) != RISING]}
    return {name: {**COLLECTIONS[name], "tensor_names": members} for name, members in named.items()}


def _has_trees(model: Booster) -> bool:
    return bool(json.loads(model.save_config())["learner"]["gradient_booster"]["name"] != "gblinear")


def tree_columns(model: Booster, epoch: int) -> dict[str, np.ndarray[Any, Any]]:
    """The trees of the last round, one row per node, as columns of numbers and texts."""
    rows: list[tuple[Any, ...]] = []
    last = model.num_boosted_rounds() - 1
    dumped = model[last : last + 1].get_dump(with_stats=True, dump_format="json")
    for place, text in enumerate(dumped):
        tree = epoch * len(dumped) + place
        rows += sorted(_rows(json.loads(text), tree))
    columns = dict(zip(TREE_COLUMNS, zip(*rows, strict=True), strict=True))
    numbers = {"Tree": np.int64, "Node": np.int64, "Split": np.float64, "Gain": np.float64, "Cover": np.float64}
    return {name: np.array(cells, numbers.get(name, np.str_)) for name, cells in columns.items()}


def _rows(node: Mapping[str, Any], tree: int) -> Iterator[tuple[Any, ...]]:
    """A node and all below it; of a leaf, Gain is its value and what has no meaning is NaN or the text nan."""
    number, cover = int(node["nodeid"]), float(node.get("cover", np.nan))
    if "leaf" in node:
        leaf = float(np.mean(node["leaf"]))
        yield tree, number, f"{tree}-{number}", "Leaf", np.nan, "nan", "nan", "nan", leaf, cover
        return
    split = node.get("split_condition", np.nan)
    # a categorical split lists its categories
    threshold = float(split) if isinstance(split, int | float) else np.nan
    ways = (f"{tree}-{node[way]}" for way in ("yes", "no", "missing"))
    yield tree, number, f"{tree}-{number}", str(node["split"]), threshold, *ways, float(node.get("gain", np.nan)), cover
    for child in node["children"]:
        yield from _rows(child, tree)
