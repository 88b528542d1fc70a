"""LossNotDecreasing's method `trend`: whether the level of a training loss was ever lower than where it began."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from builtin_rules.losses._layout import EVALUATION, TRAINING
from builtin_rules.losses._levels import (
    COUNT,
    ENDED,
    FIRST,
    LEVEL,
    LOWEST,
    MODE,
    PARTS,
    STEP,
    lowest_level,
    tracks_of,
)
from builtin_rules.losses._losses import left_out, reinforced
from evaluator.rule import Column, NotYet, ProgressView, State, Verdict, Window
from evaluator.segments import Bools, Floats


def fallen_percent(track: Sequence[float]) -> float:
    """By how much the lowest level is below the first one, in percent of the first; NaN where nobody can say."""
    first, lowest = track[FIRST], lowest_level(track)
    if first == 0:
        # what lies below zero is so by more than any percentage of it
        return math.inf if lowest < 0 else math.nan
    return 100 * (first - lowest) / abs(first)


def long_enough(tracks: Floats, points: int, points_at_end: int, progress: ProgressView) -> Bools:
    """Whether a loss has had its time to fall.

    Our choice: `points` values, or at the end of the run `points_at_end` if they reach into its second half: fewer are
    often the first epoch only, and a loss that was not logged any more says nothing about what came after.
    """
    count = tracks[COUNT]
    enough = count >= points
    if progress.ended:
        last = float(progress.last_step.max(initial=0))
        enough = enough | ((count >= points_at_end) & (2 * tracks[STEP] >= last))
    judged: Bools = enough & (tracks[ENDED] == 0)
    return judged


def fell_elsewhere(columns: Sequence[Column], fell: Bools) -> Bools:
    """Per column whether this loss fell on some worker.

    Our choice: the workers of a run train one model, each on its own batches; where it learns on one, it learns.
    """
    names = {columns[at].tensor for at in np.flatnonzero(fell).tolist()}
    return np.array([column.tensor in names for column in columns], np.bool_)


def never_fell(
    losses: State,
    rewards: Window,
    progress: ProgressView,
    *,
    evaluation: bool,
    fall_percent: float,
    points: int,
    points_at_end: int,
) -> Verdict:
    """losses["tracks"]: the first level of each loss, and the lowest it had; those of evaluation only if asked for.

    Our choice: a loss that was once lower has learned something. Whether it still falls says nothing: a run that has
    converged stands still. A first level of zero cannot fall by a percentage, and a loss that became NaN is not judged.
    """
    if rewards.columns:
        return reinforced(rewards)
    tracks = tracks_of(losses, EVALUATION if evaluation else TRAINING)
    percents = [fallen_percent(track) for track in tracks.T.tolist()]
    known = [percent for percent in percents if not math.isnan(percent)]
    # first what is quickly told: all fell
    if known and min(known) >= fall_percent:
        return None
    percent = np.array(percents)
    due = long_enough(tracks, points, points_at_end, progress)
    fell = percent >= fall_percent
    if not (due.any() or fell.any()):
        most = int(max(tracks[COUNT].tolist(), default=0))
        return NotYet(
            f"no loss has more than {most} of {points} finite values so far, or of {points_at_end} at the end"
        )
    stuck = due & (percent < fall_percent) & ~fell_elsewhere(losses.columns, fell)
    if not stuck.any():
        return None
    names = left_out(losses.columns)
    return losses.met(
        stuck,
        measured=percent,
        limit=fall_percent,
        of=int((due | fell).sum()),
        message="the loss was never lower than where it began by more than {measured} %, {limit} % is the least",
        modes=tracks[MODE].astype(np.int8),
        each={
            "first_level": tracks[FIRST],
            "lowest_level": np.fmin(tracks[LOWEST], tracks[LEVEL]),
            "values": tracks[COUNT].astype(np.int64),
            "sum_of": tracks[PARTS].astype(np.int64),
        },
        details={"not_judged_because_they_should_rise": names} if names else {},
    )
