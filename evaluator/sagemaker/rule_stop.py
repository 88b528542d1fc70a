"""Looks whether rules were told to stop by a file in the trial, and have had the time to do so.

Source:
    sagemaker-debugger, smdebug/core/utils.py, is_rule_signalled_gracetime_passed: the trial counts as finished once
    the time in the file and the grace are over; a file whose content is no time counts as long ago.
"""

from __future__ import annotations

import math

from evaluator.clock import Clock
from evaluator.config.rule_stop import RuleStop
from evaluator.errors import StorageError
from evaluator.storage.base import Store

LONGEST = 100
"""Bytes of a time as anybody writes one."""


class RuleStopFile:
    """The file; it is looked for whenever somebody asks."""

    def __init__(self, store: Store, told_by: RuleStop, clock: Clock) -> None:
        """Look for nothing yet; `store` is the trial's folder."""
        self.store = store
        self._told_by = told_by
        self._clock = clock

    def passed(self) -> bool:
        """Whether the time that rules had is over."""
        try:
            content = self.store.read_range(self._told_by.key, 0, LONGEST)
        except StorageError:
            # that nothing could be read is not a word of anybody
            return False
        try:
            told = float(content)
        except ValueError:
            return True
        # what goes on after that is no time either
        if len(content) == LONGEST or not math.isfinite(told):
            return True
        return self._clock.now() > told + self._told_by.grace
