"""What rules about activations share: the units of a layer, and how many of them hardly ever do anything."""

from __future__ import annotations

from typing import Literal

import numpy as np

from evaluator.segments import Bools

Units = Literal["elements", "channels"]


def inactive_percent(active: Bools, threshold_inactivity: float, units: Units) -> tuple[float, int]:
    """The percentage of units that are active for less than `threshold_inactivity` percent of samples; the samples.

    Our choice: the first axis is the batch. Each place along the other axes is a unit (`elements`), or each channel of
    a tensor of more than two axes, whose other places count as samples (`channels`). Of a tensor of one axis each
    element is a unit, of one sample. Whether the channel is axis 1 (PyTorch) or the last one (TensorFlow) is not saved:
    both are tried, and the larger percentage counts, because along an axis that is none every place is active.
    """
    if active.ndim < 2:
        active = active.reshape(1, -1)
    if units == "elements" or active.ndim == 2:
        return _inactive(active.reshape(len(active), -1), threshold_inactivity)
    by_axis = [_inactive(_last(active, axis), threshold_inactivity) for axis in (1, active.ndim - 1)]
    return max(by_axis)


def _last(active: Bools, axis: int) -> Bools:
    """(samples, units) with this axis as the units."""
    return np.moveaxis(active, axis, -1).reshape(-1, active.shape[axis])


def _inactive(active: Bools, threshold_inactivity: float) -> tuple[float, int]:
    activity = 100.0 * np.count_nonzero(active, axis=0) / len(active)
    return 100.0 * float(np.mean(activity < threshold_inactivity)), len(active)
