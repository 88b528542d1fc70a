"""Fires when no metric that should rise has risen since the beginning, and the training loss has not fallen either.

Compares levels: the mean of the last tenth of the values of a metric, of 5 at least and 100 at most. A metric is flat
when its best level is within `rise_percent` of its first one, or within `noise` times what a level goes up and down by
chance. All metrics with at least `points` values must be flat,
wherever they were computed.

Quiet when: no metric has so many values; one rose, is near its ceiling (1, or 100 where values are above 1), was always
zero (it is not filled in), or became NaN or infinite; the level of some training loss fell by `loss_fall_percent`; or a
reward is logged.
Source: ours, for user report 30 (accuracy stood at 0.5 for an hour and no rule said so); the numbers were chosen on
labelled logs of public training runs, `noise` on the zoo too (both in docs/detection.md). What is flat is decided in
`standing`, which metrics count in `add`.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from pydantic import Field

from builtin_rules._selecting import Patterns
from builtin_rules.losses._judged import per_column
from builtin_rules.losses._layout import (
    ALL_PHASES,
    EVALUATION,
    MOST_LAYOUTS,
    TRAINING,
    Layout,
    Place,
    layout_of,
    values_of,
)
from builtin_rules.losses._levels import (
    COUNT,
    ENDED,
    FIRST,
    LEVEL,
    LEVELS,
    LOWEST,
    MODE,
    MOST,
    STEP,
    follow,
    lowest_level,
    noise_of,
    tracks_of,
)
from builtin_rules.losses._levels import NEW as NEW_LEVEL
from builtin_rules.losses._losses import LOSS, REINFORCED, reinforced
from builtin_rules.losses._metrics import ANY_METRIC
from builtin_rules.losses._names import RISING, kind_of
from builtin_rules.losses._slots import with_room
from evaluator import needs
from evaluator.rule import (
    Accumulator,
    Example,
    NotYet,
    Row,
    Rule,
    RuleParameters,
    Selection,
    State,
    Summary,
    Verdict,
    Window,
)
from evaluator.segments import Array, Bools, Floats

ABOVE_ONE = 1.5
"""A metric that was ever above this is counted in percent."""

LEAST, LARGEST = range(len(NEW_LEVEL), len(NEW_LEVEL) + 2)
"""Of a track, after what `follow` keeps: the least and the largest value, with their own sign."""
NEW = (*NEW_LEVEL, math.inf, -math.inf)


class Parameters(RuleParameters):
    """What MetricFlat can be told."""

    tensor_regex: Patterns | None = Field(
        None,
        description="Judges metrics in whose name one of these is found; by default those in collections of metrics, "
        "and others with the name of a well-known metric.",
    )
    points: int = Field(20, ge=10, description="Judged from this many values on: learning may begin slowly.")
    rise_percent: float = Field(
        2.0, gt=0, description="Fires when the best level is not above the first one by more than this."
    )
    noise: float = Field(
        4.0, ge=0, description="Nor when it is not above it by so many times the noise of a level: the best is lucky."
    )
    near_ceiling: float = Field(
        0.9, gt=0, le=1, description="Quiet when the first level was this part of the ceiling: little is left to learn."
    )
    loss_fall_percent: float = Field(
        5.0,
        gt=0,
        description="Quiet when a training loss fell by this: then the model learns, and the metric is coarse.",
    )

    @property
    def selection(self) -> Selection:
        """What was named, or all that may be metrics."""
        return Selection(regexes=self.tensor_regex) if self.tensor_regex else ANY_METRIC


def start() -> dict[str, Array]:
    """No metric was seen yet."""
    return {"tracks": np.zeros((0, len(NEW))), "recent": np.zeros((0, MOST))}


def add(state: dict[str, Array], row: Row) -> dict[str, Array]:
    """The tracks after the rising metrics of a row, with their sign turned, so that what rises falls like a loss."""
    rising = _rising_in(layout_of(row))
    if not rising:
        return state
    slots, values = 2 * len(row.values), values_of(row)
    tracks, recent = with_room(state["tracks"], slots, NEW), with_room(state["recent"], slots, 0.0)
    for slot, column, _, mode in rising:
        track, value = tracks[slot].tolist(), values[column]
        follow(track, recent[slot], -value)
        track[STEP], track[MODE] = row.step, mode
        track[LEAST], track[LARGEST] = min(track[LEAST], value), max(track[LARGEST], value)
        tracks[slot] = track
    return {"tracks": tracks, "recent": recent}


@lru_cache(maxsize=MOST_LAYOUTS)
def _rising_in(layout: Layout) -> Sequence[Place]:
    """The metrics that should rise."""
    return [place for place in layout.places if kind_of(place.name) == RISING]


METRIC_LEVELS = Accumulator(start, add)


def standing(tracks: Floats, noise: Floats, parameters: Parameters) -> tuple[Bools, Floats]:
    """Per metric whether it stands where it began, and by how much it rose, in percent of the first level.

    Our choice: a metric is compared with its own beginning and not with chance, which nobody knows here; what began
    near the ceiling, and what was always zero, tells nothing.

    Shapes:
        tracks: (fields, slots), of the metrics with their sign turned; noise: (slots,).
    """
    first = -tracks[FIRST]
    rose = 100 * (-np.fmin(tracks[LOWEST], tracks[LEVEL]) - first) / np.abs(first)
    ceiling = np.where(tracks[LARGEST] > ABOVE_ONE, 100.0, 1.0)
    not_zero = (tracks[LEAST] != 0) | (tracks[LARGEST] != 0)
    telling = (first < parameters.near_ceiling * ceiling) & not_zero & (tracks[ENDED] == 0)
    # where the first level is zero, standing still gives NaN
    least_rise = np.maximum(parameters.rise_percent, 100 * parameters.noise * noise / np.abs(first))
    still: Bools = telling & ~(rose > least_rise)
    return still, np.where(np.isnan(rose), 0.0, rose)


def loss_fell(losses: State, percent: float) -> bool:
    """Whether the level of some training loss was ever lower than its first one by so many percent."""
    return any(
        lowest_level(track) < track[FIRST] - percent / 100 * abs(track[FIRST]) for track in tracks_of(losses).T.tolist()
    )


def stands_still(metrics: State, losses: State, rewards: Window, parameters: Parameters) -> Verdict:
    """metrics["tracks"]: the levels of the rising metrics, their sign turned; losses["tracks"]: those of the losses."""
    if rewards.columns:
        return reinforced(rewards)
    most = int(max(metrics["tracks"][:, COUNT].tolist(), default=0))
    if most < parameters.points:
        return NotYet(f"no metric that should rise has more than {most} of {parameters.points} values so far")
    # first what is quickly told
    if loss_fell(losses, parameters.loss_fall_percent):
        return None
    tracks = with_room(metrics["tracks"], 2 * len(metrics.columns), NEW).T
    enough = tracks[COUNT] >= parameters.points
    noise = np.stack([noise_of(metrics, TRAINING), noise_of(metrics, EVALUATION)], axis=1).ravel()
    still, rose = standing(tracks, noise, parameters)
    if not still[enough].all():
        return None
    told, columns = per_column(np.vstack([tracks, rose]).T, enough)
    return metrics.met(
        columns,
        measured=told.T[-1],
        limit=parameters.rise_percent,
        of=int(enough.sum()),
        message="the metric rose by {measured} % at most since it began, {limit} % is the least, and no loss fell",
        modes=told.T[MODE].astype(np.int8),
        each={"first_level": -told.T[FIRST], "level": -told.T[LEVEL], "largest": told.T[LARGEST]},
    )


RISES = [0.5 + number / 100 for number in range(25)]
FALLS = [1.0 / (1 + number) for number in range(25)]

RULE = Rule(
    name="MetricFlat",
    severity="warning",
    parameters=Parameters,
    requires=lambda parameters: [
        Summary(parameters.selection, by=LOSS, modes=ALL_PHASES, state=METRIC_LEVELS),
        Summary("losses", by=LOSS, modes=needs.TRAINING, state=LEVELS, triggers=False),
        REINFORCED,
    ],
    condition=stands_still,
    precedence=70,
    examples=(
        Example("accuracy of guessing, no loss saved", {"accuracy": [0.5, 0.501] * 13}, met_at=19),
        Example("neither does the loss fall", {"loss": [0.7] * 25, "val_acc": [50.0, 51.0] * 12 + [50.0]}, met_at=19),
        Example("falling", {"accuracy": RISES[::-1]}, met_at=19),
        Example("rising", {"accuracy": RISES}),
        Example("one metric rises", {"accuracy": [0.5] * 25, "f1": RISES}),
        Example("the loss falls", {"accuracy": [0.5] * 25, "loss": FALLS}),
        Example("near its ceiling", {"accuracy": [0.95] * 25}),
        Example("never filled in", {"top1": [0.0] * 25}),
        Example("few values", {"accuracy": [0.5] * 19}),
        Example("one step", {"accuracy": [0.5]}),
        Example("NaN", {"accuracy": [float("nan")] * 25}),
        Example("a metric that should fall", {"error": [0.5] * 25}),
        Example("reinforcement learning", {"accuracy": [0.5] * 25, "ep_rew_mean": [0.5] * 25}),
    ),
)
