"""LossNotDecreasing's method `sagemaker`: whether a loss fell enough since so many steps ago."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from builtin_rules.losses._losses import falling, left_out
from evaluator.rule import Met, NotYet, Verdict, Window
from evaluator.segments import Bools, Floats

Rows = NDArray[np.int64]
Codes = NDArray[np.int8]


class Limits(NamedTuple):
    """By how many percent a loss must fall at least, or may rise at most."""

    diff_percent: float
    rise_percent: float


def newest_and_earlier(usable: Bools, steps: Rows, num_steps: int) -> tuple[Rows, Rows, Bools]:
    """Per column the rows of two values to compare, and whether there are two.

    The newest value since the last check, that is within `num_steps` steps, and the newest one at least `num_steps`
    steps before it. Our choice: this is called for each mode by itself, and a loss that was not saved at the very step
    of the check is judged all the same, because else a loss with another rhythm would never be.
    """
    recent = usable & (steps > steps[-1] - num_steps)[:, None]
    newest = _last(recent)
    earlier = usable & (steps[:, None] <= steps[newest] - num_steps)
    return newest, _last(earlier), recent.any(axis=0) & earlier.any(axis=0)


def fall_percent(loss: Floats, before: Floats) -> Floats:
    """By how much it fell, in percent of the magnitude it had; negative when it rose, NaN when nobody can say.

    Our choice: from zero, a fall is infinite, and standing still or rising counts as no fall.
    """
    percent = np.divide(100.0 * (before - loss), np.abs(before), where=before != 0, out=np.zeros_like(loss))
    return np.where((before == 0) & (loss < 0), np.inf, np.where(np.isnan(loss), np.nan, percent))


def enough(loss: Floats, before: Floats, limits: Limits) -> Bools:
    """Whether it fell enough.

    Our choice of two readings of the documented text: a loss that fell or stood still must have fallen by
    `diff_percent`; one that rose is tolerated up to `increase_threshold_percent`. A loss that is NaN or infinite has
    not decreased (user report 34: NaN must not count as an improvement); one that was, and is finite now, has.
    """
    percent = fall_percent(loss, before)
    tolerated: Bools = np.where(percent < 0, -percent <= limits.rise_percent, percent >= limits.diff_percent)
    lost: Bools = np.isnan(loss) | (loss == np.inf)
    return ~lost & (tolerated | ~np.isfinite(before))


def does_not_fall(losses: Window, *, num_steps: int, limits: Limits) -> Verdict:
    """losses: (rows, columns, 2), value and number of elements."""
    should_fall = falling(losses.columns)
    usable = losses.saved & (losses.values[..., 1] == 1) & should_fall
    if not usable.any():
        return NotYet(_nothing_to_judge(losses, should_fall))
    at = np.arange(len(losses.columns))
    judged = np.zeros(len(at), np.bool_)
    stuck = np.zeros(len(at), np.int8)
    told = np.zeros((4, len(at)))
    for mode in np.unique(losses.modes[usable]):
        newest, earlier, both = newest_and_earlier(usable & (losses.modes == mode), losses.steps, num_steps)
        loss, before = losses.values[newest, at, 0], losses.values[earlier, at, 0]
        found = both & ~enough(loss, before, limits) & (stuck == 0)
        told[:, found] = np.stack([loss, losses.steps[newest], before, losses.steps[earlier]])[:, found]
        stuck[found] = mode
        judged |= both
    if not judged.any():
        return NotYet(f"no two losses were saved that are at least {num_steps} steps apart")
    return _met(losses, stuck, told, int(judged.sum()), limits) if stuck.any() else None


def _met(losses: Window, stuck: Codes, told: Floats, judged: int, limits: Limits) -> Met:
    """The finding; `stuck` is the mode of the loss that did not fall, 0 for the others."""
    loss, step, before, step_before = told
    percent = fall_percent(loss, before)
    names = left_out(losses.columns)
    return losses.met(
        stuck > 0,
        measured=percent,
        limit=np.where(percent < 0, -limits.rise_percent, limits.diff_percent),
        of=judged,
        message=_message(loss[stuck > 0]),
        modes=stuck,
        each={
            "loss": loss,
            "saved_at_step": step.astype(np.int64),
            "loss_before": before,
            "compared_with_step": step_before.astype(np.int64),
        },
        details={"not_judged_because_they_should_rise": names} if names else {},
    )


def _message(stuck: Floats) -> str:
    """What is wrong with these losses, in words."""
    if not np.isfinite(stuck).all():
        return "the loss is not finite"
    return "the loss fell by {measured} % since the last check, where {limit} % was the least"


def _nothing_to_judge(losses: Window, should_fall: Bools) -> str:
    if (losses.saved & should_fall).any():
        return "no loss was saved that is a single number"
    return f"only metrics were saved that should rise: {', '.join(left_out(losses.columns)[:5])}"


def _last(saved: Bools) -> Rows:
    """Per column the last row in which it was saved, or the first row."""
    last: Rows = np.where(saved.any(axis=0), len(saved) - 1 - np.argmax(saved[::-1], axis=0), 0)
    return last
