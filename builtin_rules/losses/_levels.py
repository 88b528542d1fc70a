"""The level of a loss: what it stands at, with the noise of single batches taken out.

Source:
    LEAST, PART, MOST and CLIP were chosen on labelled logs of public training runs (docs/detection.md), where a fifth
    more or less of any of them changes no verdict on a healthy run; CHANGES is our choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from builtin_rules.losses._judged import judged_losses
from builtin_rules.losses._layout import TRAINING, layout_of, values_of
from builtin_rules.losses._slots import push, with_room
from evaluator.rule import Accumulator, Row, State
from evaluator.segments import Array, Floats

LEAST = 5
"""Points of which a level is the mean at least: fewer are noise."""
PART = 10
"""From 50 points on a level is the mean of the last tenth: how far a trend must reach back grows with the run."""
MOST = 100
"""But not of more than this, so that a long run is not judged by what was long ago, and its state stays small."""
CLIP = 3.0
"""A value this many times the level counts as that: one bad batch must not lift the level of a whole tenth."""

CHANGES = 20
"""The noise of a loss is told from so many of its last values at least."""

COUNT, START, FIRST, LEVEL, LOWEST, STEP, MODE, PARTS, ENDED = range(9)
"""Of a track: how many values, the first one, the first level, the newest, the lowest before it, the step and mode of
the newest value, of how many parts it is the sum, and whether it has become infinite or NaN, which ends it."""
NEW = (0.0, math.nan, math.nan, math.nan, math.inf, -1.0, 0.0, 0.0, 0.0)


def follow(track: list[float], recent: Floats, value: float) -> None:
    """Add a value to one track in place; after one that is not finite nothing can be said any more."""
    if track[ENDED]:
        return
    if not math.isfinite(value):
        track[ENDED] = 1.0
        return
    track[COUNT] += 1
    count = int(track[COUNT])
    if count == 1:
        track[START] = value
    elif count > LEAST:
        track[LOWEST] = min(track[LOWEST], track[LEVEL])
        if track[LEVEL] > 0:
            value = min(value, CLIP * track[LEVEL])
    push(recent, value)
    if count >= LEAST:
        width = min(MOST, max(LEAST, -(-count // PART)))
        # the plain sum, because numpy warns where it overflows
        track[LEVEL] = sum(recent[-width:].tolist()) / width
        track[ENDED] = float(not math.isfinite(track[LEVEL]))
        if count == LEAST:
            track[FIRST] = track[LEVEL]


def start() -> dict[str, Array]:
    """No loss was seen yet."""
    return {"carriers": np.zeros(0, np.int64), "tracks": np.zeros((0, len(NEW))), "recent": np.zeros((0, MOST))}


def add(state: dict[str, Array], row: Row) -> dict[str, Array]:
    """The tracks after the losses of a row: one per slot."""
    carriers, losses, changed = judged_losses(state["carriers"], layout_of(row), values_of(row))
    tracks = with_room(state["tracks"], len(carriers), NEW)
    recent = with_room(state["recent"], len(carriers), 0.0)
    if changed:
        tracks[changed] = NEW
    for (slot, mode, parts, _), value in losses:
        track = tracks[slot].tolist()
        follow(track, recent[slot], value)
        track[STEP], track[MODE], track[PARTS] = row.step, mode, parts
        tracks[slot] = track
    return {"carriers": carriers, "tracks": tracks, "recent": recent}


LEVELS = Accumulator(start, add)


def tracks_of(state: State, phase: int = TRAINING) -> Floats:
    """The tracks of one phase, per column: (fields, columns)."""
    tracks: Floats = state["tracks"]
    if len(tracks) < 2 * len(state.columns):
        tracks = with_room(tracks, 2 * len(state.columns), NEW)
    return tracks[phase::2].T


def lowest_level(track: Sequence[float]) -> float:
    """The lowest level so far, the newest one included; infinite before the first."""
    # in this order, because min keeps the one before where the newest level is NaN, as it is before the first
    return min(track[LOWEST], track[LEVEL])


def noise_of(state: State, phase: int = TRAINING) -> Floats:
    """Per column by how much its level goes up and down by chance.

    Our choice: the mean change from value to value, over the root of the number of values that the level is the mean
    of; a trend is small beside the noise of batches, and the mean counts rare jumps in.
    """
    noise = np.zeros(len(state.columns))
    for slot in range(phase, len(state["tracks"]), 2):
        count = int(state["tracks"][slot, COUNT])
        if count > 1:
            width = min(MOST, max(LEAST, -(-count // PART)))
            values = state["recent"][slot, -min(count, max(CHANGES, width)) :]
            noise[slot // 2] = float(np.abs(np.diff(values)).mean()) / math.sqrt(width)
    return noise
