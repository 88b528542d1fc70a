"""What a logged name says of a loss or metric: which way it should go, and whether it is the whole loss."""

from __future__ import annotations

from functools import lru_cache

from evaluator.scalar_names import (
    FALLING,
    FALLING_WORDS,
    GRADIENT_NORMS,
    LEARNING_RATES,
    LOSSES,
    PLAIN_WORDS,
    RISING,
    RISING_WORDS,
    SPLIT_WORDS,
    kind_of,
    names_a_loss,
    of_evaluation,
    words,
)

REWARDS = r"(?i)(^|[/_. -])((ep(isode)?_)?(rew(ard)?|return)(_mean)?|mean_(reward|return))$"
"""Names of rewards: the sign of reinforcement learning."""
NORMS_OF_GRADIENTS = r"(?i)(^|[/_. -])grad(ient)?s?[/_. -]?norm([/_. -](avg|mean|total))?$"
"""Names of norms over all gradients; longer names may be tensors, which are large."""
KERAS_LOSSES = r"^val_(\w+_)?loss$"
"""Keras saves the validation loss in no collection."""
METRIC_NAMES = r"(?i)(^|[/_. -])(acc(uracy)?|auc|precision|recall|f1|m?iou|bleu)[_@]?[0-9]*$"
"""Metrics that no collection need hold; words that end the names of large tensors too (map, score) are not here."""


@lru_cache(maxsize=4096)
def should_rise(name: str) -> bool:
    """Whether what is logged under this name is better when it is larger, so that it must not be judged as a loss.

    XGBoost's `auc`, `map@5` and `ndcg-` are among them. (SageMaker left only auc and map out of a run's losses; user
    report 28.) Also what is no metric by itself, as the spread of a reward, is no loss.
    """
    has = words(name)
    return bool(has & RISING_WORDS) and not has & FALLING_WORDS and not names_a_loss(has)


@lru_cache(maxsize=4096)
def is_total(name: str) -> bool:
    """Whether this is the whole loss and not a part of it: nothing is said of it but where it was computed.

    Our choice: `minibatch_train_loss` and `box_loss` are not; `val/loss_epoch` is. A loss with a name of its own may be
    one of several that are added up, or something beside the loss.
    """
    has = words(name)
    return "loss" in has and has - PLAIN_WORDS == {"loss"}


@lru_cache(maxsize=4096)
def split_of(name: str) -> frozenset[str]:
    """On which data it was computed, as far as the name tells: losses of one split are parts of one loss."""
    return words(name) & SPLIT_WORDS


__all__ = [
    "FALLING",
    "GRADIENT_NORMS",
    "KERAS_LOSSES",
    "LEARNING_RATES",
    "LOSSES",
    "METRIC_NAMES",
    "NORMS_OF_GRADIENTS",
    "REWARDS",
    "RISING",
    "is_total",
    "kind_of",
    "of_evaluation",
    "should_rise",
    "split_of",
    "words",
]
