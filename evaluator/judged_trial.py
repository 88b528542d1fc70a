"""What the evaluation needs to know of the trial whose steps it judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from evaluator.modes import Mode
from evaluator.sources.base import Source, StepFile
from evaluator.trial.names import NameBook
from evaluator.trial.trial import Step


class JudgedTrial(Protocol):
    """A trial, as the evaluation sees it."""

    @property
    def source(self) -> Source:
        """Where the steps come from."""

    @property
    def names(self) -> NameBook:
        """The tensors, and what selects them."""

    @property
    def modes_seen(self) -> set[Mode]:
        """The modes of the steps until now."""

    @property
    def expected_workers(self) -> int | None:
        """How many workers save."""

    def judged(self, step: Step) -> None:
        """Count a step."""

    def count_unreadable(self, file: StepFile, problems: Mapping[int, str]) -> None:
        """Count the tensors of a file that could not be read."""
