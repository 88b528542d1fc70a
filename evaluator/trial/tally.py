"""Tally: what became of the steps and files of a run, counted, and what was wrong with them, named."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

MOST_PROBLEMS = 100
"""Problems that are named; of more only the number is kept, so that a broken run cannot fill memory and status."""


@dataclass(slots=True)
class StepCounts:
    """What became of the steps and files, for the status; a step counts once it is judged."""

    complete: int = 0
    partial: int = 0
    late_files: int = 0
    unreadable: int = 0
    """Steps with a file that could not be read, or not all of it."""
    first: int | None = None
    last: int | None = None


class Tally:
    """Counts and problems of one run."""

    def __init__(self) -> None:
        """Nothing happened yet."""
        self.counts = StepCounts()
        self.problems: dict[str, str] = {}
        """Key, worker or step -> what was wrong."""
        self.more_problems = 0
        self._of_collections: set[str] = set()
        self._restarts: set[str] = set()
        self._unreadable_step: int | None = None

    def problem(self, where: str, what: str) -> None:
        """Note what was wrong; beyond the first hundred only how many there were."""
        if where in self.problems or len(self.problems) < MOST_PROBLEMS:
            self.problems[where] = what
        else:
            self.more_problems += 1

    def collections(self, problems: Mapping[str, str]) -> None:
        """What is wrong with the collection files now; what was wrong before and is right by now is forgotten."""
        for where in self._of_collections - problems.keys():
            self.problems.pop(where, None)
        for where in problems.keys() - self._of_collections:
            self.problem(where, problems[where])
        for where in problems.keys() & self._of_collections & self.problems.keys():
            # counts go on
            self.problems[where] = problems[where]
        self._of_collections = set(problems)

    def late(self, key: str) -> None:
        """A file came after its step was taken."""
        self.counts.late_files += 1
        self.problem(key, "came after its step was taken; not evaluated")

    def restart(self, step: int, worker: str, why: str = "") -> None:
        """A worker wrote a step again that had been evaluated; what was wrong with other files is found again."""
        kept = {where: what for where, what in self.problems.items() if where in self._of_collections | self._restarts}
        self.problems.clear()
        self.problems.update(kept)
        self.more_problems = 0
        where = f"restart at step {step}"
        self._restarts.add(where)
        self.problem(where, why or f"{worker} wrote step {step} again; later write wins")

    def left(self, steps: Collection[int]) -> None:
        """At the end there are steps that only an attempt before the last restart wrote."""
        if steps:
            where = f"steps {min(steps)} to {max(steps)}"
            were = f"{_counted(len(steps), 'step')} from before a restart {'was' if len(steps) == 1 else 'were'}"
            self.problem(where, f"{were} not written again; not evaluated")

    def judged(self, step: int, unreadable: Iterable[tuple[str, str]], *, complete: bool, restarted: bool) -> None:
        """A step is judged, without the files that could not be read (key, why)."""
        if restarted:
            self.counts = StepCounts()
            self._unreadable_step = None
        counts = self.counts
        counts.complete += complete
        counts.partial += not complete
        counts.first = step if counts.first is None else min(counts.first, step)
        counts.last = step if counts.last is None else max(counts.last, step)
        for key, why in unreadable:
            self._not_whole(step)
            self.problem(key, why)

    def not_read(self, step: int, worker: str, problems: Mapping[int, str]) -> None:
        """Tensors of a file could not be read (position -> why), though its index file could."""
        if problems:
            self._not_whole(step)
            first = next(iter(problems.values()))
            self.problem(f"step {step}, {worker}", f"{_counted(len(problems), 'tensor')} not read: {first}")

    def _not_whole(self, step: int) -> None:
        """Count a step with a file that could not be read, once."""
        self.counts.unreadable += step != self._unreadable_step
        self._unreadable_step = step


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
