"""Arrivals: which listed files are new, came too late or were written again, and those whose step was not taken yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from evaluator.sources.base import Sighting, StepFile
from evaluator.trial.completeness import Seen
from evaluator.trial.ledger import Ledger
from evaluator.trial.tally import Tally

LOOK_BACK = 20
"""How many saved steps back a listing looks for files that came late or were replaced."""


@dataclass(slots=True)
class Arrival:
    """A listed file of a step that was not taken yet."""

    sighting: Sighting
    at: float
    """When it came, by the monotonic clock."""
    opened: list[StepFile] | None = None
    error: str | None = None
    """Why it could not be read when that was tried; until it changes it counts as not written yet."""


@dataclass(slots=True)
class Waiting:
    """The files of one step that was not taken yet."""

    first: float
    """When the first of them came."""
    files: dict[str, Arrival] = field(default_factory=dict)
    former: dict[str, Sighting] = field(default_factory=dict)
    """For a step that is written again: files of workers that did not do so (yet)."""


@dataclass(frozen=True, slots=True)
class Times:
    """When a listing was made, to tell when the files in it came.

    A modification time is the store's and can be anything. A file came after the last listing, which did not show it,
    and before now; within these bounds its modification time decides, so that a job that begins anew decides alike.
    """

    wall: float
    monotonic: float
    since: float | None = None
    """The listing before, by the monotonic clock."""

    def arrived(self, modified: float) -> float:
        """When a file came that this listing is the first to show, by the monotonic clock."""
        age = self.wall - modified
        if not age > 0:  # in the future, or no number at all
            return self.monotonic
        at = self.monotonic - age
        return at if self.since is None else max(at, self.since)


class Arrivals:
    """Sorts what listings show; a file that changes before its step is taken counts as it is then."""

    def __init__(self, tally: Tally) -> None:
        """Nothing was listed yet."""
        self.waiting: dict[int, Waiting] = {}
        self.ledger = Ledger()
        self.workers: dict[str, None] = {}
        """All that wrote a file, in the order in which they were seen."""
        self.restarted = False
        """Whether the next step to be taken is one that the run went back to."""
        self._tally = tally
        self._last_taken = -1
        self._furthest = -1
        self._recent: deque[int] = deque(maxlen=LOOK_BACK)

    @property
    def look_back(self) -> int | None:
        """The step from which on a listing has to show files; None: all of them."""
        if len(self._recent) < LOOK_BACK:
            return None
        return min([*self._recent, *self.waiting])

    def note(self, listing: Iterable[Sighting], times: Times) -> bool:
        """Put listed files where they belong; whether any was new."""
        listed = list(listing)
        news = [self._note(sighting, times) for sighting in listed]
        if self._last_taken < self._furthest:
            self._note_former(listed)
        return any(news)

    def seen(self, step: int) -> Seen:
        """What there is of a step, without the files that could not be read."""
        waiting = self.waiting[step]
        readable = sum(arrival.error is None for arrival in waiting.files.values())
        return Seen(step, readable, waiting.first, max(arrival.at for arrival in waiting.files.values()))

    def taken(self, step: int) -> Waiting:
        """Let go of a step, and remember which of its files were used."""
        waiting = self.waiting.pop(step)
        for worker, arrival in waiting.files.items():
            sighting = arrival.sighting
            self.ledger.record(worker, step, sighting.modified, sighting.size, used=arrival.error is None)
        self._last_taken = step
        self._furthest = max(self._furthest, step)
        self._recent.append(step)
        self.restarted = False
        return waiting

    def _note(self, sighting: Sighting, times: Times) -> bool:
        """Put one file where it belongs; whether it was new."""
        step, worker = sighting.step, sighting.worker
        waiting = self.waiting.get(step)
        known = waiting.files.get(worker) if waiting is not None else None
        if known is not None:
            if _same(known.sighting, sighting):
                return False
        else:
            former = self.ledger.find(worker, step)
            if former is not None and former[:2] == (sighting.modified, sighting.size):
                return False
            if step <= self._last_taken and (former is None or not former.used):
                # What was never evaluated comes late, however often it is written; it is counted once.
                if former is None:
                    self._tally.late(sighting.key)
                self.workers[worker] = None
                self.ledger.record(worker, step, sighting.modified, sighting.size, used=False)
                return True
            if step <= self._last_taken:
                self._last_taken = step - 1
                self.restarted = True
                self._tally.restart(step, worker)
        at = times.arrived(sighting.modified)
        if waiting is None:
            waiting = self.waiting[step] = Waiting(at)
        waiting.first = min(waiting.first, at)
        waiting.files[worker] = Arrival(sighting, at)
        waiting.former.pop(worker, None)
        self.workers[worker] = None
        return True

    def _note_former(self, listed: Iterable[Sighting]) -> None:
        """Keep, for steps that are written again, the files of those workers that have not done so."""
        for sighting in listed:
            waiting = self.waiting.get(sighting.step) if sighting.step > self._last_taken else None
            if waiting is not None and sighting.worker not in waiting.files:
                waiting.former[sighting.worker] = sighting


def _same(one: Sighting, other: Sighting) -> bool:
    return (one.modified, one.size) == (other.modified, other.size)
