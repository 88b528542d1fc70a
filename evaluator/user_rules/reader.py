"""Reader: all that a trial needs from whatever brings it the saved steps, and how long it is willing to wait.

Two things can be behind it: a saved run that is read from where it lies (`source_reader`), for scripts and notebooks;
or messages from the parent process, when the rule runs in a process of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from evaluator.sources.base import Collections, FileValues, Positions, StepFile


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait for what (seconds), and how much to keep."""

    opening: float = 3600.0
    """For a trial to begin: its folder, and its first collections file. Ours; the reference waits for ever."""
    waiting: float = 3600.0
    """For a step, with no file of any step coming meanwhile. Ours; the reference waits for ever."""
    quorum: float = 300.0
    """For the workers that are missing: their collections files, and their part of a step. Ours, as `worker_quorum`."""
    window: int = 1000
    """So many steps beyond the last complete one make half of them count as complete. Source: saved-format.md, 11.4."""
    event_file: float = 200.0
    """For an event file whose index file is there. Source: saved-format.md, 11.5 (100 times 2 s)."""
    end_delay: float = 1.0
    """How long nothing may have come when the end marker is believed. Source: saved-format.md, 11.2."""
    poll: float = 2.0
    """Between two looks. Source: saved-format.md, 11.1."""
    relist: float = 600.0
    """Between two listings of the whole run, which find files of long ago. Ours, as the setting `relist`."""
    cache_bytes: int = 64 * 2**20
    """Values kept, so that each is read once while a step is evaluated. Ours."""


class Reader(Protocol):
    """Where a trial's steps come from. No method but `wait`, `read` and `ended` may take long."""

    @property
    def path(self) -> str:
        """What the trial is called by: its folder or URI."""

    def collections(self) -> Collections | None:
        """The collections as they are known now; None when nothing changed since the last call."""

    def news(self, waiting_for: int) -> Sequence[Sequence[StepFile]]:
        """What came or was replaced since the last call, in the order of steps.

        Each item is all that one worker saved at one step (one StepFile, or one per mode), never empty. It replaces
        what that worker saved at that step before.

        Args:
            waiting_for: earlier steps are complete, so that a reader need not look for their files each time.
        """

    def settled(self) -> int:
        """The last step of which nothing more is waited for, whichever worker is missing; -1 for none."""

    def ended(self) -> bool:
        """Whether nothing will come any more, once `news` gives nothing new. May wait for the end to be sure."""

    def read(self, file: StepFile, positions: Positions) -> FileValues:
        """The values at these positions of the file's layout, and those of others where that costs little.

        May wait for bytes that are on their way. What cannot be read is in `problems`.
        """

    def wait(self, seconds: float) -> None:
        """Until something new may have come, but no longer than this."""
