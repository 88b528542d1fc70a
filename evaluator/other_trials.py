"""The other runs that rules compare with: opened when first needed, read step by step beside the trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from evaluator.clock import Clock
from evaluator.engine.counterparts import counterpart
from evaluator.engine.kept import Kept, value_positions
from evaluator.errors import EvaluatorError
from evaluator.formats.key_names import natural_key
from evaluator.segments import Array
from evaluator.sources.base import Layout, Sighting, Source, StepFile

LOOK_AGAIN = 30.0
"""Seconds after which a step that was missing is looked for again: the other run may be going on too."""


class OtherTrial:
    """One other run."""

    def __init__(self, source: Source, clock: Clock) -> None:
        """Nothing is read yet."""
        self._source = source
        self._clock = clock
        self._steps: dict[int, dict[str, Sighting]] = {}
        self._listed_at: float | None = None
        self._open: tuple[int, str, Sequence[StepFile]] | None = None
        self.unreadable: dict[str, str] = {}

    def values(self, step: int, worker: str, mine: Layout, names: Sequence[str]) -> Mapping[str, Array] | None:
        """These tensors at the same step there, of this worker or else of the first; None when the step is missing.

        One that is not there by its name, and is under one that only parts of wrappers make another, is that one.
        """
        workers = self._workers_at(step)
        if not workers:
            return None
        chosen = worker if worker in workers else min(workers, key=natural_key)
        try:
            files = self._files(workers[chosen])
        except EvaluatorError as error:
            # What is wrong with the other run must not stop this one; the step counts as missing.
            self.unreadable[workers[chosen].key] = str(error)
            return None
        found: dict[str, Array] = {}
        absent = names
        for file in files:
            absent = [name for name in absent if name not in file.layout.at]
        for file in files:
            renamed = {name: other for name in absent if (other := counterpart(name, mine, file.layout)) is not None}
            wanted = [*names, *renamed.values()] if renamed else names
            positions = np.array(sorted(value_positions(file.layout, wanted).values()), np.int64)
            read = self._source.read(file, [positions])
            kept = Kept(file.layout, [(places, segments) for _, places, segments in read.joined], read.texts)
            found.update(kept.by_name)
            found.update((name, found[other]) for name, other in renamed.items() if other in found)
        return found

    def _workers_at(self, step: int) -> Mapping[str, Sighting]:
        now = self._clock.monotonic()
        stale = self._listed_at is None or now - self._listed_at >= LOOK_AGAIN
        if step not in self._steps and stale:
            self._listed_at = now
            for sighting in self._source.sightings():
                self._steps.setdefault(sighting.step, {})[sighting.worker] = sighting
        return self._steps.get(step, {})

    def _files(self, sighting: Sighting) -> Sequence[StepFile]:
        if self._open is None or self._open[:2] != (sighting.step, sighting.worker):
            self._open = (sighting.step, sighting.worker, self._source.open(sighting))
        return self._open[2]


class OtherTrials:
    """All other runs of a job, by their paths."""

    def __init__(self, open_source: Callable[[str], Source], clock: Clock) -> None:
        """Nothing is open yet."""
        self._open_source = open_source
        self._clock = clock
        self._trials: dict[str, OtherTrial] = {}

    def open(self, paths: Iterable[str]) -> None:
        """Open these runs. Raises InputError when there is none under one of the paths."""
        for path in paths:
            if path not in self._trials:
                self._trials[path] = OtherTrial(self._open_source(path), self._clock)

    def values(
        self, path: str, step: int, worker: str, mine: Layout, names: Sequence[str]
    ) -> Mapping[str, Array] | None:
        """These tensors at a step of one of the opened runs; `mine` is what they stand in here."""
        return self._trials[path].values(step, worker, mine, names)

    @property
    def unreadable(self) -> dict[str, str]:
        """What could not be read of them: file -> why."""
        return {f"{path}: {key}": why for path, one in self._trials.items() for key, why in one.unreadable.items()}
