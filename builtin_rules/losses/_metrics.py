"""Metrics of evaluation, and whether they got worse since a certain step: where they hold, a rising loss is no harm."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np

from builtin_rules.losses._layout import ALL_PHASES, EVALUATION, MOST_LAYOUTS, Layout, Place, layout_of, values_of
from builtin_rules.losses._losses import LOSS
from builtin_rules.losses._names import FALLING, METRIC_NAMES, RISING, kind_of
from builtin_rules.losses._slots import push, with_room
from evaluator.rule import Accumulator, Row, Selection, State, Summary
from evaluator.segments import Array, Floats

ANY_METRIC = Selection(collections=("metrics", "sm_metrics", "scalars", "losses"), regexes=(METRIC_NAMES,))
"""Where metrics are saved: Keras and XGBoost have a collection, a PyTorch script may save them in any, or in none.
Which of them are metrics, and which way they should go, their names tell."""

LEAST = 4
"""With fewer values nobody can say whether a metric got worse."""
CHANGES = 20
"""The last changes between evaluations, from which its noise is told."""
STALE = 0.5
"""Its best value must be at least this part of the steps since the best loss old."""
DROP = 0.4
"""And the mean of the last three this many times the noise below the best mean of three."""
TYPICAL_CHANGES = 2.0
"""Noise is so many times the median change: what a metric goes up and down by without meaning anything."""
LEAST_NOISE = 0.001
"""And at least this part of the largest value: what is less nobody would mind."""

COUNT, BEST, BEST_STEP, BEST_MEAN, LARGEST = range(5)
NEW = (0.0, -math.inf, -1.0, -math.inf, 0.0)


def start() -> dict[str, Array]:
    """No metric was seen yet."""
    return {
        "tracks": np.zeros((0, len(NEW))),
        "last": np.zeros((0, 3)),
        "changes": np.zeros((0, CHANGES)),
    }


def add(state: dict[str, Array], row: Row) -> dict[str, Array]:
    """The tracks after the metrics of evaluation in a row; one that should fall counts with its sign turned."""
    metrics = _metrics_in(layout_of(row))
    if not metrics:
        return state
    slots, values = 2 * len(row.values), values_of(row)
    tracks = with_room(state["tracks"], slots, NEW)
    last, changes = with_room(state["last"], slots, math.nan), with_room(state["changes"], slots, math.nan)
    for (slot, column, _, _), rises in metrics:
        value = values[column] if rises else -values[column]
        if math.isfinite(value):
            remember(tracks[slot], last[slot], changes[slot], value, row.step)
    return {"tracks": tracks, "last": last, "changes": changes}


@lru_cache(maxsize=MOST_LAYOUTS)
def _metrics_in(layout: Layout) -> Sequence[tuple[Place, bool]]:
    """The metrics of evaluation, and whether they should rise."""
    kinds = [(place, kind_of(place.name)) for place in layout.places if place.slot % 2 == EVALUATION]
    return [(place, kind == RISING) for place, kind in kinds if kind in {RISING, FALLING}]


def remember(track: Floats, last: Floats, changes: Floats, value: float, step: int) -> None:
    """Add a value to one track in place."""
    if track[COUNT]:
        push(changes, abs(value / 2 - float(last[-1]) / 2) * 2)
    push(last, value)
    track[COUNT] += 1
    track[LARGEST] = max(track[LARGEST], abs(value))
    if track[COUNT] >= len(last):
        track[BEST_MEAN] = max(track[BEST_MEAN], _mean(last))
    if value > track[BEST]:
        track[BEST], track[BEST_STEP] = value, step


METRICS = Summary(ANY_METRIC, by=LOSS, modes=ALL_PHASES, state=Accumulator(start, add), triggers=False)


def not_worse(metrics: State, losses: Collection[str], since: float, now: float) -> list[str]:
    """The metrics that did not get worse from step `since` to `now`; those judged as `losses` do not count.

    Our choice: worse is a metric whose best value is old, and that stands below its best by more than noise; smoothed
    over three evaluations, because single ones are lucky. All metrics must be worse: people choose a model by one of
    them, and nothing tells which.
    """
    slots = len(metrics["tracks"])
    names = []
    for slot in range(EVALUATION, slots, 2):
        track = metrics["tracks"][slot]
        name = metrics.columns[slot // 2].tensor
        if track[COUNT] < LEAST or name in losses:
            continue
        noise = max(TYPICAL_CHANGES * float(np.nanmedian(metrics["changes"][slot])), LEAST_NOISE * track[LARGEST])
        old = now - track[BEST_STEP] >= STALE * (now - since)
        dropped = track[BEST_MEAN] - _mean(metrics["last"][slot]) >= DROP * noise
        if not (old and dropped):
            names.append(name)
    return names


def _mean(values: Floats) -> float:
    # the plain sum, because numpy warns where it overflows
    found: list[float] = values.tolist()
    return sum(found) / len(found)
