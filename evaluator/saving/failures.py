"""What goes wrong beside a training: told once, counted always, and never raised."""

from __future__ import annotations

import contextlib
import logging
from types import TracebackType

# The standard library's logging prints a warning in every script, also where nothing was set up.
_log = logging.getLogger("evaluator.saving")


class Failures:
    """Counts what went wrong beside a training, and warns of the first."""

    def __init__(self) -> None:
        """Nothing went wrong yet."""
        self.count = 0
        self.first = ""

    def note(self, doing: str, error: BaseException) -> None:
        """Count a failure; only the first is told, so that a full disk does not fill the log too."""
        self.count += 1
        if self.count == 1:
            self.first = f"{doing}: {type(error).__name__}: {error}"
            # A logging set-up can be broken, too.
            with contextlib.suppress(Exception):
                _log.warning("%s; training goes on, further failures are only counted", self.first)

    def guard(self, doing: str) -> Guard:
        """Whatever goes wrong inside is noted, and goes no further."""
        return Guard(self, doing)

    def sum_up(self) -> None:
        """Say at the end how much is missing, where that was not said by the first warning already."""
        if self.count > 1:
            with contextlib.suppress(Exception):
                _log.warning("saving failed %d times; the first: %s", self.count, self.first)


class Guard:
    """Keeps exceptions inside: saving must never end a training, whatever the reason."""

    def __init__(self, failures: Failures, doing: str) -> None:
        """Nothing is done yet."""
        self._failures = failures
        self._doing = doing

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        """Note an exception; what ends a program on purpose, such as KeyboardInterrupt, passes."""
        if not isinstance(error, Exception):
            return False
        self._failures.note(self._doing, error)
        return True
