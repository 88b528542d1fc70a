"""Gradient boosting with exact splits, small but real: trees, predictions and importances as XGBoost numbers them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.zoo.run import Array

PULL = 1.0
"""XGBoost's lambda: its default."""


@dataclass
class Tree:
    """The nodes of one tree by number: the children of node n are 2n+1 and 2n+2, as in XGBoost's table."""

    feature: dict[int, int] = field(default_factory=dict)
    split: dict[int, float] = field(default_factory=dict)
    gain: dict[int, float] = field(default_factory=dict)
    cover: dict[int, float] = field(default_factory=dict)
    leaf: dict[int, float] = field(default_factory=dict)

    @property
    def nodes(self) -> list[int]:
        """All node numbers, in order."""
        return sorted(self.cover)

    def predict(self, x: Array) -> Array:
        """The leaf of every point."""
        found = np.zeros(len(x))
        places = {0: np.arange(len(x))}
        for node in self.nodes:
            rows = places[node]
            if node in self.leaf:
                found[rows] = self.leaf[node]
            else:
                low = x[rows, self.feature[node]] < self.split[node]
                places[2 * node + 1], places[2 * node + 2] = rows[low], rows[~low]
        return found


def grow(x: Array, slope: Array, weight: Array, depth: int, rate: float, least: float) -> Tree:
    """One tree for these slopes and second derivatives."""
    tree = Tree()
    places = {0: np.arange(len(x))}
    while places:
        node, rows = places.popitem()
        total, mass = float(slope[rows].sum()), float(weight[rows].sum())
        tree.cover[node] = mass
        best = _best(x[rows], slope[rows], weight[rows], least) if (node + 1).bit_length() <= depth else None
        if best is None:
            tree.leaf[node] = -rate * total / (mass + PULL)
            continue
        tree.gain[node], tree.feature[node], tree.split[node] = best
        low = x[rows, best[1]] < best[2]
        places[2 * node + 1], places[2 * node + 2] = rows[low], rows[~low]
    return tree


def _best(x: Array, slope: Array, weight: Array, least: float) -> tuple[float, int, float] | None:
    """The gain, feature and threshold of the best split; None when there is none."""
    if len(x) < 2:
        return None
    order = np.argsort(x, axis=0, kind="stable")
    values = np.take_along_axis(x, order, axis=0)
    left, mass = np.cumsum(slope[order], axis=0)[:-1], np.cumsum(weight[order], axis=0)[:-1]
    total, all_mass = slope.sum(), weight.sum()
    gain = left**2 / (mass + PULL) + (total - left) ** 2 / (all_mass - mass + PULL) - total**2 / (all_mass + PULL)
    allowed = (np.diff(values, axis=0) > 0) & (mass >= least) & (all_mass - mass >= least)
    gain = np.where(allowed, gain, -np.inf)
    row, feature = np.unravel_index(int(np.argmax(gain)), gain.shape)
    if not gain[row, feature] > 1e-6:
        return None
    return float(gain[row, feature]), int(feature), float(values[row : row + 2, feature].mean())


@dataclass
class Boosting:
    """A model that grows by one tree a round."""

    x: Array
    y: Array
    logistic: bool
    depth: int
    rate: float
    least: float = 1.0
    trees: list[Tree] = field(default_factory=list)
    margin: Array = field(init=False)

    def __post_init__(self) -> None:
        """Start from zero (probability one half), or from the mean."""
        self.margin = np.full(len(self.y), 0.0 if self.logistic else float(self.y.mean()))

    def round(self, change: Callable[[Tree], None] = lambda _: None) -> Tree:
        """Add a tree, after `change` had a look at it."""
        if self.logistic:
            share = 1 / (1 + np.exp(-self.margin))
            slope, weight = share - self.y, share * (1 - share)
        else:
            slope, weight = self.margin - self.y, np.ones(len(self.y))
        tree = grow(self.x, slope, weight, self.depth, self.rate, self.least)
        change(tree)
        self.trees.append(tree)
        self.margin = self.margin + tree.predict(self.x)
        return tree

    def importance(self, what: str) -> dict[int, float]:
        """Feature -> its share of the splits ("weight"), or of the mean gain ("gain")."""
        sums: dict[int, list[float]] = {}
        for tree in self.trees:
            for node, feature in tree.feature.items():
                sums.setdefault(feature, []).append(tree.gain[node] if what == "gain" else 1.0)
        raw = {name: float(np.mean(of) if what == "gain" else np.sum(of)) for name, of in sorted(sums.items())}
        total = sum(raw.values())
        return {name: value / total for name, value in raw.items()}


def tree_columns(tree: Tree, number: int) -> dict[str, Array]:
    """The saved columns of one tree; what a leaf does not have is NaN by format."""
    nodes = tree.nodes
    inner = [node in tree.feature for node in nodes]
    return {
        "trees/Tree": np.full(len(nodes), number),
        "trees/Node": np.array(nodes),
        "trees/ID": np.array([f"{number}-{node}" for node in nodes]),
        "trees/Feature": np.array([f"f{tree.feature[node]}" if node in tree.feature else "Leaf" for node in nodes]),
        "trees/Split": np.array([tree.split.get(node, np.nan) for node in nodes]),
        "trees/Yes": np.array(
            [f"{number}-{2 * node + 1}" if is_in else "nan" for node, is_in in zip(nodes, inner, strict=True)]
        ),
        "trees/No": np.array(
            [f"{number}-{2 * node + 2}" if is_in else "nan" for node, is_in in zip(nodes, inner, strict=True)]
        ),
        "trees/Gain": np.array([tree.gain.get(node, tree.leaf.get(node, 0.0)) for node in nodes]),
        "trees/Cover": np.array([tree.cover[node] for node in nodes]),
    }
