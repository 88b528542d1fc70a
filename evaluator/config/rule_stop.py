"""Reads from the environment by which file rules are told to stop, and how much time they have then."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.errors import KeyRefused
from evaluator.storage.base import check_key

FILE_VARIABLE = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
GRACE_VARIABLE = "rule_stop_grace_time_secs"
VARIABLES = frozenset({FILE_VARIABLE, GRACE_VARIABLE})

DEFAULT_GRACE = 60.0
"""Seconds. Source: sagemaker-debugger, smdebug/core/utils.py, is_rule_signalled_gracetime_passed."""


@dataclass(frozen=True, slots=True)
class RuleStop:
    """How rules are told to stop.

    Args:
        key: the file, relative to the trial; it holds the time of the signal.
        grace: seconds from then on in which what is saved still counts.
    """

    key: str
    grace: float = DEFAULT_GRACE


def read_rule_stop(environment: Mapping[str, str]) -> tuple[RuleStop | None, list[str]]:
    """What the environment says of it, and notes on what of that cannot be used.

    Both variables are set by a service and not by the user, so a wrong one does not end a job.
    """
    key = environment.get(FILE_VARIABLE, "").strip()
    if not key:
        return None, []
    try:
        check_key(key)
    except KeyRefused as error:
        return None, [f"environment: {FILE_VARIABLE} is not used: {error}"]
    given = environment.get(GRACE_VARIABLE, "").strip()
    if not given:
        return RuleStop(key), []
    try:
        grace = float(given)
    except ValueError:
        grace = math.nan
    if 0 <= grace < math.inf:
        return RuleStop(key, grace), []
    what = f"environment: {GRACE_VARIABLE}: {given!r} is no number of seconds; {DEFAULT_GRACE:g} is used"
    return RuleStop(key), [what]
