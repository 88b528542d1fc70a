"""The callback for XGBoost: what it saves, and that nothing it does ends a training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.modes import Mode
from tests.hooks.trials import collections, findings, saved

xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed; `make hooks` installs it")

from evaluator.hooks.xgboost import callback, tree_columns  # noqa: E402 - only where it is installed

PARAMETERS = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc"], "seed": 1}


def samples(count: int = 300, seed: int = 0) -> Any:
    """A problem that can be learned."""
    x = np.random.default_rng(seed).normal(size=(count, 6))
    return xgboost.DMatrix(x, (x[:, :4].sum(1) > 0).astype(int))


def train(folder: Path, *, data: Any = None, rounds: int = 5, options: Any = None, **parameters: Any) -> Any:
    data = samples() if data is None else data
    hook = callback(folder, **({"data": data} if options is None else options))
    evals = [(data, "train"), (samples(100, 1), "validation")]
    return xgboost.train({**PARAMETERS, **parameters}, data, rounds, evals=evals, verbose_eval=False, callbacks=[hook])


def test_every_round_is_a_step_and_the_run_ends(tmp_path: Path):
    train(tmp_path)
    steps = saved(tmp_path)

    assert list(steps) == [0, 1, 2, 3, 4]
    assert {values[""] for values in steps.values()} == {Mode.GLOBAL}
    assert (tmp_path / "training_job_end.ts").exists()


def test_names_are_those_of_debuggers_hook(tmp_path: Path):
    train(tmp_path)
    names = list(saved(tmp_path)[4])

    assert {"train-logloss", "validation-auc", "hyperparameters/objective", "labels", "predictions"} < set(names)
    assert {name.rpartition("/")[0] for name in names if "/f" in name} == {
        f"feature_importance/{kind}" for kind in ("weight", "gain", "cover", "total_gain", "total_cover")
    }
    assert {"trees/Tree", "trees/Node", "trees/Feature", "trees/Gain"} < set(names)


def test_metrics_that_should_rise_are_no_losses(tmp_path: Path):
    train(tmp_path)

    assert collections(tmp_path)["losses"] == {"train-logloss", "validation-logloss"}
    assert collections(tmp_path)["metrics"] == {"train-logloss", "validation-logloss", "train-auc", "validation-auc"}


def test_values_are_those_of_the_round(tmp_path: Path):
    data = samples()
    model = train(tmp_path, data=data)
    last = saved(tmp_path)[4]

    np.testing.assert_array_equal(last["predictions"], model.predict(data))
    np.testing.assert_array_equal(last["labels"], data.get_label())
    assert last["feature_importance/gain/f0"] == model.get_score(importance_type="gain")["f0"]


def test_trees_are_those_of_xgboosts_own_table(tmp_path: Path):
    pandas = pytest.importorskip("pandas", reason="XGBoost makes its table with pandas")
    model = train(tmp_path, num_class=3, objective="multi:softprob", eval_metric="mlogloss")
    table = model.trees_to_dataframe()

    for step, values in saved(tmp_path).items():
        expected = table[table.Tree.isin(range(3 * step, 3 * step + 3))].sort_values(["Tree", "Node"])
        for column in ("Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing", "Gain", "Cover"):
            theirs = expected[column].to_numpy()
            if values[f"trees/{column}"].dtype.kind == "U":
                theirs = np.where(pandas.isna(theirs), "nan", theirs).astype(str)
                assert list(values[f"trees/{column}"]) == list(theirs)
            else:
                np.testing.assert_allclose(values[f"trees/{column}"], theirs.astype(float), rtol=1e-5)


def test_rounds_can_be_left_out(tmp_path: Path):
    train(tmp_path, options={"every": 2})
    steps = saved(tmp_path)

    assert list(steps) == [0, 2, 4]
    assert "labels" not in steps[0]


def test_a_linear_booster_has_weights_and_no_trees(tmp_path: Path):
    train(tmp_path, booster="gblinear")
    names = set(saved(tmp_path)[0])

    assert "feature_importance/weight/f0" in names
    assert not any(name.startswith("trees/") for name in names)


def test_a_cross_validation_saves_its_metrics(tmp_path: Path):
    xgboost.cv(PARAMETERS, samples(), 3, callbacks=[callback(tmp_path)])

    assert {"train-logloss", "test-logloss"} < set(saved(tmp_path)[2])


def test_a_categorical_split_has_no_threshold(tmp_path: Path):
    codes = np.random.default_rng(0).integers(0, 8, 300)
    data = xgboost.DMatrix(codes[:, None].astype(np.float32), (codes % 2), feature_types=["c"], enable_categorical=True)
    model = xgboost.train({"objective": "binary:logistic"}, data, 1)

    assert np.isnan(tree_columns(model, 0)["Split"]).all()


def test_a_file_named_stop_ends_the_training(tmp_path: Path):
    (tmp_path / "STOP").write_bytes(b"")
    model = train(tmp_path, rounds=50)

    assert model.num_boosted_rounds() == 1


def test_the_model_is_the_same_with_and_without_the_callback(tmp_path: Path):
    plain = xgboost.train(PARAMETERS, samples(), 5)

    assert train(tmp_path).get_dump() == plain.get_dump()


def test_a_folder_that_cannot_be_written_ends_no_training(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")

    assert train(tmp_path / "file" / "trial").num_boosted_rounds() == 5


def test_a_healthy_training_is_quiet(tmp_path: Path):
    train(tmp_path, rounds=30, max_depth=3)

    assert findings(tmp_path) == {}


def test_a_model_that_learns_noise_by_heart_is_found(tmp_path: Path):
    noise = xgboost.DMatrix(np.random.default_rng(0).normal(size=(3000, 6)), np.arange(3000) % 2)
    train(tmp_path, data=noise, rounds=40, max_depth=16, min_child_weight=0, eta=1.0)

    assert findings(tmp_path)["Overfit"] == "validation-logloss"


def test_training_that_follows_one_feature_is_found(tmp_path: Path):
    x = np.random.default_rng(0).normal(size=(300, 6))
    train(tmp_path, data=xgboost.DMatrix(x, (x[:, 2] > 0).astype(int)), rounds=10)

    assert "FeatureImportanceOverweight" in findings(tmp_path)
