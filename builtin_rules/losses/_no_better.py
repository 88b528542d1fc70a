"""What Overtraining remembers of losses: their best by a least improvement, and for how long nothing was better.

For SageMaker's method the losses of a mode are taken together; for method `trend` each stands by itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from builtin_rules.losses._judged import is_loss, judged_losses
from builtin_rules.losses._layout import EVALUATION, TRAINING, layout_of, values_of
from builtin_rules.losses._levels import COUNT, ENDED, LEAST, LEVEL, MODE, MOST, PARTS, STEP, follow
from builtin_rules.losses._levels import NEW as NEW_LEVEL
from builtin_rules.losses._slots import with_room
from evaluator.rule import Row, State
from evaluator.segments import Array

BEST, BEST_STEP, SINCE, VALUE = range(len(NEW_LEVEL), len(NEW_LEVEL) + 4)
"""Of a track, after what `follow` keeps: the best value and its step, how many came after it, and the newest value."""
NEW = (*NEW_LEVEL, math.inf, -1.0, 0.0, math.nan)


def nothing() -> dict[str, Array]:
    """No loss was seen in either phase."""
    return {"best": np.full(2, np.inf), "since": np.zeros(2), "values": np.zeros(2), "newest": np.full(2, np.nan)}


def add_together(state: dict[str, Array], row: Row, *, delta: float) -> dict[str, Array]:
    """Per phase (training, evaluation) the best mean loss, and how many came since it was bettered.

    Our choice: the mean is over all losses (and workers) saved in a mode at a step, as for Overfit; better is lower by
    more than `delta`; the first loss is the first best; NaN is no improvement.
    """
    saved = [place for place in layout_of(row).places if is_loss(place.name)]
    if not saved:
        return state
    values = values_of(row)
    state = {name: array.copy() for name, array in state.items()}
    for phase in {place.slot % 2 for place in saved}:
        losses = [values[place.column] for place in saved if place.slot % 2 == phase]
        loss = sum(losses) / len(losses)
        better = loss < state["best"][phase] - delta
        state["best"][phase] = loss if better else state["best"][phase]
        state["since"][phase] = 0 if better else state["since"][phase] + 1
        state["values"][phase] += 1
        state["newest"][phase] = loss
    return state


class NoBetter(NamedTuple):
    """A validation loss, and for how long it has not become better."""

    column: int
    mode: int
    best: float
    best_step: int
    since: int
    step: int
    value: float
    last: float
    """The mean of the last three."""


def start() -> dict[str, Array]:
    """No loss was seen yet."""
    return {
        "carriers": np.zeros(0, np.int64),
        "tracks": np.zeros((0, len(NEW))),
        "recent": np.zeros((0, MOST)),
    }


def add(state: dict[str, Array], row: Row, *, improvement: float) -> dict[str, Array]:
    """The tracks after the losses of a row: of training the level, of evaluation the value itself, is to become better.

    Better is lower by the part `improvement` of the best magnitude. Of training `BEST_STEP` is a count of values.
    """
    carriers, losses, changed = judged_losses(state["carriers"], layout_of(row), values_of(row))
    tracks = with_room(state["tracks"], len(carriers), NEW)
    recent = with_room(state["recent"], len(carriers), 0.0)
    if changed:
        tracks[changed] = NEW
    for (slot, mode, parts, _), newest in losses:
        track = tracks[slot].tolist()
        follow(track, recent[slot], newest)
        track[STEP], track[MODE], track[PARTS], track[VALUE] = row.step, mode, parts, newest
        training = slot % 2 == TRAINING
        value = track[LEVEL] if training else newest
        least = improvement * abs(track[BEST]) if math.isfinite(track[BEST]) else 0.0
        if value < track[BEST] - least:
            track[BEST], track[BEST_STEP], track[SINCE] = value, track[COUNT] if training else row.step, 0.0
        else:
            track[SINCE] += 1
        tracks[slot] = track
    return {"carriers": carriers, "tracks": tracks, "recent": recent}


def validation_losses(losses: State) -> list[NoBetter]:
    """The validation losses saved so far that are no sums and did not become NaN or infinite."""
    found = []
    for slot in range(EVALUATION, len(losses["carriers"]), 2):
        track = losses["tracks"][slot].tolist()
        if losses["carriers"][slot] == slot and track[PARTS] == 1 and not track[ENDED]:
            last = losses["recent"][slot, -3:].tolist()
            found.append(
                NoBetter(
                    slot // 2,
                    int(track[MODE]),
                    track[BEST],
                    int(track[BEST_STEP]),
                    int(track[SINCE]),
                    int(track[STEP]),
                    track[VALUE],
                    sum(last) / len(last),
                )
            )
    return found


def training_stands(losses: State, worker: str, part: float) -> bool:
    """Whether no training loss of the worker became better in the last `part` of its values.

    Our choice: where training still makes the loss smaller, a validation loss that rises is Overfit's to judge; losses
    with fewer than 10 levels are not asked.
    """
    for slot in range(TRAINING, len(losses["carriers"]), 2):
        count = losses["tracks"][slot, COUNT]
        if losses["carriers"][slot] != slot or losses.columns[slot // 2].worker != worker or count < 10 + LEAST - 1:
            continue
        if losses["tracks"][slot, BEST_STEP] > (1 - part) * count:
            return False
    return True
