"""Arrivals: which listed files are new, came too late or were written again, and those whose step was not taken yet."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from evaluator.errors import FormatError, StorageError, StorageUnavailable
from evaluator.sources.base import Sighting, Source, StepFile
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

    def open(self, source: Source) -> None:
        """Read the index file, unless it was read before. Raises StorageUnavailable, which says nothing about it."""
        if self.opened is not None:
            return
        try:
            self.opened, self.error = list(source.open(self.sighting)), None
            for file in self.opened:
                file.key = self.sighting.key
        except StorageUnavailable:
            raise
        except (FormatError, StorageError) as error:
            # bad input loses nothing but itself: it is counted when its step is taken
            self.error = error.without(self.sighting.key)
        except MemoryError:
            self.error = "does not fit in memory"


@dataclass(slots=True)
class Waiting:
    """The files of one step that was not taken yet."""

    first: float
    """When the first of them came."""
    files: dict[str, Arrival] = field(default_factory=dict)
    former: dict[str, Sighting] | None = None
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
    """Sorts what listings show; a file that changes before its step is taken counts as it is then.

    When a step that was taken is written again, training has gone back, and everything there is now is taken anew from
    the first step on, as somebody would read it who comes only now. What the attempt before wrote at later steps than
    the one that training went back to is no part of that until it is written again, or its worker goes past it: then a
    file was only uploaded twice, and training had not gone back at all.
    """

    def __init__(self, tally: Tally) -> None:
        """Nothing was listed yet."""
        self.waiting: dict[int, Waiting] = {}
        self.ledger = Ledger()
        self.workers: dict[str, None] = {}
        """All that wrote a file, in the order in which they were seen."""
        self.restarted = False
        """Whether the next step to be taken is the first one after training went back."""
        self.left: set[int] = set()
        """Steps that the attempt before wrote and no later one, as far as the last listing showed."""
        self.why_anew = ""
        """Why all is taken anew, where it is not that training went back."""
        self._tally = tally
        self._last_taken = -1
        self._went_back_to = math.inf
        self._since = -math.inf
        """The modification time of the first file that the present attempt wrote, which tells its files apart."""
        self._past: dict[str, int] = {}
        """Worker -> the last step that it wrote in the present attempt."""
        self._aside: set[tuple[str, int]] = set()
        """Files of the attempt before (worker, step), which are no part of this one."""
        self._recent: deque[int] = deque(maxlen=LOOK_BACK)
        self._before: Ledger | None = None
        """While a listing is sorted that shows that training went back: what was dealt with until then."""

    @property
    def look_back(self) -> int | None:
        """The step from which on a listing has to show files; None: all of them."""
        if len(self._recent) < LOOK_BACK:
            return None
        return min([*self._recent, *self.waiting])

    def reach_back(self, listing: Iterable[Sighting]) -> bool:
        """Whether a listing that began at the look-back shows that something was written before it, too.

        Training that goes back writes the earliest steps first, so that it has done so before the first of them that is
        looked at. The same goes for a step that nobody had saved.
        """
        return any(
            self._written_again(one) or (one.step <= self._last_taken and not self.ledger.knows(one.step))
            for one in listing
        )

    def note(self, listing: Iterable[Sighting], times: Times) -> bool:
        """Put listed files where they belong; whether any was new."""
        listed = list(listing)
        again = [sighting for sighting in listed if self._written_again(sighting)]
        if again:
            self._go_back(again)
        for sighting in listed:
            if sighting.modified >= self._since:
                self._past[sighting.worker] = max(sighting.step, self._past.get(sighting.worker, -1))
        news = [self._note(sighting, times) for sighting in listed]
        if self._went_back_to < math.inf:
            self._note_former(listed)
        self._before = None
        return any(news) or bool(again)

    def seen(self, step: int) -> Seen:
        """What there is of a step, without the files that could not be read."""
        waiting = self.waiting[step]
        readable = sum(arrival.error is None for arrival in waiting.files.values())
        return Seen(step, readable, waiting.first, max(arrival.at for arrival in waiting.files.values()))

    def taken(self, step: int) -> Waiting:
        """Let go of a step, and remember which of its files were used."""
        waiting = self.waiting.pop(step)
        for worker, arrival in waiting.files.items():
            self._remember(worker, arrival.sighting, used=arrival.error is None)
        for worker, sighting in (waiting.former or {}).items():
            self._remember(worker, sighting, used=True)
        self._last_taken = step
        self._recent.append(step)
        self.restarted = False
        return waiting

    def _remember(self, worker: str, sighting: Sighting, *, used: bool) -> None:
        self.ledger.record(worker, sighting.step, sighting.modified, sighting.size, used=used)

    def _written_again(self, sighting: Sighting) -> bool:
        """Whether a file that was evaluated has changed."""
        former = self.ledger.find(sighting.worker, sighting.step)
        return former is not None and former.used and former[:2] != (sighting.modified, sighting.size)

    def _go_back(self, again: Iterable[Sighting]) -> None:
        """Begin anew, knowing which files are of the attempt before."""
        first = min(again, key=lambda sighting: sighting.step)
        # A slower worker's part of the same restart overwrites what is older, a further restart what is newer.
        overwritten = [self.ledger.find(one.worker, one.step) for one in again]
        if any(former is not None and former.modified >= self._since for former in overwritten):
            self._went_back_to = math.inf
            self._since = min(sighting.modified for sighting in again)
        self._went_back_to = min(self._went_back_to, first.step)
        self._tally.restart(first.step, first.worker, self.why_anew)
        self._before, self.ledger = self.ledger, Ledger()
        self.waiting.clear()
        self._recent.clear()
        self._past.clear()
        self._aside.clear()
        self._last_taken = -1
        self.restarted = True

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
            was_aside = (worker, step) in self._aside
            if former is not None and former[:2] == (sighting.modified, sighting.size) and not was_aside:
                return False
            if self._is_former(sighting):
                self._aside.add((worker, step))
                self._remember(worker, sighting, used=False)
                return False
            self._aside.discard((worker, step))
            if step <= self._last_taken:
                # What was never evaluated comes late, however often it is written; it is counted once.
                if former is None:
                    self._tally.late(sighting.key)
                self.workers[worker] = None
                self._remember(worker, sighting, used=False)
                return True
        # What was dealt with before is not waited for again.
        dealt_with = self._before is not None and self._before.find(worker, step) is not None
        at = -math.inf if dealt_with and step < self._went_back_to else times.arrived(sighting.modified)
        if waiting is None:
            waiting = self.waiting[step] = Waiting(at)
        waiting.first = min(waiting.first, at)
        waiting.files[worker] = Arrival(sighting, at)
        if waiting.former is not None:
            waiting.former.pop(worker, None)
        self.workers[worker] = None
        return True

    def _is_former(self, sighting: Sighting) -> bool:
        """Whether the attempt before wrote this file, beyond the step that training went back to."""
        before = sighting.step >= self._went_back_to and sighting.modified < self._since
        return before and sighting.step > self._past.get(sighting.worker, -1)

    def _note_former(self, listed: Iterable[Sighting]) -> None:
        """Keep, for steps that are written again, the files of those workers that have not done so."""
        self.left.clear()
        for sighting in filter(self._is_former, listed):
            waiting = self.waiting.get(sighting.step)
            if waiting is not None and sighting.worker not in waiting.files:
                waiting.former = {**(waiting.former or {}), sighting.worker: sighting}
            elif not self._used(sighting.step):
                self.left.add(sighting.step)

    def _used(self, step: int) -> bool:
        found = (self.ledger.find(worker, step) for worker in self.ledger.workers)
        return any(former is not None and former.used for former in found)


def _same(one: Sighting, other: Sighting) -> bool:
    return (one.modified, one.size) == (other.modified, other.size)
