"""What Overtraining remembers of losses: their best by a least improvement, and for how long nothing was better.

For SageMaker's method the losses of a mode are taken together; for method `trend` each stands by itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from builtin_rules.losses._judged import EVALUATION, TRAINING, is_loss, judged_losses, scalars
from builtin_rules.losses._levels import COUNT, ENDED, LEAST, LEVEL, MODE, MOST, PARTS, STEP, follow, with_room
from evaluator.rule import Row, State, grown
from evaluator.segments import Array

BEST, BEST_STEP, SINCE, VALUE = range(4)
UNTRIED = (math.inf, -1.0, 0.0, math.nan)


def nothing() -> dict[str, Array]:
    """No loss was seen in either phase."""
    return {"best": np.full(2, np.inf), "since": np.zeros(2), "values": np.zeros(2), "newest": np.full(2, np.nan)}


def add_together(state: dict[str, Array], row: Row, *, delta: float) -> dict[str, Array]:
    """Per phase (training, evaluation) the best mean loss, and how many came since it was bettered.

    Our choice: the mean is over all losses (and workers) saved in a mode at a step, as for Overfit; better is lower by
    more than `delta`; the first loss is the first best; NaN is no improvement.
    """
    saved = [one for one in scalars(row) if is_loss(row.columns[one.slot // 2].tensor)]
    if not saved:
        return state
    state = {name: array.copy() for name, array in state.items()}
    for phase in {one.slot % 2 for one in saved}:
        losses = [one.value for one in saved if one.slot % 2 == phase]
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
        "tracks": np.zeros((0, 9)),
        "recent": np.zeros((0, MOST)),
        "best": np.zeros((0, len(UNTRIED))),
    }


def add(state: dict[str, Array], row: Row, *, improvement: float) -> dict[str, Array]:
    """The tracks after the losses of a row: of training the level, of evaluation the value itself, is to become better.

    Better is lower by the part `improvement` of the best magnitude. Of training `BEST_STEP` is a count of values.
    """
    carriers, losses, changed = judged_losses(state["carriers"], row)
    tracks = with_room(state["tracks"], len(carriers))
    recent = grown(state["recent"], len(carriers), 0.0).copy()
    best = np.concatenate([state["best"], np.full((len(carriers) - len(state["best"]), len(UNTRIED)), UNTRIED)])
    if changed:
        tracks[changed], best[changed] = with_room(tracks[:0], 1), UNTRIED
    for loss in losses:
        slot = loss.slot
        track, bests = tracks[slot].tolist(), best[slot].tolist()
        follow(track, recent[slot], loss.value)
        track[STEP], track[MODE], track[PARTS] = row.step, loss.mode, loss.parts
        training = slot % 2 == TRAINING
        value = track[LEVEL] if training else loss.value
        least = improvement * abs(bests[BEST]) if math.isfinite(bests[BEST]) else 0.0
        if value < bests[BEST] - least:
            bests[:3] = value, track[COUNT] if training else row.step, 0.0
        else:
            bests[SINCE] += 1
        bests[VALUE] = loss.value
        tracks[slot], best[slot] = track, bests
    return {"carriers": carriers, "tracks": tracks, "recent": recent, "best": best}


def validation_losses(losses: State) -> list[NoBetter]:
    """The validation losses saved so far that are no sums and did not become NaN or infinite."""
    found = []
    for slot in range(EVALUATION, len(losses["carriers"]), 2):
        track, best = losses["tracks"][slot].tolist(), losses["best"][slot].tolist()
        if losses["carriers"][slot] == slot and track[PARTS] == 1 and not track[ENDED]:
            last = losses["recent"][slot, -3:].tolist()
            found.append(
                NoBetter(
                    slot // 2,
                    int(track[MODE]),
                    best[BEST],
                    int(best[BEST_STEP]),
                    int(best[SINCE]),
                    int(track[STEP]),
                    best[VALUE],
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
        if losses["best"][slot, BEST_STEP] > (1 - part) * count:
            return False
    return True
