"""What rules about losses share: what counts as one number of a loss, and which metrics are no losses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from evaluator.rule import Column, Measure
from evaluator.segments import Bools, Floats, Segments

RISING = frozenset(
    {
        "acc",
        "accuracy",
        "ap",
        "auc",
        "aucpr",
        "auprc",
        "auroc",
        "bleu",
        "cider",
        "dice",
        "f1",
        "f2",
        "fbeta",
        "fscore",
        "gini",
        "hits",
        "iou",
        "jaccard",
        "kappa",
        "map",
        "mcc",
        "meteor",
        "miou",
        "mrr",
        "ndcg",
        "pearson",
        "pre",
        "precision",
        "psnr",
        "r2",
        "recall",
        "reward",
        "rouge",
        "score",
        "sensitivity",
        "spearman",
        "specificity",
        "ssim",
    }
)
"""Words in the names of metrics that are better when they are larger."""
FALLING = frozenset({"loss", "losses", "error", "err", "nll", "perplexity"})
"""Words that make a loss of any name: `dice_loss`, `error`."""

_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@lru_cache(maxsize=4096)
def should_rise(name: str) -> bool:
    """Whether a metric of this name is better when it is larger, so that it must not be judged as a loss.

    Our choice, by the words in the name, because nothing else that is saved tells. XGBoost's `auc`, `map@5` and `ndcg-`
    are among them. (SageMaker left only auc and map out of a run's losses; user report 28.)
    """
    words: set[str] = set()
    for part in _SEPARATORS.split(name):
        words |= {part.lower(), part.rstrip("0123456789").lower()}
        words |= {word.lower() for word in _CAMEL.findall(part)}
    return not words & FALLING and bool(words & RISING)


def falling(columns: Sequence[Column]) -> Bools:
    """Per column whether it should fall."""
    return np.array([not should_rise(column.tensor) for column in columns], np.bool_)


def left_out(columns: Sequence[Column]) -> list[str]:
    """The tensors that are not judged because they should rise."""
    return list(dict.fromkeys(column.tensor for column in columns if should_rise(column.tensor)))


def loss_and_size(segments: Segments) -> Floats:
    """(tensors, 2): the mean, which is the value itself of a scalar, and the number of elements."""
    return np.stack([segments.mean(segments.real), segments.counts.astype(np.float64)], axis=1)


def scalar_in_reductions(saved: Mapping[str, Floats]) -> Floats:
    """The same where only reductions were saved: one element is as good as any if the smallest is the largest."""
    if "min" not in saved or "max" not in saved:
        return np.full((len(next(iter(saved.values()))), 2), np.nan)
    low, high = saved["min"], saved["max"]
    return np.stack([low, np.where((low == high) | np.isnan(low), 1.0, np.nan)], axis=1)


LOSS = Measure(loss_and_size, width=2, kinds="fiub", reductions=("min", "max"), from_reductions=scalar_in_reductions)
"""Value and size of a loss. Only scalars count: the collection `losses` may also hold what a loss was computed of."""
