"""What a rule file cannot pass along: the clock and the limits that trials opened by `create_trial` work with.

The program that runs rule files sets them once for its process; a script that imports the API gets the machine's clock
and limits from the variables that the reference reads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from evaluator.clock import Clock, SystemClock
from evaluator.user_rules import environment
from evaluator.user_rules.reader import Limits


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Clock and limits."""

    clock: Clock
    limits: Limits


_set: list[Surroundings] = []


def surround(clock: Clock, limits: Limits) -> None:
    """Use these from now on, for every trial that is opened in this process."""
    _set[:] = [Surroundings(clock, limits)]


def surroundings() -> Surroundings:
    """Those that were set, else the machine's clock and the limits that the environment gives."""
    if _set:
        return _set[0]
    limits = Limits()
    window = environment.number(environment.WINDOW)
    retries = environment.number(environment.RETRIES)
    delay = environment.number(environment.END_DELAY)
    if window is not None:
        limits = replace(limits, window=int(window))
    if retries is not None:
        limits = replace(limits, event_file=retries * limits.poll)
    if delay is not None:
        limits = replace(limits, end_delay=delay)
    return Surroundings(SystemClock(), limits)
