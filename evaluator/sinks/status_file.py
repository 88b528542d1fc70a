"""status.json: the whole job in one file, so that anybody who can read the output folder knows where it stands."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from evaluator import strict_json
from evaluator.clock import Clock, timestamp
from evaluator.errors import OutputError, StorageError
from evaluator.sinks.base import Outputs, Sink
from evaluator.status import JobStatus
from evaluator.storage.base import Store

FILE_NAME = "status.json"
AT_LEAST_EVERY = 300.0
"""Seconds, so that the file's age shows that the job lives. Source: design, section 8."""
GROWTH = 1.5
"""How much longer each time between two calls may be than the one before, as the loop's pauses go."""


class StatusFile(Sink):
    """Writes the file when a rule's status changed, else when anything changed but not more often than the interval.

    It stamps `updated_at` of the status it writes.
    """

    name: ClassVar[str] = "status file"
    essential: ClassVar[bool] = True

    def __init__(self, store: Store, clock: Clock, interval: float = 1.0) -> None:
        """Nothing is written before `start`."""
        self._store = store
        self._clock = clock
        self._interval = interval
        self._words: tuple[tuple[str, str], ...] = ()
        self._written: dict[str, Any] = {}
        self._looked = self._wrote = clock.monotonic()
        self._lost = False
        """Whether the last one could not be written."""

    @classmethod
    def build(cls, outputs: Outputs) -> Self:
        """Every job has one."""
        return cls(outputs.store, outputs.clock, outputs.status_interval)

    def start(self, status: JobStatus) -> None:
        """Write the file, which shows whether the output folder can be written at all.

        Raises:
            OutputError: it cannot.
        """
        try:
            self._write(status)
        except StorageError as error:
            mistake = error.mistake
            what = f"{FILE_NAME} cannot be written: {mistake.what}"
            raise OutputError(mistake.where, what, mistake.would_be_right or "an output folder to write to") from error

    def status(self, status: JobStatus) -> None:
        """Write the file where that is due."""
        now = self._clock.monotonic()
        if _words(status) == self._words and not self._lost:
            if now - self._looked < self._interval:
                return
            gap, self._looked = now - self._looked, now
            # once more after this may be too late
            if now - self._wrote + GROWTH * gap <= AT_LEAST_EVERY and _judged(status) == self._written:
                return
        self._write(status)

    def close(self, status: JobStatus) -> None:
        """Write the final state."""
        self._write(status)

    def _write(self, status: JobStatus) -> None:
        self._looked = self._clock.monotonic()
        status.job.updated_at = timestamp(self._clock.now())
        self._lost = True
        self._store.write(FILE_NAME, strict_json.dumps(status.document(), pretty=True) + b"\n")
        self._lost = False
        self._wrote = self._looked
        self._words, self._written = _words(status), _judged(status)


def _words(status: JobStatus) -> tuple[tuple[str, str], ...]:
    return tuple((rule.RuleConfigurationName, rule.RuleEvaluationStatus) for rule in status.rules)


def _judged(status: JobStatus) -> dict[str, Any]:
    """What counts as a change: writing the file is itself a request, so requests do not."""
    document = status.document()
    document["job"].pop("updated_at")
    document["job"].pop("requests")
    return document


SINK = StatusFile
