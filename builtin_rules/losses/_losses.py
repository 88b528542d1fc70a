"""What rules about losses share: what counts as one number of a loss, and which metrics are no losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from builtin_rules.losses._names import REWARDS, should_rise
from evaluator.rule import Column, Decided, Measure, Selection, Summary, Window
from evaluator.segments import Bools, Floats, Segments


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

REINFORCED = Summary(Selection(regexes=(REWARDS,)), by=LOSS, triggers=False)
"""The rewards of a run; their columns tell whether there are any."""


def reinforced(rewards: Window) -> Decided:
    """Why the losses of such a run are not judged.

    Our choice: in reinforcement learning the data change with the policy, so a loss that rises or stands still says
    nothing about whether it learns.
    """
    return Decided(f"a reward is logged ({rewards.columns[0].tensor}), so a loss need not fall")
