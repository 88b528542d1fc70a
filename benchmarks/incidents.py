"""Shares of runs, with what can be said of them beyond the runs that were measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """How many of some runs something holds for."""

    hits: int
    of: int

    @property
    def part(self) -> float:
        """Between 0 and 1; NaN of no runs."""
        return self.hits / self.of if self.of else math.nan

    @property
    def bound(self) -> float:
        """What the true share is below, with 95 % confidence."""
        return upper_bound(self.hits, self.of)

    def __str__(self) -> str:
        """As tables show it."""
        return f"{self.hits} of {self.of} ({percent(self.part)})"


def share(hits: Iterable[bool]) -> Share:
    """Count."""
    counted = list(hits)
    return Share(sum(counted), len(counted))


def by_group(hits: Iterable[tuple[str, bool]]) -> float:
    """The mean over groups of the share in each, so that every group weighs the same; NaN of nothing.

    Runs of one repository are alike, so a count of runs is mostly a count of the repository with the most runs.
    """
    groups: dict[str, list[bool]] = {}
    for group, hit in hits:
        groups.setdefault(group, []).append(hit)
    return sum(sum(of) / len(of) for of in groups.values()) / len(groups) if groups else math.nan


def upper_bound(hits: int, of: int, confidence: float = 0.95) -> float:
    """The largest true share under which `hits` or fewer would still be seen with probability 1 - `confidence`.

    Source:
        Clopper and Pearson 1934, one-sided; 0 hits of n give 1 - 0.05 ** (1 / n), about 3 / n.
    """
    if hits >= of:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(hits, of, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def percent(part: float) -> str:
    """A share as text."""
    return "-" if math.isnan(part) else f"{100 * part:.1f} %"


def _at_most(hits: int, of: int, probability: float) -> float:
    """The probability of `hits` or fewer of `of`."""
    return sum(math.comb(of, n) * probability**n * (1 - probability) ** (of - n) for n in range(hits + 1))
