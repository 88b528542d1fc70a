"""What a logged name says: which kind of number it is, which way it should go, and which data it was computed on.

Logs of scalars have no collections and often no modes; these rules tell both, from the names alone, so that rules
about losses and metrics work on them with no configuration.

Words. A name is split into words at everything that is no letter or digit and where a capital follows a small letter;
numbers at the end of a word do not count.

Collections. The first that applies:

1. `learning_rates`: the word lr, or the words learning and rate.
2. `gradient_norms`: the word norm beside grad or gradient.
3. `losses`: a word that ends in "loss", or nll, ce, bce, crossentropy.
4. Nothing: a word that makes something else of a metric (std, rate, cost, rejected, length, ...).
5. `falling_metrics` (smaller is better): error, wer, mse, mae, rmse, perplexity, ...
6. `rising_metrics` (larger is better): accuracy, precision, recall, f1, auc, map, iou, bleu, reward, ...

`metrics` holds the rising and the falling ones.
Where no name is a loss, the errors that can be trained on (error, mse, mae, rmse, mape) are the losses too.

Modes. A value whose row or folder says its mode has that mode. Otherwise EVAL if the name has one of the words val,
validation, valid, eval, evaluation, test, dev, or begins with "metrics/" (as Ultralytics names what it computes on
validation data), and TRAIN if not.

Both can be overridden: see `Naming`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from evaluator.modes import Mode

LOSSES = "losses"
METRICS = "metrics"
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
LIKE_A_LOSS = frozenset({"error", "err", "mse", "mae", "rmse", "mape"})
"""Errors that are trained on where nothing else is called a loss (as in boosting)."""
NOT_THE_THING = frozenset({"std", "lambda", "rate", "cost", "frac", "zero", "chosen", "rejected", "len", "length"})
"""Words that make something else of a metric's name: its spread, weight or share, or one half of a comparison."""

EVALUATION_WORDS = frozenset({"val", "validation", "valid", "test", "eval", "dev"})
TRAINING_WORDS = frozenset({"train", "training", "learn"})
SPLIT_WORDS = EVALUATION_WORDS | TRAINING_WORDS
"""Words that say which data a loss was computed on."""
PLAIN_WORDS = SPLIT_WORDS | {"step", "epoch", "mean", "avg", "total", "running"}
"""Words that leave a loss the loss: where it was computed, and over how much of it."""

MODE_WORDS: Mapping[str, Mode] = {
    **dict.fromkeys([*TRAINING_WORDS, "fit"], Mode.TRAIN),
    **dict.fromkeys([*EVALUATION_WORDS, "evaluation"], Mode.EVAL),
    **dict.fromkeys(["predict", "prediction", "inference"], Mode.PREDICT),
    "global": Mode.GLOBAL,
}
"""What a column `mode` or the name of a folder can say."""
ON_VALIDATION_DATA = "metrics/"
"""How names begin of what Ultralytics computes on validation data."""


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

    Our choice, by the words in the name, because nothing else that is saved tells.
    """
    has = words(name)
    if "lr" in has or {"learning", "rate"} <= has:
        return LEARNING_RATES
    if "norm" in has and has & {"grad", "gradient"}:
        return GRADIENT_NORMS
    if names_a_loss(has):
        return LOSSES
    if has & NOT_THE_THING:
        return None
    if has & FALLING_WORDS:
        return FALLING
    return RISING if has & RISING_WORDS else None


def names_a_loss(has: frozenset[str]) -> bool:
    """Whether one of these words says "loss"."""
    return bool(has & LOSS_WORDS) or any(word.endswith("loss") for word in has)


@lru_cache(maxsize=4096)
def of_evaluation(name: str) -> bool:
    """Whether the name says that this was computed on data that are not trained on."""
    return bool(words(name) & EVALUATION_WORDS)


def collections_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Collection -> names. `metrics` holds the rising and the falling ones.

    Where no name is a loss, the errors that can be trained on (LIKE_A_LOSS) are the losses; they stay metrics too.
    """
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        kind = kind_of(name)
        if kind is not None:
            found.setdefault(kind, []).append(name)
        if kind in {RISING, FALLING}:
            found.setdefault(METRICS, []).append(name)
    if LOSSES not in found:
        errors = [name for name in found.get(FALLING, []) if LIKE_A_LOSS & words(name)]
        if errors:
            found[LOSSES] = errors
    return found


def mode_said(text: object) -> Mode | None:
    """The mode that a column `mode` or a folder's name says; None when it says none."""
    if not isinstance(text, str):
        return None
    plain = text.strip().lower()
    found = {MODE_WORDS[word] for word in (plain, *words(plain)) if word in MODE_WORDS}
    if not found:
        return None
    return Mode.EVAL if Mode.EVAL in found else min(found)


def mode_of(name: str) -> Mode:
    """The mode of a value of which only the name is known."""
    evaluated = of_evaluation(name) or "evaluation" in words(name) or name.startswith(ON_VALIDATION_DATA)
    return Mode.EVAL if evaluated else Mode.TRAIN


@dataclass(frozen=True)
class Naming:
    """What names mean where somebody knows better than the rules above.

    Args:
        collections: collection -> patterns, searched in names; replaces the inferred collection of that name, or
            adds one.
        modes: mode -> patterns; the first mode in the order given in which one is found is that of the value, whatever
            its row or folder says.
    """

    collections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    modes: Mapping[Mode, tuple[str, ...]] = field(default_factory=dict)

    def and_then(self, other: Naming) -> Naming:
        """The same, and what another one says; of a name that both have, what the other one says."""
        return Naming({**self.collections, **other.collections}, {**self.modes, **other.modes})

    def mode(self, name: str, said: Mode | None) -> Mode:
        """The mode of a value whose row or folder says `said`."""
        for mode, patterns in self.modes.items():
            if any(re.search(pattern, name) for pattern in patterns):
                return mode
        return mode_of(name) if said is None else said
