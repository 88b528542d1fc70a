"""The four modes in which a value can be saved."""

from __future__ import annotations

from enum import IntEnum


class Mode(IntEnum):
    """What the training script was doing when it saved a value.

    The numbers are those of the saved protobuf (plugin data `mode`); zero is left free for "not saved".

    Source:
        saved format of smdebug 1.0.34, core/modes.py.
    """

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4
