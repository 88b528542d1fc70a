"""The words for what the training script was doing, and for how far a step has come."""

from __future__ import annotations

from enum import Enum


class ModeKeys(Enum):
    """What the training script was doing when it saved a step; rule files know it as `modes`.

    Source:
        smdebug-api.md, section 6; the numbers are those of `evaluator.modes.Mode`.
    """

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4


modes = ModeKeys
"""As rule files call them."""

ALLOWED_MODES = list(ModeKeys)
ALLOWED_MODE_NAMES = [mode.name for mode in ModeKeys]


class StepState(Enum):
    """Whether a step is there, will never be, or may still come."""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


def str_to_mode_keys(mode: str) -> ModeKeys:
    """The mode of that name: train, eval, predict or global.

    Raises:
        ValueError: there is no such mode.
    """
    if isinstance(mode, str) and mode.upper() in ModeKeys.__members__ and mode.islower():
        return ModeKeys[mode.upper()]
    raise ValueError("Invalid mode")
