"""What a logged name says: which way it should go, and whether it is the whole loss."""

from __future__ import annotations

import pytest

from builtin_rules.losses._names import is_total, kind_of, should_rise


@pytest.mark.parametrize(
    "name",
    [
        "accuracy",
        "val_accuracy",
        "acc",
        "top5_acc",
        "Accuracy",
        "SparseCategoricalAccuracy",
        "validation-auc",
        "train-map@5",
        "ndcg@10-",
        "aucpr",
        "r2",
        "r2_score",
        "f1",
        "F1_macro",
        "bleu4",
        "mIoU",
        "mean_iou",
        "binary_accuracy_1",
        "metrics/precision:0",
        "recall_2",
        "auROC",
        "PSNR",
    ],
)
def test_these_should_rise(name: str):
    assert should_rise(name)


@pytest.mark.parametrize(
    "name",
    [
        "loss",
        "val_loss",
        "CrossEntropyLoss_output_0",
        "train-rmse",
        "validation-error",
        "train-logloss",
        "train-mape",
        "mae",
        "dice_loss",
        "accuracy_loss",
        "f1_loss",
        "feature_map_loss",
        "perplexity",
        "nll",
        "train-error@0.5",
        "gamma-deviance",
        "mlogloss",
        "merror",
    ],
)
def test_these_should_fall(name: str):
    assert not should_rise(name)


@pytest.mark.parametrize("name", ["reward_std", "rewards/chosen", "frac_reward_zero_std"])
def test_what_goes_with_a_metric_is_neither_a_loss_nor_a_metric(name: str):
    assert (should_rise(name), kind_of(name)) == (True, None)


@pytest.mark.parametrize("name", ["accuracy", "train-rmse", "loss", "", "batch", "0", "_", "\x00", "損失"])
def test_every_name_has_at_most_one_kind(name: str):
    assert should_rise(name) is (kind_of(name) == "rising_metrics")


@pytest.mark.parametrize(
    "name",
    ["loss", "train_loss", "val/loss", "Validation Loss", "train_loss_epoch", "ValLoss", "loss_1", "eval-loss:0"],
)
def test_this_is_the_whole_loss(name: str):
    assert is_total(name)


@pytest.mark.parametrize(
    "name", ["minibatch_train_loss", "box_loss", "train-logloss", "CrossEntropyLoss_output_0", "rmse", "train", ""]
)
def test_this_may_be_a_part_of_it(name: str):
    assert not is_total(name)
