"""watch.json: what the process that watches many trials is doing, beside the folders of the trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from evaluator import strict_json
from evaluator.clock import Clock, timestamp
from evaluator.errors import StorageError
from evaluator.storage.base import Store
from evaluator.watching.followed import Followed
from evaluator.watching.patterns import Pattern

WATCH_FILE = "watch.json"
AT_MOST_EVERY = 5.0
AT_LEAST_EVERY = 300.0
"""Seconds between two writes: when something changed, and when nothing did."""
MOST_NAMED = 100
"""Paths of one state that are named."""


class WatchFile:
    """Writes the file; one that cannot be written is tried again, and costs nothing else."""

    def __init__(self, store: Store, clock: Clock, pattern: Pattern, output: str) -> None:
        """Write nothing yet."""
        self._store = store
        self._clock = clock
        self._pattern = pattern
        self._output = output
        self._started = timestamp(clock.now())
        self._wrote: float | None = None
        self._written: dict[str, Any] = {}

    def write(self, trials: Iterable[Followed], problem: str, *, ended: bool = False) -> None:
        """Write how it stands, where that is due."""
        now = self._clock.monotonic()
        age = AT_LEAST_EVERY if self._wrote is None else now - self._wrote
        if age < AT_MOST_EVERY and not ended:
            return
        document = self._document(list(trials), problem)
        if document == self._written and age < AT_LEAST_EVERY and not ended:
            return
        stamp = timestamp(self._clock.now())
        stamps = {"started_at": self._started, "updated_at": stamp, "ended_at": stamp if ended else None}
        self._wrote = now
        with suppress(StorageError):
            self._store.write(WATCH_FILE, strict_json.dumps({"schema": 1, **stamps, **document}, pretty=True) + b"\n")
            self._written = document

    def _document(self, trials: list[Followed], problem: str) -> dict[str, Any]:
        return {
            "pattern": self._pattern.text,
            "output": self._output,
            "trials": dict(sorted(Counter(one.state for one in trials).items())),
            "no_trial_yet": [one.match.uri for one in trials if one.state == "no trial yet"][:MOST_NAMED],
            "in_line": [one.match.uri for one in trials if one.state == "in line"][:MOST_NAMED],
            "problems": {
                **({self._pattern.text: problem} if problem else {}),
                **dict(list(self._pattern.refused.items())[:MOST_NAMED]),
                **{one.match.uri: one.problem for one in trials if one.problem},
            },
        }
