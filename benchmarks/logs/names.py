"""Which collection a logged name belongs to, told from the name alone."""

from __future__ import annotations

from collections.abc import Iterable

from builtin_rules.losses._names import FALLING, LOSSES, RISING, kind_of, words

METRICS = "metrics"
LIKE_A_LOSS = frozenset({"error", "err", "mse", "mae", "rmse", "mape"})
"""Errors that are trained on where nothing else is called a loss (as in boosting)."""


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
