"""Follows all trials that match a pattern, each by a job in a thread of its own, and picks up new ones."""

from __future__ import annotations

import os
from dataclasses import dataclass

import structlog

from evaluator.clock import Clock
from evaluator.config.job_config import JobConfig
from evaluator.config.names import folder_name
from evaluator.errors import InputError, Mistake, StorageError, StorageUnavailable
from evaluator.output_lock import lock_of
from evaluator.storage import open_store
from evaluator.trial.opening import find_run
from evaluator.watching.crew import Crew, Tell
from evaluator.watching.followed import GONE_AFTER, OVER, Followed
from evaluator.watching.patterns import Match, Pattern
from evaluator.watching.watch_file import WATCH_FILE, WatchFile

TICK = 1.0
"""Seconds between two looks at what the jobs have come to."""
PATIENCE_SHARE = 0.25
LONGEST_PATIENCE = 300.0
"""A path without a trial is looked at again after a quarter of the time since it was found, at most after so long:
a request per look and old folder would add up, and what is new is mostly a trial soon."""
PATIENCE_OF_OUTPUT = 30.0
"""Seconds for which the output is asked again; watch.json and the lock are written again later."""
NAMED = 10
"""Paths that a message names."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Watching:
    """How many trials are watched.

    Args:
        most: trials that are followed at the same time; others wait in line.
        requests_per_second: to storage, and looks of all trials.
        look_every: seconds between two listings for new trials.
        until_idle: whether it ends once every trial that was found has ended.
        restart: whether trials that a former job has evaluated to their end are evaluated anew.
    """

    most: int = 300
    requests_per_second: float = 100.0
    look_every: float = 30.0
    until_idle: bool = False
    restart: bool = False


class Watcher:
    """All trials of one pattern; `stop` may be called from another thread at any time."""

    def __init__(self, config: JobConfig, pattern: Pattern, how: Watching, clock: Clock, tell: Tell) -> None:
        """Look at nothing yet.

        Args:
            config: of every trial's job; its `trial` and `output` are those of all of them.
            pattern: what is watched.
            how: how many, how often.
            clock: all jobs wait by it, so that waking it wakes all.
            tell: see `Tell`.
        """
        self.trials: dict[str, Followed] = {}
        self.stopped = False
        """Whether somebody called `stop`."""
        self._config = config
        self._pattern = pattern
        self._how = how
        self._clock = clock
        self._output = config.settings.output.rstrip("/") or "/"
        self._crew = Crew(config, how.most, how.requests_per_second, clock, tell)
        self._removed: dict[str, Followed] = {}
        """What became of trials that are not there any more."""
        self._look_at = 0.0
        self._problem = ""

    def stop(self) -> None:
        """Let every job take what is saved already, or not even that, and end."""
        self.stopped = True
        self._crew.stop()

    def run(self) -> list[Followed]:
        """Watch until `stop`, or until all that was found has ended where that was asked for; gives what was found.

        Raises:
            InputError: the pattern cannot be looked for at all.
            OutputError: the output cannot be written, or somebody else watches with the same.
        """
        with self._crew.sharing():
            store = open_store(self._output, self._clock)
            lock = lock_of(store, self._clock, ())
            lock.take()
            # whatever waits for an answer here keeps new trials waiting
            store.wait_at_most(PATIENCE_OF_OUTPUT)
            file = WatchFile(store, self._clock, self._pattern, self._output)
            try:
                self._look(first=True)
                while not self._is_over():
                    lock.refresh()
                    file.write(self.trials.values(), self._problem)
                    self._clock.wait(min(TICK, self._how.look_every))
                    self._go_on()
            finally:
                self._crew.stop()
                self._crew.join()
                file.write(self.trials.values(), self._problem, ended=True)
                lock.release()
        return sorted({**self._removed, **self.trials}.values(), key=lambda one: one.match.name)

    def _is_over(self) -> bool:
        if self.stopped:
            return True
        if not self._how.until_idle or self._busy():
            return False
        # what has come since the last look counts too
        self._look()
        return not (self._problem or self._busy())

    def _busy(self) -> bool:
        return self._crew.busy or any(one.state == "in line" for one in self.trials.values())

    def _go_on(self) -> None:
        self._crew.let_go()
        if self._clock.monotonic() >= self._look_at:
            self._look()
        self._fill()

    def _look(self, *, first: bool = False) -> None:
        """List what matches now, and see which of it are trials."""
        self._look_at = self._clock.monotonic() + self._how.look_every
        try:
            found = {match.name: match for match in self._pattern.matches() if self._is_no_output(match)}
        except StorageError as error:
            if first:
                # rather a mistake than an outage
                raise InputError([error.mistake]) from error
            if not self._problem:
                log.warning("pattern_not_listed", error=str(error))
            self._problem = str(error)
            return
        self._problem = ""
        if not found:
            reason = self._pattern.problem()
            if first:
                log.warning("nothing_matches", what=self._pattern.text, reason=reason or "no folder matches")
            if reason is not None:
                # that all are gone at once, with the folder they were in, is rather a disk that is not there
                return
        for name, match in found.items():
            if name not in self.trials:
                self.trials[name] = self._found(match)
            self.trials[name].missing = 0
        for one in [one for name, one in self.trials.items() if name not in found]:
            self._miss(one)
        self._see_trials()
        self._fill()

    def _is_no_output(self, match: Match) -> bool:
        uri, output = _place(match.uri), _place(self._output)
        return uri != output and not uri.startswith(f"{output.rstrip('/')}/")

    def _found(self, match: Match) -> Followed:
        folder = folder_name(match.name)
        if folder == WATCH_FILE:
            folder = f"%{ord(folder[0]):02X}{folder[1:]}"
        one = Followed(match, f"{self._output.rstrip('/')}/{folder}", self._clock.monotonic())
        one.anew = self._how.restart or match.name in self._removed
        return one

    def _miss(self, one: Followed) -> None:
        """A path is not listed any more: its job ends with what it has, and a new run under it is another one."""
        one.missing += 1
        if one.missing < GONE_AFTER:
            return
        if one.job is not None:
            one.job.stop.request()
        elif one.state != "followed":
            del self.trials[one.match.name]
            if one.state in OVER:
                self._removed[one.match.name] = one

    def _see_trials(self) -> None:
        now = self._clock.monotonic()
        for one in self.trials.values():
            if self.stopped:
                return
            if one.storage_failed and now >= one.look_at and not self._how.until_idle:
                one.state, one.told, one.code, one.problem = "in line", False, None, ""
            elif one.state == "no trial yet" and now >= one.look_at:
                one.look_at = now + min(PATIENCE_SHARE * (now - one.found_at), LONGEST_PATIENCE)
                self._see_trial(one)

    def _see_trial(self, one: Followed) -> None:
        try:
            store = open_store(one.match.uri, self._clock)
            # what is no folder may be a log
            there = "." in one.match.uri.rpartition("/")[2] or store.root_problem() is None
            if there and find_run(one.match.uri, store, self._clock, self._config.reading) is not None:
                one.state = "in line"
            one.problem = ""
        except StorageUnavailable as error:
            one.problem = str(error)
        except Exception as error:  # noqa: BLE001 - what is wrong with one run must not end the others
            self._crew.fail(one, error)

    def _fill(self) -> None:
        """Begin with those in line, as far as there is room."""
        for one in self.trials.values():
            if self.stopped or self._crew.full:
                return
            if one.state == "in line":
                self._crew.follow(one)

    def left(self) -> list[str]:
        """One line for each kind of path that was not followed, for people."""
        lines = []
        for state, what in (("in line", "still in line"), ("no trial yet", "no trial (yet)")):
            names = sorted(name for name, one in self.trials.items() if one.state == state)
            if names:
                lines.append(f"{what}: {', '.join(names[:NAMED])}{', ...' * (len(names) > NAMED)} ({len(names)})")
        return lines

    def nothing_found(self) -> InputError:
        """What to say when nothing matched, or nothing of it was a trial."""
        others = sorted(self.trials)
        what = "matches no trial" if others else self._pattern.problem() or "matches nothing"
        right = "a trial has folders index/, events/ and collections/, or is a log"
        there = f"; there is: {', '.join(others[:NAMED])}{', ...' * (len(others) > NAMED)}" if others else ""
        return InputError([Mistake(self._pattern.text, what, right + there)])


def _place(uri: str) -> str:
    """A path or URI in the one way in which it can be compared."""
    return uri.rstrip("/") if "://" in uri else os.path.abspath(uri)  # noqa: PTH100 - nothing is asked of the disk
