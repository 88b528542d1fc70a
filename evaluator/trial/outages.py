"""Outages: how often and since when the storage of a run does not answer, and how long that is borne."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.clock import Clock
from evaluator.errors import StorageUnavailable


class Outages:
    """What was not answered, which is never the same as "nothing is there" or "the run goes on"."""

    def __init__(self, clock: Clock, patience: float) -> None:
        """All was answered until now.

        Args:
            clock: for the time that an outage takes.
            patience: seconds after which one is not borne any more; with 0 none is.
        """
        self._clock = clock
        self._patience = patience
        self._since: float | None = None
        self._count = 0
        self._last = ""

    @property
    def going_on(self) -> bool:
        """Whether what was asked last was not answered, so that nobody knows what is there."""
        return self._since is not None

    def note(self, error: StorageUnavailable) -> None:
        """Something was not answered, and nothing hangs on it."""
        self._count += 1
        self._last = str(error)

    def met(self, error: StorageUnavailable) -> None:
        """Something was not answered that has to be asked again.

        Raises:
            StorageUnavailable: that goes on for too long.
        """
        self.note(error)
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since >= self._patience:
            raise error

    def over(self) -> None:
        """All that was asked was answered."""
        self._since = None

    def problems(self) -> Mapping[str, str]:
        """What a reader of the status has to know."""
        if not self._count:
            return {}
        times = "once" if self._count == 1 else f"{self._count} times"
        return {"storage of the trial": f"gave no answer {times}, last: {self._last}"}
