"""What Overfit (method `trend`) remembers of validation losses: their best, and what training stood at then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from builtin_rules.losses._judged import judged_losses
from builtin_rules.losses._layout import EVALUATION, TRAINING, layout_of, values_of
from builtin_rules.losses._slots import push, with_room
from evaluator.rule import Accumulator, Column, Row, State
from evaluator.segments import Array, Floats

RECENT = 21
"""Values that are kept: their 20 changes tell the noise."""
TRAINING_VALUES = 5
"""Training losses are compared by means of so many values: single batches are noise."""
LAST = 3
"""Evaluations after the best one whose mean must be up too, because single ones are unlucky."""
BESIDE = 4
"""Training losses of the worker that are looked at: there are one or two."""

BEST, BEST_STEP, SINCE, VALUE, STEP, MODE, PARTS, ENDED = range(8)
"""Of a track: the lowest value and its step, how many came after it, the newest value, its step and mode, of how many
parts it is the sum, and whether it has become infinite or NaN, which ends it."""
BESIDE_BEST = slice(8, 8 + BESIDE)
"""Of a track, after these: what the training losses stood at when it had its lowest value."""
NEW = (math.inf, -1.0, 0.0, math.nan, -1.0, 0.0, 0.0, 0.0, *[math.nan] * BESIDE)


class PastBest(NamedTuple):
    """A validation loss that stands above its best."""

    column: int
    mode: int
    best: float
    best_step: int
    since: int
    step: int
    value: float
    last: float
    """The mean of the last three values after the best, or as many as there are."""
    change: float
    """The mean change between the last 20 evaluations; NaN with one."""
    training: float
    """By how many times the training losses have risen since, the most of them; NaN when there are none."""


def start() -> dict[str, Array]:
    """No loss was seen yet."""
    return {
        "carriers": np.zeros(0, np.int64),
        "tracks": np.zeros((0, len(NEW))),
        "recent": np.zeros((0, RECENT)),
    }


def add(state: dict[str, Array], row: Row) -> dict[str, Array]:
    """The tracks after the losses of a row, one per slot; training first, so that what belongs together does."""
    carriers, losses, changed = judged_losses(state["carriers"], layout_of(row), values_of(row))
    slots = len(carriers)
    tracks = with_room(state["tracks"], slots, NEW)
    recent = with_room(state["recent"], slots, math.nan)
    if changed:
        tracks[changed], recent[changed], tracks[:, BESIDE_BEST] = NEW, math.nan, math.nan
    for (slot, mode, parts, _), value in losses:
        track = tracks[slot].tolist()
        track[VALUE], track[STEP], track[MODE], track[PARTS] = value, row.step, mode, parts
        if not math.isfinite(value):
            track[ENDED] = 1.0
        elif not track[ENDED]:
            push(recent[slot], value)
            if value < track[BEST]:
                track[BEST], track[BEST_STEP], track[SINCE] = value, row.step, 0.0
                if slot % 2 == EVALUATION:
                    track[BESIDE_BEST] = levels_beside(row.columns, carriers, recent, slot)
            else:
                track[SINCE] += 1
        tracks[slot] = track
    return {"carriers": carriers, "tracks": tracks, "recent": recent}


PAST_BEST = Accumulator(start, add)


def levels_beside(columns: Sequence[Column], carriers: Array, recent: Floats, slot: int) -> list[float]:
    """The mean of the last values of each training loss of the worker."""
    worker = columns[slot // 2].worker
    beside = [
        other
        for other in range(TRAINING, len(carriers), 2)
        if carriers[other] == other and columns[other // 2].worker == worker
    ][:BESIDE]
    return [mean(recent[other, -TRAINING_VALUES:].tolist()) for other in beside] + [math.nan] * (BESIDE - len(beside))


def past_best(losses: State) -> list[PastBest]:
    """The validation losses that were saved, of those that are no sums and did not become NaN or infinite."""
    carriers, recent = losses["carriers"], losses["recent"]
    found = []
    for slot in range(EVALUATION, len(carriers), 2):
        track = losses["tracks"][slot].tolist()
        if carriers[slot] != slot or track[PARTS] != 1 or track[ENDED]:
            continue
        now = levels_beside(losses.columns, carriers, recent, slot)
        then = track[BESIDE_BEST]
        times = [ratio(new, old) for new, old in zip(now, then, strict=True)]
        since = int(track[SINCE])
        after = recent[slot, -min(LAST, since) :].tolist() if since else []
        found.append(
            PastBest(
                column=slot // 2,
                mode=int(track[MODE]),
                best=track[BEST],
                best_step=int(track[BEST_STEP]),
                since=since,
                step=int(track[STEP]),
                value=track[VALUE],
                last=mean(after),
                change=mean(np.abs(np.diff(recent[slot])).tolist()),
                training=max((one for one in times if not math.isnan(one)), default=math.nan),
            )
        )
    return found


def ratio(new: float, old: float) -> float:
    """By how many times a training loss has risen; NaN when one of the two is unknown.

    Our choice: one of zero or less has risen beyond all bounds if it is larger now, and not at all otherwise.
    """
    if math.isnan(new) or math.isnan(old):
        return math.nan
    if old > 0:
        return new / old
    return math.inf if new > old else 0.0


def mean(values: Sequence[float]) -> float:
    """The mean of those that are not NaN, as what was not saved yet is; NaN without any."""
    there = [value for value in values if not math.isnan(value)]
    return sum(there) / len(there) if there else math.nan
