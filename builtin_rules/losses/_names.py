"""What a logged name says: which kind of number it is, which way it should go, and which data it was computed on."""

from __future__ import annotations

import re
from functools import lru_cache

LOSSES = "losses"
RISING = "rising_metrics"
FALLING = "falling_metrics"
GRADIENT_NORMS = "gradient_norms"
LEARNING_RATES = "learning_rates"

LOSS_WORDS = frozenset({"losses", "nll", "nloglik", "ce", "bce", "crossentropy"})
"""Words that are losses without saying so; a word that ends in "loss" does."""
RISING_WORDS = frozenset(
    {
        *("acc", "accuracy", "accuracies", "bacc", "precision", "pre", "recall", "sensitivity", "specificity", "gini"),
        *("f1", "f2", "fbeta", "fscore", "auc", "aucpr", "auprc", "auroc", "mcc", "kappa", "matthews", "score"),
        *("ap", "map", "iou", "miou", "jaccard", "dice", "top", "hits", "hella", "mrr", "ndcg"),
        *("bleu", "cider", "meteor", "rouge", "ssim", "psnr", "r2", "correlation", "spearman", "pearson"),
        *("reward", "rewards", "rew", "margins"),
    }
)
"""Words of metrics that are better when they are larger."""
FALLING_WORDS = frozenset(
    {
        *("error", "err", "merror", "wer", "cer", "mse", "mae", "rmse", "rmsle", "mape", "mphe", "deviance"),
        *("perplexity", "ppl", "fid"),
    }
)
"""Words of metrics that are better when they are smaller."""
NOT_THE_THING = frozenset({"std", "lambda", "rate", "cost", "frac", "zero", "chosen", "rejected", "len", "length"})
"""Words that make something else of a metric's name: its spread, weight or share, or one half of a comparison."""

EVALUATION_WORDS = frozenset({"val", "validation", "valid", "test", "eval", "dev"})
SPLIT_WORDS = EVALUATION_WORDS | {"train", "training", "learn"}
"""Words that say which data a loss was computed on."""
PLAIN_WORDS = SPLIT_WORDS | {"step", "epoch", "mean", "avg", "total", "running"}
"""Words that leave a loss the loss: where it was computed, and over how much of it."""

REWARDS = r"(?i)(^|[/_. -])((ep(isode)?_)?(rew(ard)?|return)(_mean)?|mean_(reward|return))$"
"""Names of rewards: the sign of reinforcement learning."""
NORMS_OF_GRADIENTS = r"(?i)(^|[/_. -])grad(ient)?s?[/_. -]?norm([/_. -](avg|mean|total))?$"
"""Names of norms over all gradients; longer names may be tensors, which are large."""
KERAS_LOSSES = r"^val_(\w+_)?loss$"
"""Keras saves the validation loss in no collection."""
METRIC_NAMES = r"(?i)(^|[/_. -])(acc(uracy)?|auc|precision|recall|f1|m?iou|bleu)[_@]?[0-9]*$"
"""Metrics that no collection need hold; words that end the names of large tensors too (map, score) are not here."""


@lru_cache(maxsize=4096)
def words(name: str) -> frozenset[str]:
    """The words of a name in lower case, without their numbers: `metrics/mAP50-95(B)` is metrics, map, b."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", name).lower().replace("cross entropy", "crossentropy")
    parts = re.findall(r"[a-z][a-z0-9]*", spaced)
    # f1 and r2 are words as they stand
    return frozenset(part if part in RISING_WORDS else part.rstrip("0123456789") for part in parts)


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str | None:
    """The one kind of a name: a loss, a rising or falling metric, a gradient norm, a learning rate, or none.

    Our choice, by the words in the name, because nothing else that is saved tells. The first that applies: a learning
    rate says lr or learning rate; a gradient norm says grad and norm; a loss has a word that ends in "loss", or is one
    of LOSS_WORDS; a metric has one of the words above and none of NOT_THE_THING.
    """
    has = words(name)
    if "lr" in has or {"learning", "rate"} <= has:
        return LEARNING_RATES
    if "norm" in has and has & {"grad", "gradient"}:
        return GRADIENT_NORMS
    if _names_a_loss(has):
        return LOSSES
    if has & NOT_THE_THING:
        return None
    if has & FALLING_WORDS:
        return FALLING
    return RISING if has & RISING_WORDS else None


@lru_cache(maxsize=4096)
def should_rise(name: str) -> bool:
    """Whether what is logged under this name is better when it is larger, so that it must not be judged as a loss.

    XGBoost's `auc`, `map@5` and `ndcg-` are among them. (SageMaker left only auc and map out of a run's losses; user
    report 28.) Also what is no metric by itself, as the spread of a reward, is no loss.
    """
    has = words(name)
    return bool(has & RISING_WORDS) and not has & FALLING_WORDS and not _names_a_loss(has)


@lru_cache(maxsize=4096)
def is_total(name: str) -> bool:
    """Whether this is the whole loss and not a part of it: nothing is said of it but where it was computed.

    Our choice: `minibatch_train_loss` and `box_loss` are not; `val/loss_epoch` is. A loss with a name of its own may be
    one of several that are added up, or something beside the loss.
    """
    has = words(name)
    return "loss" in has and has - PLAIN_WORDS == {"loss"}


@lru_cache(maxsize=4096)
def of_evaluation(name: str) -> bool:
    """Whether the name says that this was computed on data that are not trained on."""
    return bool(words(name) & EVALUATION_WORDS)


@lru_cache(maxsize=4096)
def split_of(name: str) -> frozenset[str]:
    """On which data it was computed, as far as the name tells: losses of one split are parts of one loss."""
    return words(name) & SPLIT_WORDS


def _names_a_loss(has: frozenset[str]) -> bool:
    return bool(has & LOSS_WORDS) or any(word.endswith("loss") for word in has)
