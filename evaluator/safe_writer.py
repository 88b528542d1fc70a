"""For training scripts: a TrialWriter that cannot break the training.

    with SafeWriter("trial", collections={"losses": ["loss"]}, keep_bytes=10 * 2**30) as writer:
        for step in range(1000):
            writer.save(step, {"loss": train_one_step()}, mode=Mode.TRAIN)
            if writer.should_stop:
                break

A full disk, a folder that may not be written, a value of a type that cannot be saved: the first such failure is one
warning in the log, each is counted in `failures`, and the training goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from evaluator.formats.step_files import Payload
from evaluator.saving.failures import Failures
from evaluator.writer import CollectionSpec, TrialWriter


class SafeWriter(TrialWriter):
    """Writes what one worker saves, and never raises."""

    def __init__(self, folder: str | os.PathLike[str], *, failures: Failures | None = None, **options: Any) -> None:
        """The options are those of TrialWriter; `failures` is given by those who count their own there too."""
        self._failed = Failures() if failures is None else failures
        self._works = False
        self._num_workers = 1
        with self._failed.guard("the trial cannot be opened"):
            super().__init__(folder, **options)
            self._works = True

    @property
    def failures(self) -> int:
        """How often something could not be saved."""
        return self._failed.count

    def save(self, step: int, values: Mapping[str, object], **how: Any) -> None:
        """Write what was saved at one step, as TrialWriter does; what cannot be saved is left out and counted."""
        self._do(f"step {step} was not saved", super().save, step, values, **how)

    def collect(self, collections: Mapping[str, CollectionSpec]) -> None:
        """Add tensors to collections."""
        self._do("a collection was not changed", super().collect, collections)

    def write_collections(self) -> None:
        """Write the collections file."""
        self._do("the collections file was not written", super().write_collections)

    def close(self, *, end: bool = True) -> None:
        """Make the trial complete, and say how much of it is missing."""
        self._do("the trial was not closed", super().close, end=end)
        self._failed.sum_up()

    @property
    def should_stop(self) -> bool:
        """Whether a file named STOP lies in the folder; not where that cannot be told."""
        with self._failed.guard("the file STOP was not looked for"):
            return self._works and super().should_stop
        return False

    def _encoded(self, named: Iterable[tuple[str, object]], **of_the_step: Any) -> Iterator[tuple[str, Payload]]:
        """Each value that can be saved."""
        for one in named:
            with self._failed.guard(f"a tensor of step {of_the_step.get('step')} was not saved"):
                yield from list(super()._encoded([one], **of_the_step))

    def _do(self, doing: str, action: Callable[..., None], *arguments: Any, **options: Any) -> None:
        with self._failed.guard(doing):
            if self._works:
                action(*arguments, **options)
            else:
                self._failed.count += 1
