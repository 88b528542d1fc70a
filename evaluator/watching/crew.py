"""The threads that follow trials, one for each, and what they share: memory, requests, and the one who is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import structlog

from evaluator.clock import Clock
from evaluator.config.job_config import JobConfig
from evaluator.places import OneOfMany, ReadingPlaces
from evaluator.storage._sharing import Pace, Shared, sharing
from evaluator.watching.followed import OVER, Followed
from evaluator.watching.pacing import SpreadClock

PLACES = 4
"""Trials whose steps are read at the same time: each can have a quarter of the memory, which holds most steps whole."""
AGAIN_AFTER = 600.0
"""Seconds after which a trial whose storage had failed is tried again."""

Tell = Callable[[Followed], None]
"""Told of a trial when it begins to be followed and when it is over, by one thread at a time."""


class Crew:
    """All jobs of a process; `stop` may be called from another thread at any time."""

    def __init__(self, config: JobConfig, most: int, requests_per_second: float, clock: Clock, tell: Tell) -> None:
        """Start nothing yet.

        Args:
            config: of every trial's job.
            most: jobs at the same time.
            requests_per_second: of all jobs.
            clock: all jobs wait by it, so that waking it wakes all.
            tell: see `Tell`.
        """
        self.stopped = False
        self._config = config
        self._most = most
        self._clock = clock
        self._tell = tell
        self._lock = threading.Lock()
        """Held while the threads change, and while somebody is told."""
        self._pace = Pace(clock, requests_per_second)
        self._shared = Shared(self._pace)
        budget = config.settings.memory_budget
        self._share = OneOfMany(budget, ReadingPlaces(PLACES), most)
        self._budget = max(budget // PLACES, 1)
        self._threads: dict[threading.Thread, Followed] = {}

    @property
    def busy(self) -> bool:
        """Whether any job was running when `let_go` was called last."""
        return bool(self._threads)

    @property
    def full(self) -> bool:
        """Whether no other job may run beside those."""
        return len(self._threads) >= self._most

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Let the stores that this thread opens share what those of the jobs share."""
        with sharing(self._shared):
            yield

    def follow(self, one: Followed) -> None:
        """Give a trial a job and a thread."""
        one.state = "followed"
        thread = threading.Thread(target=self._follow, args=(one,), name=f"trial {one.match.name}", daemon=True)
        with self._lock:
            self._threads[thread] = one
        thread.start()

    def let_go(self) -> None:
        """Forget the threads that have ended."""
        ended = [thread for thread in self._threads if not thread.is_alive()]
        with self._lock:
            for thread in ended:
                self._threads.pop(thread).job = None

    def stop(self) -> None:
        """Let every job take what is saved already, or not even that, and end."""
        with self._lock:
            self.stopped = True
            jobs = [one.job for one in self._threads.values() if one.job is not None]
        for job in jobs:
            job.stop.request()
        self._clock.wake()

    def join(self) -> None:
        """Wait for all jobs to end."""
        for thread in self._threads:
            thread.join()
        self.let_go()

    def fail(self, one: Followed, error: Exception) -> None:
        """Something is wrong with a trial that has no job."""
        one.fail(error, self._config_of(one), self._clock)
        self._end(one)

    def _follow(self, one: Followed) -> None:
        """What the thread of a trial does."""
        structlog.contextvars.bind_contextvars(trial=one.match.uri)
        config = self._config_of(one)
        clock = SpreadClock(self._clock, self._pace, config.settings.poll_min)
        with self.sharing():
            try:
                one.begin(config, clock, self._share)
                if one.job is not None and self._may_run(one):
                    one.run(one.job)
            except Exception as error:  # noqa: BLE001 - what is wrong with one run must not end the others
                one.fail(error, config, clock)
        if one.state == "failed":
            one.look_at = self._clock.monotonic() + AGAIN_AFTER
        self._end(one)

    def _may_run(self, one: Followed) -> bool:
        """Whether a job that was made may run; whoever stops all of them from now on stops it too."""
        with self._lock:
            if self.stopped:
                one.state = "in line"
                return False
            self._tell(one)
        return True

    def _end(self, one: Followed) -> None:
        with self._lock:
            if one.state in OVER and not one.told:
                one.told = True
                self._tell(one)

    def _config_of(self, one: Followed) -> JobConfig:
        changed = {"trial": one.match.uri, "output": one.output, "memory_budget": self._budget}
        settings = self._config.settings.model_copy(update=changed)
        return replace(self._config, trial=one.match.uri, settings=settings)
