"""Fires when a loss, or the norm of the gradients, jumps far above its running level.

At each step compares every total loss, of training and of evaluation each by itself, with the mean of its last values
before (20 at most): it must not be `ratio` times that, and higher by `floor` of where the loss began, and
`over_earlier` times all of those values and of all such excursions before, and its logarithm above the mean of theirs
by `spread` standard deviations. A norm of the gradients likewise, with `gradient_ratio`.

Quiet when: fewer than 5 finite values came before (warm-up); the value is NaN or infinite (see NonFinite); the mean
before is zero or negative, or one of the values was;
only the parts of a loss are logged and there are
several; a reward is logged; or a metric
should rise.
Source: ours; the numbers were chosen on labelled logs of public training runs, `spread` and `floor` on the healthy
programs of the zoo too (both in docs/detection.md). What a spike is is decided in `spiked`, what it is compared with in
`remember`.
"""

import math
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from pydantic import Field

from builtin_rules._selecting import Patterns
from builtin_rules.losses._judged import judged_losses, per_column
from builtin_rules.losses._layout import ALL_PHASES, MOST_LAYOUTS, Layout, Place, layout_of, values_of
from builtin_rules.losses._losses import LOSS, REINFORCED, left_out, reinforced
from builtin_rules.losses._names import GRADIENT_NORMS, KERAS_LOSSES, NORMS_OF_GRADIENTS, kind_of
from builtin_rules.losses._slots import push, with_room
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
    grown,
)
from evaluator.segments import Array, Bools, Floats

PREVIOUS = 20
"""Values that make the running level: about as many as people look at, and few enough to follow a falling loss."""
LEAST = 5
"""With fewer of them the level is the warm-up itself."""

COUNT, FIRST, VALUE, BEFORE, HIGHEST, EXCURSION, SPREAD, NOW, MODE, GRADIENT = range(10)
"""Of a track: how many finite values, where it began (mean magnitude of the first 5), the newest value, the mean of
those before, what it must clear, the highest excursion so far, by how many standard deviations its logarithm is above
theirs (0 where it is no excursion), whether it is of the last row, its mode, and whether it is a norm of gradients."""
NEW = (0.0, 0.0, math.nan, math.nan, math.nan, 0.0, 0.0, 0.0, 0.0, 0.0)


class Parameters(RuleParameters):
    """What LossSpike can be told."""

    tensor_regex: Patterns | None = Field(
        None,
        description="Judges losses and gradient norms in whose name one of these is found; by default the collection "
        "`losses`, and norms by their names.",
    )
    ratio: float = Field(3.0, gt=1, description="Fires when a loss is this many times the mean before.")
    floor: float = Field(
        0.2, ge=0, description="And higher by this part of where it began: near zero, ratios mean nothing."
    )
    over_earlier: float = Field(
        1.5, ge=1, description="And this many times every value and excursion before: some data are always bad."
    )
    spread: float = Field(
        3.3,
        ge=0,
        description="And by so many standard deviations of the logarithms: small batches are noisy, and by factors.",
    )
    gradient_ratio: float = Field(
        50.0, gt=1, description="The ratio for norms of gradients, which jump in healthy runs too."
    )

    @property
    def selection(self) -> Selection:
        """What was named, or the losses and norms."""
        if self.tensor_regex:
            return Selection(regexes=self.tensor_regex)
        return Selection(collections=("losses",), regexes=(KERAS_LOSSES, NORMS_OF_GRADIENTS))


def remember(track: list[float], recent: Floats, value: float, ratio: float) -> None:
    """Compare a value with what came before, in place, and add it to that.

    Our choice: the values compared with are the last 20 logged ones that are finite, also those of an excursion; and an
    excursion, once seen, must be cleared by the next: a run that jumps again and again has noisy data.
    """
    before: list[float] = recent.tolist()
    # mostly all of them are, which their sum tells quickest
    if not math.isfinite(sum(before)):
        before = [old for old in before if math.isfinite(old)]
    track[VALUE], track[NOW] = value, 1.0
    track[BEFORE] = sum(before) / len(before) if len(before) >= LEAST else math.nan
    track[HIGHEST] = max([track[EXCURSION], *before])
    track[SPREAD] = 0.0
    if math.isfinite(value):
        track[COUNT] += 1
        if track[COUNT] <= LEAST:
            track[FIRST] += abs(value) / LEAST
        if track[BEFORE] > 0 and value >= ratio * track[BEFORE]:
            track[EXCURSION] = max(track[EXCURSION], value)
            track[SPREAD] = deviations(value, before)
    push(recent, value)


def deviations(value: float, before: Sequence[float]) -> float:
    """By how many standard deviations of their logarithms a value is above those before; 0 where one has none.

    Our choice: losses of batches differ by factors, not by amounts, so their logarithms tell what is usual.
    """
    if min(before) <= 0:
        return 0.0
    logs = [math.log(old) for old in before]
    mean = sum(logs) / len(logs)
    deviation = math.sqrt(sum((one - mean) ** 2 for one in logs) / len(logs))
    above = math.log(value) - mean
    return above / deviation if deviation > 0 else math.inf


def start() -> dict[str, Array]:
    """Nothing was seen yet."""
    return {
        "carriers": np.zeros(0, np.int64),
        "tracks": np.zeros((0, len(NEW))),
        "recent": np.zeros((0, PREVIOUS)),
    }


