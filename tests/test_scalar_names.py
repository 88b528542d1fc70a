"""What names of scalars tell: collections and modes, and how a configuration overrides them."""

from __future__ import annotations

import pytest

from builtin_rules.losses import _names
from evaluator.modes import Mode
from evaluator.scalar_names import Naming, collections_of, mode_of, mode_said


@pytest.mark.parametrize(
    "name",
    [
        *("val_loss", "eval_loss", "eval/loss", "Validation Loss", "valid_acc", "test/wer", "dev_f1", "ValLoss"),
        *("epoch_val_loss", "evaluation_loss_vs_iterations", "metrics/mAP50(B)", "validation-auc"),
    ],
)
def test_these_are_of_evaluation(name: str):
    assert mode_of(name) is Mode.EVAL


@pytest.mark.parametrize(
    "name", ["loss", "train_loss", "train/loss", "accuracy", "lr", "latest", "interval", "evaluate", "my/metrics/x", ""]
)
def test_these_are_of_training(name: str):
    assert mode_of(name) is Mode.TRAIN


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("train", Mode.TRAIN),
        ("TRAIN", Mode.TRAIN),
        (" Training ", Mode.TRAIN),
        ("fit", Mode.TRAIN),
        ("val", Mode.EVAL),
        ("Validation", Mode.EVAL),
        ("eval_2", Mode.EVAL),
        ("Loss_validation", Mode.EVAL),
        ("train_eval", Mode.EVAL),
        ("test", Mode.EVAL),
        ("predict", Mode.PREDICT),
        ("global", Mode.GLOBAL),
        ("run_7", None),
        ("checkpoint", None),
        ("", None),
        (3, None),
        (None, None),
    ],
)
def test_a_column_or_folder_can_say_the_mode(text: object, mode: Mode | None):
    assert mode_said(text) is mode


def test_what_a_row_says_counts_before_the_name():
    assert (Naming().mode("val_loss", Mode.TRAIN), Naming().mode("val_loss", None)) == (Mode.TRAIN, Mode.EVAL)


def test_what_a_configuration_says_counts_before_the_row():
    naming = Naming(modes={Mode.PREDICT: ("^p_",), Mode.EVAL: ("loss", "^q")})
    found = [naming.mode(name, Mode.TRAIN) for name in ("p_loss", "the_loss", "q", "x")]

    assert found == [Mode.PREDICT, Mode.EVAL, Mode.EVAL, Mode.TRAIN]


def test_each_name_is_in_one_kind_of_collection():
    names = ["loss", "val_loss", "accuracy", "wer", "grad_norm", "lr", "epoch", "reward_std"]

    assert collections_of(names) == {
        "losses": ["loss", "val_loss"],
        "rising_metrics": ["accuracy"],
        "falling_metrics": ["wer"],
        "metrics": ["accuracy", "wer"],
        "gradient_norms": ["grad_norm"],
        "learning_rates": ["lr"],
    }


def test_the_rules_go_by_the_same_words():
    assert _names.kind_of("val_loss") in collections_of(["val_loss"])
