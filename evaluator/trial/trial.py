"""Trial: what one training run has saved so far; polling it yields the steps that can be taken, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evaluator.clock import Clock
from evaluator.errors import StorageUnavailable
from evaluator.formats.key_names import natural_key
from evaluator.modes import Mode
from evaluator.sources.base import Source, StepFile
from evaluator.trial.arrivals import Arrival, Arrivals, Times
from evaluator.trial.completeness import Completeness, SeenSteps, Waits, takeable
from evaluator.trial.names import NameBook
from evaluator.trial.outages import Outages
from evaluator.trial.step import Step
from evaluator.trial.tally import StepCounts, Tally

LISTED_AT_EASE = 20_000
"""Files in a listing of the whole run from which on such listings become rarer in proportion: one of that many takes as
many requests as the looks between two of them."""


class Trial:
    """The steps of one run, each taken once; when one is written again after that, all of them are taken anew.

    So a run that is followed comes to the same as one that is read when it has ended: rules judge what is in the folder
    now, with all the history that they need.
    """

    def __init__(
        self, source: Source, clock: Clock, waits: Waits, *,
        following: bool, relist: float = 600.0, patience: float = 0.0,
    ) -> None:  # fmt: skip
        """Nothing is read before the first poll.

        Args:
            source: where the run is.
            clock: for the waiting times.
            waits: how long to wait for late files and for silent workers.
            following: whether the run may still be going on; if not, everything there is is taken at once.
            relist: seconds between two listings of the whole run; more where it has very many files.
            patience: seconds for which a storage that does not answer is asked again, at each poll.
        """
        self.source = source
        self.outages = Outages(clock, patience)
        self.names = NameBook()
        self.modes_seen: set[Mode] = set()
        self.newest_at: float | None = None
        """When a listing showed a new file last, by the monotonic clock."""
        self.listed_at: float | None = None
        """When the last listing was made, by the monotonic clock."""
        self.quiet = True
        """Whether the last listing showed nothing new."""
        self.ended = not following
        self._clock = clock
        self._waits = waits
        self._relist = relist
        self._all_listed_at: float | None = None
        self._all_listed = 0
        self._tally = Tally()
        self._arrivals = Arrivals(self._tally)
        self._silent: tuple[str, ...] = ()
        self._before: int | None = None
        self._farthest = 0
        """The largest distance from one step to the next, of those that were taken."""

    @property
    def counts(self) -> StepCounts:
        """What became of the steps and files."""
        return self._tally.counts

    @property
    def problems(self) -> Mapping[str, str]:
        """Key, worker, step or pattern -> what was wrong; the first hundred, and the patterns."""
        return {**self.outages.problems(), **self._tally.problems, **self.names.problems}

    @property
    def more_problems(self) -> int:
        """How many problems there were beyond those."""
        return self._tally.more_problems

    @property
    def workers(self) -> list[str]:
        """The workers that wrote anything, collections included."""
        return list(dict.fromkeys([*self._arrivals.workers, *self.names.collections.files]))

    @property
    def writers(self) -> list[str]:
        """The workers of which a step file was dealt with, up to the last step that was judged."""
        last, ledger = self.counts.last, self._arrivals.ledger
        return [worker for worker in ledger.workers if last is not None and ledger.first_step(worker) <= last]

    @property
    def silent_workers(self) -> list[str]:
        """The workers that were missing at the last step taken."""
        return list(self._silent)

    @property
    def steps_waiting(self) -> int:
        """How many steps were seen and not taken yet."""
        return len(self._arrivals.waiting)

    @property
    def expected_workers(self) -> int | None:
        """How many workers save, by the collection files."""
        return self.names.collections.num_workers

    @property
    def anything_seen(self) -> bool:
        """Whether any step file was seen."""
        return bool(self._arrivals.workers)

    def progress(self, worker: str) -> tuple[int, int]:
        """The last step taken of a worker, and how many."""
        last = self._arrivals.ledger.last_step(worker)
        return (-1 if last is None else last), self._arrivals.ledger.steps_of(worker)

    def poll(self) -> Iterator[Step]:
        """Look for what is new and yield the steps that can be taken now, lazily and in order.

        While the storage does not answer there are none; StorageUnavailable is raised when that goes on for too long.
        """
        yield from self._as_answered(self._poll())

    def _poll(self) -> Iterator[Step]:
        if self.source.is_log:
            self._see_collections()
        self._see_files()
        waiting = self._arrivals.waiting
        if not self.source.is_log and (waiting or not self.quiet or not self._all_collections):
            self._see_collections()
        now = self._clock.monotonic()
        if not waiting or not self._collections_settled(now):
            return
        takeable_now = takeable(
            SeenSteps(sorted(waiting), self._arrivals.seen), expected=self.expected_workers, now=now,
            waits=self._waits, ended=self.ended, open_from=self.source.open_from, before=self._before,
            farthest=None if self.source.is_log else self._farthest,
        )  # fmt: skip
        for step, completeness in takeable_now:
            taken = self._take(step, completeness)
            if taken is None:
                return
            if self._before is not None and not taken.restarted:
                self._farthest = max(self._farthest, step - self._before)
            self._before = step
            yield taken

    def finish(self, *, again: bool = False) -> Iterator[Step]:
        """The run has ended: list everything once more and yield what is left; `again`: anew where values came late."""
        self.ended = True
        self._all_listed_at = None
        try:
            if again and self.source.reveal():
                self._arrivals.why_anew = "values had come after their step was taken; judged anew with them"
        except StorageUnavailable as error:
            self.outages.met(error)
            return
        yield from self.poll()
        if not self.outages.going_on:
            self._tally.left(self._arrivals.left)

    def _as_answered(self, steps: Iterator[Step]) -> Iterator[Step]:
        """The steps until the storage does not answer; what was not taken by then is taken when it does."""
        try:
            yield from steps
        except StorageUnavailable as error:
            self.outages.met(error)
        else:
            self.outages.over()

    def end_marked(self) -> bool:
        """Whether the end marker was seen; without an answer it was not."""
        try:
            return self.source.ended()
        except StorageUnavailable as error:
            self.outages.note(error)
            return False

    def judged(self, step: Step) -> None:
        """Count a step that was yielded: steps that were only read ahead are not told of."""
        complete = step.completeness is Completeness.COMPLETE
        self._tally.judged(step.number, step.unreadable_keys.items(), complete=complete, restarted=step.restarted)
        self._silent = step.silent

    def count_unreadable(self, file: StepFile, problems: Mapping[int, str]) -> None:
        """Count the tensors of a file that was listed and opened but could not be read (position -> why)."""
        self._tally.not_read(file.step, file.worker, problems)

    @property
    def _all_collections(self) -> bool:
        """Whether every worker's collection file was seen; a file is only written anew when something is saved."""
        collections = self.names.collections
        return collections.num_workers is not None and len(collections.files) >= collections.num_workers

    def _see_collections(self) -> None:
        collections = self.source.collections()
        if collections is not None:
            self.names.collections = collections
            self._tally.collections(collections.problems)

    def _see_files(self) -> None:
        times = Times(self._clock.now(), self._clock.monotonic(), self.listed_at)
        pause = self._relist * max(1.0, self._all_listed / LISTED_AT_EASE)
        whole = self._all_listed_at is None or times.monotonic - self._all_listed_at >= pause
        look_back = None if whole else self._arrivals.look_back
        listing = self.source.sightings(from_step=look_back)
        if look_back is not None and self._arrivals.reach_back(listing):
            # Nothing may be taken before it is known from where on the run was written again.
            whole, listing = True, self.source.sightings()
        self.listed_at = times.monotonic
        if whole:
            self._all_listed_at, self._all_listed = times.monotonic, len(listing)
        self.quiet = not self._arrivals.note(listing, times)
        if not self.quiet:
            self.newest_at = times.monotonic

    def _collections_settled(self, now: float) -> bool:
        """Whether every worker's collection file is there, or has been waited for long enough."""
        collections = self.names.collections
        expected = collections.num_workers
        if self.ended or (expected is not None and len(collections.files) >= min(expected, len(self.workers))):
            return True
        first = min(waiting.first for waiting in self._arrivals.waiting.values())
        return now - first >= self._waits.worker_quorum

    def _take(self, step: int, completeness: Completeness) -> Step | None:
        """Read the index files of a step; None when one of them is not whole yet and may still become so."""
        waiting = self._arrivals.waiting[step]
        for arrival in waiting.files.values():
            arrival.open(self.source)
        opened = {worker: one.opened for worker, one in waiting.files.items() if one.opened is not None}
        unreadable = {worker: one.error for worker, one in waiting.files.items() if one.error is not None}
        expected = self.expected_workers
        promised = expected if completeness is Completeness.COMPLETE and expected is not None else 0
        overdue = self._clock.monotonic() - waiting.first >= self._waits.worker_quorum
        if len(opened) < promised and not (self.ended or overdue):
            # A file that cannot be read may still be on its way: from now on it counts as not written yet.
            return None
        # Who did not write the step again is read as a later reading of the whole run would read it.
        for worker, sighting in (waiting.former or {}).items():
            former = Arrival(sighting, waiting.first)
            former.open(self.source)
            if former.opened is not None:
                opened.setdefault(worker, former.opened)
        complete = len(opened) >= expected if expected is not None else not unreadable
        missing = () if complete else set(self.workers) - waiting.files.keys() - opened.keys()
        taken = Step(
            step,
            [file for worker in sorted(opened, key=natural_key) for file in opened[worker]],
            Completeness.COMPLETE if complete else Completeness.PARTIAL,
            silent=tuple(sorted(missing, key=natural_key)),
            unreadable=unreadable,
            restarted=self._arrivals.restarted,
        )
        self._settle(taken)
        return taken

    def _settle(self, taken: Step) -> None:
        """Forget what is not needed any more of a step that was taken."""
        self.outages.over()
        files = self._arrivals.taken(taken.number).files
        taken.unreadable_keys = {files[worker].sighting.key: why for worker, why in taken.unreadable.items()}
        for file in taken.files:
            self.names.see_layout(file.layout)
        self.modes_seen.update(file.mode for file in taken.files)


__all__ = ["Step", "Trial"]
