"""Replay: a saved run as the trial of a class, which sees of it at each step what a job would have sent by then."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.clock import SystemClock
from evaluator.hosting.fed import FedReader, FedSource
from evaluator.hosting.host import STEP_LIMITS
from evaluator.isolation import messages
from evaluator.isolation.files import packed
from evaluator.sources.base import Sighting, Source, StepFile
from evaluator.trial.opening import open_run
from evaluator.user_rules.opening import create_trial
from evaluator.user_rules.trial import Trial


class Replay:
    """The run, and those that it is compared with."""

    def __init__(self) -> None:
        """There is no run yet."""
        self._path = ""
        self._others: tuple[str, ...] = ()
        self._run: Source | None = None
        self._reader: FedReader | None = None
        self._waiting: list[Sighting] = []

    def open(self, path: str, others: Sequence[str]) -> None:
        """Take this run, and let nothing of it be seen yet."""
        run = open_run(path)
        self._path, self._others, self._run = path, tuple(others), run
        self._reader = FedReader(path, FedSource(lambda file, positions: packed(run.read(file, [positions]))))
        self._reader.take(messages.Step(-1, (), True, False, {}, run.collections()), ())
        self._waiting = sorted(run.sightings(), key=lambda sighting: (sighting.step, sighting.worker), reverse=True)

    def show(self, step: int) -> None:
        """Let all steps up to this one be seen."""
        if self._run is None or self._reader is None:
            raise TypeError("a replay is opened before it is shown")
        while self._waiting and self._waiting[-1].step <= step:
            now = self._waiting[-1].step
            files: list[StepFile] = []
            while self._waiting and self._waiting[-1].step == now:
                files += self._run.open(self._waiting.pop())
            self._reader.take(messages.Step(now, (), True, False, {}, None), files)

    def trials(self) -> tuple[Trial, list[Trial]]:
        """The trial to judge, and those to compare with, which are there as a whole."""
        if self._reader is None:
            raise TypeError("a replay is opened before its trial is asked for")
        trial = Trial(self._path.rstrip("/").rpartition("/")[2], self._reader, SystemClock(), STEP_LIMITS)
        return trial, [create_trial(path) for path in self._others]
