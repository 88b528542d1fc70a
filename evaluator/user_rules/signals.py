"""The end marker of a trial, the signal for rules to stop, and units of time.

Source:
    smdebug-api.md, sections 9 and 11; saved-format.md, section 10.
"""

from __future__ import annotations

from enum import Enum

from evaluator.errors import EvaluatorError
from evaluator.formats.key_names import END_MARKER
from evaluator.storage import open_store
from evaluator.user_rules import environment
from evaluator.user_rules.surroundings import surroundings

DEFAULT_GRACE = 60.0
"""Seconds from the signal to the end. Source: smdebug-api.md, section 11."""


class TimeUnits(Enum):
    """How times of a profile are given."""

    SECONDS = 1
    MILLISECONDS = 2
    MICROSECONDS = 3
    NANOSECONDS = 4


def has_training_ended(trial_prefix: str) -> bool:
    """Whether the end marker is in the trial's folder."""
    return open_store(trial_prefix).stat(END_MARKER) is not None


def training_has_ended(trial_prefix: str) -> None:
    """Write the end marker into the trial's folder."""
    open_store(trial_prefix).write(END_MARKER, b"")


def is_rule_signalled_gracetime_passed(trial_prefix: str) -> bool:
    """Whether rules were told to stop, and have had the time to do so.

    The file that the environment names, relative to the trial, holds the time of the signal; a file that holds
    anything else counts as long ago.
    """
    name = environment.text(environment.STOP_SIGNAL)
    if name is None:
        return False
    store = open_store(trial_prefix)
    try:
        if store.stat(name) is None:
            return False
        signalled = float(store.read(name).decode())
    except (ValueError, EvaluatorError):
        return True
    grace = environment.number(environment.STOP_GRACE)
    return surroundings().clock.now() > signalled + (DEFAULT_GRACE if grace is None else grace)
