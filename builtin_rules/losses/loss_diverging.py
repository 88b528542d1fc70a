"""Fires when the level of the training loss has risen far above its lowest, or above where it began.

The level is the mean of the last tenth of the values, of 5 at least and 100 at most, one bad batch counted as three
times the level at most. It has risen when it is `rise` times the lowest level before, and higher than that by `floor`
of the first level; or when it is `rise_from_start` times the first value, and not below the first level. Either must be
higher by `noise` times what a level goes up and down by chance.
Where a whole loss is logged that is judged, else the sum of the parts of each split.

Quiet when: a loss has fewer than `points` values; it is zero or negative; it is NaN or infinite, from then on (see
NonFinite); a reward is logged, because in reinforcement learning a loss need not fall; or a metric should rise.
Source: ours; the numbers were chosen on labelled logs of public training runs, `noise` on the healthy programs of the
zoo too (both in docs/detection.md). What is judged is decided in `totals_or_sums`, what a level is in `follow`, its
noise in `noise_of`, and what counts as risen in `risen`.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from builtin_rules._selecting import Patterns
from builtin_rules.losses._levels import COUNT, FIRST, LEVEL, LEVELS, LOWEST, MODE, PARTS, START, noise_of, tracks_of
from builtin_rules.losses._losses import LOSS, REINFORCED, left_out, reinforced
from evaluator.rule import (
    TRAINING,
    Example,
    NotYet,
    Rule,
    RuleParameters,
    Selection,
    State,
    Summary,
    Verdict,
    Window,
)
from evaluator.segments import Bools, Floats


class Parameters(RuleParameters):
    """What LossDiverging can be told."""

    tensor_regex: Patterns | None = Field(
        None, description="Judges losses in whose name one of these is found; by default the collection `losses`."
    )
    rise: float = Field(1.5, gt=1, description="Fires when the level is this many times the lowest before.")
    floor: float = Field(
        0.1, ge=0, description="And above it by this part of the first level: near zero, ratios mean nothing."
    )
    rise_from_start: float = Field(
        1.3, gt=1, description="Fires also when the level is this many times the first value, which is one batch only."
    )
    noise: float = Field(
        5.5,
        ge=0,
        description="And above it by so many times the noise of a level: the lowest of many is low by luck.",
    )
    points: int = Field(10, ge=5, description="Judged from this many values on: earlier ones are warm-up.")

    @property
    def selection(self) -> Selection:
        """What was named, or the losses."""
        return Selection(regexes=self.tensor_regex) if self.tensor_regex else Selection(collections=("losses",))


def risen(tracks: Floats, noise: Floats, parameters: Parameters) -> tuple[Bools, Floats, Floats]:
    """Per loss whether it has risen, by how many times, and the limit of that.

    Our choice: a loss that left its lowest level for good diverges, however much better than at the start it still is;
    the floor lets a loss that has come near zero wander there. One that was never low is compared with its first value.

    Shapes:
        tracks: (fields, losses); noise: (losses,), of a level.
    """
    enough = tracks[COUNT] >= parameters.points
    level, lowest, begin = tracks[LEVEL], tracks[LOWEST], tracks[START]
    far = level - lowest >= np.maximum(parameters.floor * np.abs(tracks[FIRST]), parameters.noise * noise)
    # divided and not multiplied, because the least numbers there are do not change when they are multiplied by 1.3
    above_lowest = enough & (lowest > 0) & (level / lowest >= parameters.rise) & far
    above_start = enough & (begin > 0) & (level / begin >= parameters.rise_from_start) & (level >= tracks[FIRST])
    above_start &= level - begin >= parameters.noise * noise
    times = np.where(above_lowest, level / lowest, level / begin)
    limit = np.where(above_lowest, parameters.rise, parameters.rise_from_start)
    return above_lowest | above_start, times, limit


def could_have_risen(tracks: Sequence[Sequence[float]], parameters: Parameters) -> bool:
    """Whether some loss is far enough above its lowest level or its first value for the rest of `risen` to matter.

    Shapes:
        tracks: (losses, fields), plain numbers, because of few losses this is quicker told than by numpy.
    """
    return any(
        (track[LOWEST] > 0 and track[LEVEL] / track[LOWEST] >= parameters.rise)
        or (track[START] > 0 and track[LEVEL] / track[START] >= parameters.rise_from_start)
        for track in tracks
    )


def diverges(losses: State, rewards: Window, parameters: Parameters) -> Verdict:
    """losses["tracks"]: the level of each training loss, and the lowest it had before."""
    if rewards.columns:
        return reinforced(rewards)
    tracks = tracks_of(losses)
    by_loss = tracks.T.tolist()
    most = int(max([track[COUNT] for track in by_loss], default=0))
    if most < parameters.points:
        return NotYet(f"no training loss has more than {most} of {parameters.points} finite values so far")
    # first what is quickly told, and then still without the noise, which takes longest
    if not could_have_risen(by_loss, parameters):
        return None
    higher, times, limit = risen(tracks, np.zeros(len(tracks[0])), parameters)
    if not higher.any():
        return None
    noise = noise_of(losses)
    higher, times, limit = risen(tracks, noise, parameters)
    if not higher.any():
        return None
    names = left_out(losses.columns)
    return losses.met(
        higher,
        measured=times,
        limit=limit,
        of=int((tracks[COUNT] >= parameters.points).sum()),
        message="the training loss has risen to {measured} times what it was, {limit} times is the limit",
        modes=tracks[MODE].astype(np.int8),
        each={
            "level": tracks[LEVEL],
            "lowest_level": tracks[LOWEST],
            "first_value": tracks[START],
            "noise": noise,
            "sum_of": tracks[PARTS].astype(np.int64),
        },
        details={"not_judged_because_they_should_rise": names} if names else {},
    )


FALLING = [4.0 / (1 + step) for step in range(10)]
TWELVE = ["TRAIN"] * 12

RULE = Rule(
    name="LossDiverging",
    severity="error",
    parameters=Parameters,
    requires=lambda parameters: [
        Summary(parameters.selection, by=LOSS, modes=TRAINING, state=LEVELS),
        REINFORCED,
    ],
    condition=diverges,
    precedence=70,
    examples=(
        Example("up again from its lowest", {"loss": [*FALLING, 1.0, 1.5, 2.0, 2.5, 3.0]}, met_at=14),
        Example("above the start", {"loss": [1.0 + step / 10 for step in range(12)]}, met_at=9),
        Example(
            "the sum of the parts of a loss",
            {"box_loss": [2.0] * 5 + [1.0] * 5 + [4.0] * 5, "cls_loss": [1.0] * 15},
            met_at=11,
            tensor="box_loss",
        ),
        Example("falling", {"loss": FALLING}),
        Example("one bad batch", {"loss": [*FALLING, 40.0, 0.4, 0.4, 0.4, 0.4, 0.4]}),
        Example("wandering near zero", {"loss": [4.0, 2.0, 1.0, 0.5, 0.1, *[0.001] * 8, *[0.01] * 8]}),
        Example("one part rises, the whole does not", {"loss": FALLING, "reg_loss": [0.01 * 2**n for n in range(10)]}),
        Example("few points", {"loss": [1.0, 2.0, 4.0, 8.0, 16.0]}),
        Example("one step", {"loss": [1.0]}),
        Example("only the loss of evaluation rises", {"loss": [1.0 + n for n in range(12)]}, modes=["EVAL"] * 12),
        Example("NaN from the first step on", {"loss": [float("nan")] * 12}, modes=TWELVE),
        Example("zero", {"loss": [0.0] * 12}, modes=TWELVE),
        Example(
            "reinforcement learning", {"loss": [1.0 + n for n in range(12)], "reward": [float(n) for n in range(12)]}
        ),
        Example("a metric that should rise", {"accuracy": [0.1 * n for n in range(1, 12)]}),
        Example("not a single number", {"loss": [[1.0 + n, 2.0 + n] for n in range(12)]}),
    ),
)
