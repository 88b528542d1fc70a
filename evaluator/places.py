"""Places to read in: jobs that share a process take turns where it costs memory, and nobody waits unheard."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

from evaluator.engine.local import LEAST_PIECE, LocalEngine, Planner
from evaluator.engine.summaries import StepSummary
from evaluator.sources.base import Source
from evaluator.trial.trial import Step

LOOK_UP = 0.5
"""Seconds after which one who waits looks whether that still makes sense; a place is handed over at once."""
SPEAK_UP = 120
"""Looks after which one who waits says that it lives; its status is due every 300 s."""


class ReadingPlaces:
    """So many may read at the same time; the others wait in the order of coming."""

    def __init__(self, count: int) -> None:
        """All are free."""
        self.count = count
        self._lock = threading.Lock()
        self._free = count
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def one(self, stopped: Callable[[], bool], tell: Callable[[], None]) -> Iterator[bool]:
        """A place until the end of `with`, once one is free; False, and no place, when the job is stopped before.

        Args:
            stopped: whether nothing more is to be read.
            tell: called now and then during the wait.
        """
        there = self._take(stopped, tell)
        try:
            yield there
        finally:
            if there:
                self._give()

    def _take(self, stopped: Callable[[], bool], tell: Callable[[], None]) -> bool:
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            mine = threading.Event()
            self._waiting.append(mine)
        looks = 0
        try:
            while not mine.wait(LOOK_UP):
                looks += 1
                if stopped():
                    return not self._leave(mine)
                if looks % SPEAK_UP == 0:
                    tell()
        except BaseException:
            # telling may raise, and a place must not be handed to one who is gone
            if not self._leave(mine):
                self._give()
            raise
        return True

    def _leave(self, mine: threading.Event) -> bool:
        """Wait no longer; False when a place was handed over meanwhile."""
        with self._lock:
            if mine.is_set():
                return False
            self._waiting.remove(mine)
            return True

    def _give(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1


class PlacedEngine(LocalEngine):
    """A local engine that holds a place from the first step that is there to be read until all of them are read.

    Looking for new steps needs none, so runs in which nothing happens hold up nobody.
    """

    def __init__(
        self,
        source: Source,
        memory_budget: int,
        places: ReadingPlaces,
        stopped: Callable[[], bool],
        tell: Callable[[], None],
    ) -> None:
        """Hold no place yet; `stopped` and `tell` as in `ReadingPlaces.one`."""
        super().__init__(source, memory_budget)
        self._places = places
        self._stopped = stopped
        self._tell = tell

    def ahead(self, steps: Iterable[Step], plan_of: Planner) -> Iterator[StepSummary]:
        """The summaries of the steps, in their order; none where the job was stopped before there was a place."""
        coming = iter(steps)
        first = next(coming, None)
        if first is None:
            return
        with self._places.one(self._stopped, self._tell) as there:
            if there:
                yield from super().ahead(chain([first], coming), plan_of)


class Share:
    """The memory that a job may take: all that its settings say."""

    def __init__(self, memory_budget: int) -> None:
        """Half of it is for reading, half for values of earlier steps."""
        self._budget = memory_budget

    @property
    def kept(self) -> int:
        """Bytes, twice as many as may be kept of earlier steps' values."""
        return self._budget

    def engine(self, source: Source, stopped: Callable[[], bool], tell: Callable[[], None]) -> LocalEngine:
        """What reads the steps; `stopped` and `tell` as in `ReadingPlaces.one`."""
        del stopped, tell
        return LocalEngine(source, self._budget)


class OneOfMany(Share):
    """What one of many jobs in a process may take: of reading as much as a place has, of what is kept its part."""

    def __init__(self, memory_budget: int, places: ReadingPlaces, jobs: int) -> None:
        """`memory_budget` is that of all of them, at most `jobs` at the same time."""
        super().__init__(max(memory_budget // places.count, LEAST_PIECE))
        self._places = places
        self._kept = memory_budget // jobs

    @property
    def kept(self) -> int:
        """The same for all jobs, whoever comes first."""
        return self._kept

    def engine(self, source: Source, stopped: Callable[[], bool], tell: Callable[[], None]) -> LocalEngine:
        """An engine that reads in one of the places."""
        return PlacedEngine(source, self._budget, self._places, stopped, tell)
