"""Tells every sink what happens, so that one that fails costs neither the others nor the job."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import structlog

import evaluator.sinks
from evaluator.clock import Clock
from evaluator.errors import Mistake, OutputError, StorageError
from evaluator.finding import Finding
from evaluator.sinks.base import Outputs, Sink
from evaluator.status import JobStatus

log = structlog.get_logger(__name__)

REST = 10.0
"""A sink that failed rests for so many times as long as failing took, so that it cannot slow a job down by much."""
LONGEST_REST = 300.0
SLOW = 1.0
"""Seconds of one failure after which nothing else is tried: the storage does not answer at all."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before the same is tried again, doubled each time; other things that the same sink is told go on."""
LONGEST_LOSS = 900.0
"""Seconds without a status that can be written, after which the job is over: three times the longest time between two
statuses, so that nobody who looks at it believes any more that the job lives."""

Key = tuple[str, ...]
"""What a sink is told, so that it can be told apart from other things that it waits for."""
START: Key = ("start",)
STATUS: Key = ("status",)
CLOSE: Key = ("close",)


def build_sinks(outputs: Outputs) -> list[Sink]:
    """One sink of every module in this package that has a `SINK` and something to do for this job."""
    found = []
    for module in sorted(module.name for module in pkgutil.iter_modules(evaluator.sinks.__path__)):
        kind: type[Sink] | None = getattr(importlib.import_module(f"evaluator.sinks.{module}"), "SINK", None)
        if kind is not None and (sink := kind.build(outputs)) is not None:
            found.append(sink)
    return found


@dataclass
class _Told:
    """A sink and what it could not take yet; the keys let a newer page take the place of an older one."""

    sink: Sink
    waiting: dict[Key, Callable[[], None]] = field(default_factory=dict)
    failures: int = 0
    failing: bool = False
    last_error: Mistake | None = None
    resting_until: float = 0.0
    pauses: dict[Key, tuple[int, float]] = field(default_factory=dict)
    """The beginning of a key -> failures in a row, and until when it is not tried again."""
    failing_since: float = 0.0
    failed_at: float = 0.0


class SinkSet:
    """All sinks of a job, told in one call; essential ones begin first and end last.

    What a sink could not take is told again, in its order, before whatever it is told next.
    """

    def __init__(self, sinks: Iterable[Sink], clock: Clock) -> None:
        """No sink is told anything before `start`."""
        self._clock = clock
        # the others first: a status that says so must not be there before the finding itself
        self._told = [_Told(sink) for sink in sorted(sinks, key=lambda sink: sink.essential)]
        self._noted: list[str] = []

    @property
    def status_lost(self) -> bool:
        """Whether an essential sink has not taken the newest status."""
        return any(told.failing for told in self._told if told.sink.essential)

    @property
    def failures(self) -> dict[str, int]:
        """Sink -> how often it failed; those that never did are left out."""
        return {told.sink.name: told.failures for told in self._told if told.failures}

    def problems(self) -> list[str]:
        """One line for each sink that failed, for the notes of the job."""
        return [_problem(told) for told in self._told if told.failures]

    def start(self, status: JobStatus) -> None:
        """Tell all sinks that the job is about to begin.

        Raises:
            OutputError: an essential sink cannot write.
        """
        for told in reversed(self._told):
            if told.sink.essential:
                told.sink.start(status)
            else:
                self._tell(told, START, partial(told.sink.start, status))

    def finding(self, finding: Finding) -> None:
        """Tell all sinks of a finding."""
        for told in self._told:
            key = ("finding", finding.rule_configuration, finding.id, finding.event)
            self._tell(told, key, partial(told.sink.finding, finding))

    def report(self, folder: str, file_name: str, text: str) -> None:
        """Tell all sinks of a page."""
        for told in self._told:
            key = ("report", folder, file_name)
            self._tell(told, key, partial(told.sink.report, folder, file_name, text))

    def keep(self, key: str, data: bytes, beginning: bytes) -> None:
        """Tell all sinks of a text that a rule left."""
        for told in self._told:
            self._tell(told, ("text", key), partial(told.sink.keep, key, data, beginning))

    def status(self, status: JobStatus) -> None:
        """Tell all sinks where the job stands; what went wrong with sinks is added to its notes.

        Raises:
            OutputError: an essential sink has not worked for too long.
        """
        for told in self._told:
            self._note(status)
            self._tell(told, STATUS, partial(told.sink.status, status))
        for told in self._told:
            lost, last = told.failed_at - told.failing_since, told.last_error
            if told.sink.essential and told.failing and last is not None and lost >= LONGEST_LOSS:
                what = f"{last.what}; nothing could be written for {lost:.0f} s"
                raise OutputError(last.where, what, last.would_be_right)

    def close(self, status: JobStatus) -> None:
        """Tell all sinks that the job has ended; what went wrong with sinks is added to its notes."""
        for told in self._told:
            self._note(status)
            self._tell(told, CLOSE, partial(told.sink.close, status))

    def _tell(self, told: _Told, key: Key, call: Callable[[], None]) -> None:
        """Tell a sink this, after all that it still waits for."""
        # a later page of the same name, or a later status, makes the older one worthless
        told.waiting.pop(key, None)
        if key == CLOSE:
            told.waiting.pop(STATUS, None)
        told.waiting[key] = call
        closing = key == CLOSE
        if not closing and self._clock.monotonic() < told.resting_until:
            return
        stuck: set[Key] = set()
        for waiting, again in list(told.waiting.items()):
            # findings of one configuration stay in their order; those of another may be writable
            group = waiting[:2]
            began = self._clock.monotonic()
            if group in stuck or (not closing and began < told.pauses.get(group, (0, 0.0))[1]):
                stuck.add(group)
                continue
            try:
                again()
            except (OutputError, StorageError) as error:
                # an output that does not work must not end a job whose other outputs do
                stuck.add(group)
                self._failed(told, group, error, began)
                if self._clock.monotonic() - began >= SLOW:
                    break
            else:
                del told.waiting[waiting]
                told.pauses.pop(group, None)
        told.failing = bool(stuck)

    def _failed(self, told: _Told, group: Key, error: OutputError | StorageError, began: float) -> None:
        now = self._clock.monotonic()
        row = told.pauses.get(group, (0, 0.0))[0]
        told.pauses[group] = row + 1, now + min(FIRST_PAUSE * 2.0**row, LONGEST_PAUSE)
        told.resting_until = now + min(REST * (now - began), LONGEST_REST)
        told.failures += 1
        told.last_error = error.mistake
        told.failed_at = now
        if not told.failing:
            told.failing_since = began
            log.warning("sink_failed", sink=told.sink.name, error=str(error))
        told.failing = True

    def _note(self, status: JobStatus) -> None:
        # the status may be the one of before, or a new one
        problems = self.problems()
        kept = [note for note in status.job.notes if note not in self._noted and note not in problems]
        if problems or self._noted:
            status.job.notes = [*kept, *problems]
        self._noted = problems


def _problem(told: _Told) -> str:
    findings = sum(key[0] == "finding" for key in told.waiting)
    pages = sum(key[0] in ("report", "text") for key in told.waiting)
    missing = f"; not written: {findings} findings, {pages} reports" if findings or pages else ""
    return f"{told.sink.name}: failed {told.failures} times, last: {told.last_error}{missing}"
