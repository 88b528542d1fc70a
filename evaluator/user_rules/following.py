"""Follows one run through a reader: what is new, how far it is, and waiting for steps.

Source:
    smdebug-api.md, section 6; saved-format.md, section 11.
"""

from __future__ import annotations

from collections.abc import Iterable

from evaluator.clock import Clock
from evaluator.formats.key_names import index_key
from evaluator.user_rules.collection import CollectionManager
from evaluator.user_rules.exceptions import NoMoreData, StepNotYetAvailable, StepUnavailable
from evaluator.user_rules.helpers import refresh
from evaluator.user_rules.logger import get_logger
from evaluator.user_rules.modes import ModeKeys, StepState
from evaluator.user_rules.reader import Limits, Reader
from evaluator.user_rules.steps import StepBook

MOST_LOOKS = 100
"""Looks for what still comes after the end marker; ours: a marker of an earlier run must not hold up the reader."""


class FollowedRun:
    """The steps, workers and collections of a run, as far as its reader shows them."""

    def __init__(self, reader: Reader, clock: Clock, limits: Limits) -> None:
        """Look once; the end of the run is not looked for yet."""
        self.path = reader.path
        self.logger = get_logger()
        self.dynamic_refresh = True
        self.index_reader = reader
        self.collection_manager = CollectionManager()
        self.book = StepBook()
        self._reader = reader
        self._clock = clock
        self._limits = limits
        self._workers: list[str] = []
        self._news = 0
        self._look()

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the run has ended and all of it is known; nothing is looked for any more."""
        return self.book.ended

    @property
    def last_complete_step(self) -> int:
        """The last global step that is complete; -1 for none."""
        return self.book.last_complete

    @property
    def num_workers(self) -> int:
        """How many workers save."""
        return self.collection_manager.get_num_workers()

    @property
    def workers_for_global_step(self) -> dict[int, set[str]]:
        """Global step -> the workers that saved it."""
        return self.book.workers

    @property
    def last_index_token(self) -> str | None:
        """The path of the last index file of the last step that was complete before the run ended."""
        seen = {worker for workers in self.book.workers.values() for worker in workers}
        known = seen | set(self._workers)
        if self.book.token_step is None or not known:
            return None
        return f"{self.path.rstrip('/')}/{index_key(self.book.token_step, max(known))}"

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        """Whether the step is there, will never be, or may still come."""
        self.maybe_refresh()
        return self.book.state(step, mode)

    def wait_for_steps(
        self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL, timeout: float | None = None
    ) -> None:
        """Return when all these steps are there.

        Args:
            required_steps: steps, counted within the mode.
            mode: GLOBAL counts the steps of all modes.
            timeout: seconds to wait while nothing new comes; the process's limit when it is not given.

        Raises:
            StepUnavailable: one of them was not saved.
            NoMoreData: the run has ended before one of them.
            StepNotYetAvailable: nothing came for as long as the limit is.
        """
        limit = self._limits.waiting if timeout is None else timeout
        with refresh(self):
            for step in required_steps:
                self._wait_for(step, mode, limit)

    def refresh_data(self) -> None:
        """Look for what is new, and whether the run has ended."""
        if self.loaded_all_steps:
            return
        # Asked first: what comes after the answer belongs to the run all the same.
        ended = self._reader.ended()
        news = self._look()
        if ended:
            for _ in range(MOST_LOOKS):
                if not news:
                    break
                news = self._look()
            self.book.end()

    def maybe_refresh(self, name: str | None = None) -> None:
        """Look for what is new, unless a block of `no_refresh` is on; a known name changes nothing."""
        del name
        if self.dynamic_refresh:
            self.refresh_data()

    def refresh_tensor(self, tname: str, steps: Iterable[int] | None = None) -> None:
        """Look for what is new, of this tensor as of all others."""
        del steps
        self.maybe_refresh(tname)

    def _wait_for(self, step: int, mode: ModeKeys, limit: float) -> None:
        came, since = self._news, self._clock.monotonic()
        while True:
            state = self.has_passed_step(step, mode)
            if state is StepState.AVAILABLE:
                return
            if state is StepState.UNAVAILABLE:
                last = max(self.book.steps(mode, incomplete=True), default=-1)
                if self.loaded_all_steps and step > last:
                    raise NoMoreData(step, mode, last)
                raise StepUnavailable(step, mode)
            if self._news > came:
                came, since = self._news, self._clock.monotonic()
            left = limit - (self._clock.monotonic() - since)
            if left <= 0:
                raise StepNotYetAvailable(step, mode)
            self._reader.wait(min(self._limits.poll, left))

    def _look(self) -> bool:
        """Take what the reader shows; whether anything was new."""
        collections = self._reader.collections()
        if collections is not None:
            for name, saved in collections.by_name.items():
                known = self.collection_manager.get(name)
                known.tensor_names |= set(saved.tensor_names)
                known.include_regex.extend(one for one in saved.include_regex if one not in known.include_regex)
            self.collection_manager.set_num_workers(collections.num_workers or 1)
            self._workers = sorted(collections.files)
        news = self._reader.news(self.book.last_complete + 1)
        for saved_together in news:
            self.book.take(saved_together)
        self.book.settle(self.num_workers, self._reader.settled(), self._limits.window)
        self._news += len(news)
        return bool(news)