def add(state: dict[str, Array], row: Row, *, ratio: float, gradient_ratio: float) -> dict[str, Array]:
    """The tracks after the losses and norms of a row: one per slot."""
    layout, values = layout_of(row), values_of(row)
    carriers, losses, changed = judged_losses(state["carriers"], layout, values)
    tracks = with_room(state["tracks"], len(carriers), NEW)
    recent = with_room(state["recent"], len(carriers), math.nan)
    if changed:
        tracks[changed], recent[changed] = NEW, math.nan
    tracks[:, NOW] = 0.0
    # a sum of parts is no loss that anybody looks at: its spike may be that of one part
    found = [(loss.slot, loss.mode, value, False) for loss, value in losses if loss.parts == 1]
    found += [(slot, mode, values[column], True) for slot, column, _, mode in _norms_in(layout)]
    for slot, mode, value, gradient in found:
        track = tracks[slot].tolist()
        remember(track, recent[slot], value, gradient_ratio if gradient else ratio)
        track[MODE], track[GRADIENT] = mode, gradient
        tracks[slot] = track
    return {"carriers": carriers, "tracks": tracks, "recent": recent}


def spiked(tracks: Floats, parameters: Parameters) -> tuple[Bools, Floats]:
    """Per slot whether its newest value is a spike, and the ratio that it is judged by.

    Shapes:
        tracks: (fields, slots).
    """
    value, before = tracks[VALUE], tracks[BEFORE]
    limit = np.where(tracks[GRADIENT] > 0, parameters.gradient_ratio, parameters.ratio)
    far = (value >= limit * before) & (value - before >= parameters.floor * tracks[FIRST])
    clear = (value >= parameters.over_earlier * tracks[HIGHEST]) & (tracks[SPREAD] >= parameters.spread)
    spike: Bools = (tracks[NOW] > 0) & (before > 0) & far & clear & np.isfinite(value)
    return spike, limit


def spikes(numbers: State, rewards: Window, parameters: Parameters) -> Verdict:
    """numbers["tracks"]: of each loss and norm the newest value, and the mean of those before."""
    if rewards.columns:
        return reinforced(rewards)
    newest = [one for one in numbers["tracks"].tolist() if one[NOW] > 0 and not math.isnan(one[BEFORE])]
    if not newest:
        return NotYet(f"no total loss or gradient norm had {LEAST} finite values before its newest")
    # first what is quickly told
    if not any(one[SPREAD] >= parameters.spread for one in newest):
        return None
    tracks = grown(numbers["tracks"], 2 * len(numbers.columns), 0.0).T
    which, limits = spiked(tracks, parameters)
    if not which.any():
        return None
    chosen, columns = per_column(np.vstack([tracks, limits]).T, which)
    of_column = chosen.T
    names = left_out(numbers.columns)
    return numbers.met(
        columns,
        measured=of_column[VALUE] / of_column[BEFORE],
        limit=of_column[-1],
        of=len(newest),
        message="it jumped to {measured} times the mean of the values before, {limit} times is the limit",
        modes=of_column[MODE].astype(np.int8),
        each={"value": of_column[VALUE], "mean_before": of_column[BEFORE], "highest_before": of_column[HIGHEST]},
        details={"not_judged_because_they_should_rise": names} if names else {},
    )


@lru_cache(maxsize=MOST_LAYOUTS)
def _norms_in(layout: Layout) -> Sequence[Place]:
    """The norms of gradients."""
    return [place for place in layout.places if kind_of(place.name) == GRADIENT_NORMS]


def _needs(parameters: Parameters) -> list[Summary]:
    fold = partial(add, ratio=parameters.ratio, gradient_ratio=parameters.gradient_ratio)
    return [Summary(parameters.selection, by=LOSS, modes=ALL_PHASES, state=Accumulator(start, fold)), REINFORCED]


FALLING = [4.0 / (1 + step) for step in range(10)]

RULE = Rule(
    name="LossSpike",
    severity="warning",
    parameters=Parameters,
    requires=_needs,
    condition=spikes,
    precedence=70,
    examples=(
        Example("one jump", {"loss": [*FALLING, 20.0, 0.4, 0.4]}, met_at=10),
        Example(
            "in evaluation only",
            {"loss": [1.0, 2.0] * 6 + [0.9, 9.0, 0.9]},
            modes=["TRAIN", "EVAL"] * 7 + ["TRAIN"],
            met_at=13,
        ),
        Example(
            "the gradients jump, the loss does not yet",
            {"loss": FALLING, "grad_norm": [1.0, 1.1] * 4 + [900.0, 1.0]},
            met_at=8,
            tensor="grad_norm",
        ),
        Example("falling", {"loss": FALLING}),
        Example("warm-up", {"loss": [1.0, 1.0, 9.0, 1.0, 1.0]}),
        Example("noisy batches", {"loss": [1.0, 0.2, 1.5, 0.4, 1.2, 0.3, 2.0, 0.2, 1.9, 0.1]}),
        Example("near zero", {"loss": [*FALLING, *[1e-6] * 20, 1e-4]}),
        Example("gradients of noisy batches", {"loss": FALLING, "grad_norm": [1.0, 1.1] * 4 + [15.0, 1.0]}),
        Example("higher in evaluation than in training", {"loss": [0.1, 9.0] * 8}, modes=["TRAIN", "EVAL"] * 8),
        Example("NaN and infinite", {"loss": [*FALLING, float("nan"), float("inf"), 0.4]}),
        Example("one step", {"loss": [1.0]}),
        Example("negative", {"loss": [-1.0, -2.0] * 6 + [5.0]}),
        Example("several parts of a loss", {"box_loss": [*FALLING, 9.0], "cls_loss": [*FALLING, 0.3]}),
        Example("reinforcement learning", {"loss": [*FALLING, 9.0], "reward": [1.0] * 11}),
        Example("a metric that should rise", {"accuracy": [0.1] * 10 + [0.9]}),
    ),
)
