"""Reads a trial from where it lies: what is new in its listing, and values on demand."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence

import numpy as np

from evaluator.clock import Clock
from evaluator.errors import FormatError, StorageError
from evaluator.sources.base import Collections, FileValues, Positions, Sighting, Source, StepFile
from evaluator.sources.event_reading import Place
from evaluator.user_rules.reader import Limits

LOOK_BACK = 20
"""Saved steps that each listing covers, for late and rewritten files. Source: design.md, section 10."""

READ_TOGETHER = 2**20
"""Bytes up to which all entries of one kind (values, or one reduction) of a file are read when one is asked for."""

StepRange = tuple[int | None, int | None]


class SourceReader:
    """The reader of a plain source."""

    def __init__(self, source: Source, clock: Clock, limits: Limits, range_steps: StepRange = (None, None)) -> None:
        """Nothing is read yet; of `range_steps` (first, beyond the last) either may be None."""
        self.source = source
        self.refused: dict[str, str] = {}
        """Key of an index file -> why it cannot be read; tried again with each listing."""
        self._clock = clock
        self._limits = limits
        self._begin, self._end = range_steps
        self._known: dict[tuple[int, str], Sighting] = {}
        self._bad: dict[str, int] = {}
        self._steps: list[int] = []
        self._first_seen: deque[tuple[float, int]] = deque()
        self._settled = -1
        self._newest: float | None = None
        self._last_of: dict[str, int] = {}
        self._listed_at: float | None = None
        self._over = False

    @property
    def path(self) -> str:
        """The store's URI."""
        return self.source.store.uri

    def collections(self) -> Collections | None:
        """Those of all workers' files."""
        return self.source.collections()

    def news(self, waiting_for: int) -> Sequence[Sequence[StepFile]]:
        """The step files that the listing shows and that were not given before, or were replaced."""
        now = self._clock.monotonic()
        whole = self._over or self._listed_at is None or now - self._listed_at >= self._limits.relist
        if whole:
            self._listed_at = now
        found = []
        for sighting in self.source.sightings(from_step=self._begin if whole else self._look_from(waiting_for)):
            opened = self._open(sighting)
            if opened:
                found.append(opened)
                self._note(sighting, now)
        return found

    def settled(self) -> int:
        """The last step whose first file was seen long enough ago for missing workers not to be waited for."""
        now = self._clock.monotonic()
        while self._first_seen and now - self._first_seen[0][0] >= self._limits.quorum:
            self._settled = max(self._settled, self._first_seen.popleft()[1])
        return self._settled

    def ended(self) -> bool:
        """Whether the end marker is there and nothing has come for a moment: each worker writes the marker."""
        if not self._over and self.source.ended():
            quiet = self._limits.end_delay if self._newest is None else self._clock.now() - self._newest
            if quiet < self._limits.end_delay:
                self._clock.wait(min(self._limits.end_delay, self._limits.end_delay - quiet))
            self._over = True
        return self._over

    def read(self, file: StepFile, positions: Positions) -> FileValues:
        """The values; a file that was replaced after its index file was read is looked up anew."""
        values = self._read(file, positions)
        if not values.problems:
            return values
        started = self._clock.monotonic()
        while self._may_come(file) and self._clock.monotonic() - started < self._limits.event_file:
            self.wait(self._limits.poll)
            values = self._read(file, positions)
        return self._read_anew(file, positions, values) if values.problems else values

    def wait(self, seconds: float) -> None:
        """Just let time pass."""
        self._clock.wait(seconds)

    def _look_from(self, waiting_for: int) -> int:
        recent = self._steps[-LOOK_BACK] if len(self._steps) >= LOOK_BACK else 0
        return max(min(recent, waiting_for, *self._bad.values()), self._begin or 0)

    def _open(self, sighting: Sighting) -> Sequence[StepFile]:
        """The step files of a sighting; none when they are known, out of range or not readable."""
        if (self._begin is not None and sighting.step < self._begin) or (
            self._end is not None and sighting.step >= self._end
        ):
            return ()
        known = self._known.get((sighting.step, sighting.worker))
        if known is not None and (known.modified, known.size) == (sighting.modified, sighting.size):
            return ()
        try:
            opened = self.source.open(sighting)
        except (FormatError, StorageError) as error:
            # One bad index file costs nothing but itself; it may be whole at the next listing.
            self.refused[sighting.key], self._bad[sighting.key] = str(error), sighting.step
            return ()
        self.refused.pop(sighting.key, None)
        self._bad.pop(sighting.key, None)
        # A step in which nothing was saved is none. Source: saved-format.md, 3.1.
        return [file for file in opened if file.layout.names]

    def _note(self, sighting: Sighting, now: float) -> None:
        step = sighting.step
        self._known[step, sighting.worker] = sighting
        self._newest = max(sighting.modified, self._newest or 0.0)
        self._last_of[sighting.worker] = max(step, self._last_of.get(sighting.worker, -1))
        at = bisect_left(self._steps, step)
        if at == len(self._steps) or self._steps[at] != step:
            insort(self._steps, step)
            self._first_seen.append((now, step))

    def _read(self, file: StepFile, positions: Positions) -> FileValues:
        """The values, with those of the same kind beside them where all of them are small."""
        kinds = {file.layout.kinds[position] for position in positions.tolist()}
        alike = np.array([at for at, kind in enumerate(file.layout.kinds) if kind in kinds], np.int64)
        together = self.source.size_of(file, [alike]) <= READ_TOGETHER
        asked = set(positions.tolist())
        values = self.source.read(file, [alike if together else positions])
        values.problems = {at: problem for at, problem in values.problems.items() if at in asked}
        return values

    def _may_come(self, file: StepFile) -> bool:
        """Whether the event file is not there and may still be on its way.

        Source:
            saved-format.md, 11.5: not when the worker has written a later one, nor when the run has ended.
        """
        if not isinstance(file.place, Place) or self._last_of.get(file.worker, -1) > file.step:
            return False
        return self.source.store.stat(file.place.key) is None and not self.source.ended()

    def _read_anew(self, file: StepFile, positions: Positions, values: FileValues) -> FileValues:
        """The values by what the index file says now, where it says anything else than before."""
        known = self._known.get((file.step, file.worker))
        entry = None if known is None else self.source.store.stat(known.key)
        if known is None or entry is None or (entry.modified, entry.size) == (known.modified, known.size):
            return values
        now = Sighting(file.step, file.worker, entry.modified, entry.size, entry.key)
        try:
            opened = self.source.open(now)
        except (FormatError, StorageError):
            # what was wrong at first says more than that it still is
            return values
        for fresh in opened:
            if fresh.layout is file.layout and fresh.mode is file.mode:
                return self._read(fresh, positions)
        return values
