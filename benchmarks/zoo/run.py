"""What one training program saved: arrays in memory first, then a trial folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.modes import Mode
from evaluator.writer import TrialWriter, write_end_marker

Array = NDArray[Any]

STARTED = 1.75e9
"""Seconds since the epoch at which every program starts, so that the same seed gives the same bytes."""

PYTORCH = {
    "weights": r"^(?!gradient).*weight",
    "biases": r"^(?!gradient).*bias",
    "gradients": r"^gradient",
    "losses": r"[Ll]oss_(?!input).*output",
    "labels": r"^labels$",
    "predictions": r"^predictions$",
    "metrics": r"^scalar/",
    "default": r"_(in|out)put_\d+$",
}
"""Collection -> the names in it.

Source:
    the first four as the PyTorch hook of smdebug saves them (saved-format.md, section 5); the others as a script
    would add them for ClassImbalance and for its own scalars.
"""

XGBOOST = {
    "metrics": r"^(train|validation)-",
    "losses": r"^(train|validation)-(?!auc|map)",
    "hyperparameters": r"^hyperparameters/",
    "predictions": r"^predictions$",
    "labels": r"^labels$",
    "feature_importance": r"^feature_importance/",
    "trees": r"^trees/",
}
"""The same for the XGBoost hook (builtin-rules.md, 1.9)."""


@dataclass(frozen=True)
class Saved:
    """What one worker saved at one step."""

    step: int
    mode: Mode
    mode_step: int
    values: dict[str, Array]
    worker: int = 0
    seconds: float = 0.0


@dataclass
class Run:
    """All that one training program saved."""

    saved: list[Saved] = field(default_factory=list)
    patterns: dict[str, str] = field(default_factory=lambda: dict(PYTORCH))
    workers: int = 1
    begins: int | None = None
    """The global step at which the fault begins; None in a healthy run."""
    other: Run | None = None
    """The other trial, of a run that is compared with one."""

    @property
    def steps(self) -> list[int]:
        """The global steps that were saved, in order."""
        return sorted({saved.step for saved in self.saved})

    def at(self, name: str, mode: Mode | None = None, worker: int = 0) -> Iterator[tuple[int, Array]]:
        """Each saved (step, value) of a tensor."""
        for saved in self.saved:
            if saved.worker == worker and mode in {None, saved.mode} and name in saved.values:
                yield saved.step, saved.values[name]

    def values(self, name: str, mode: Mode | None = None, worker: int = 0) -> list[Array]:
        """The values of a tensor, oldest first."""
        return [value for _, value in self.at(name, mode, worker)]

    def series(self, name: str, mode: Mode | None = None, worker: int = 0) -> NDArray[np.float64]:
        """The values of a tensor of one element, oldest first."""
        return np.array([float(np.ravel(value)[0]) for value in self.values(name, mode, worker)])

    def names(self, pattern: str = "") -> list[str]:
        """The names of tensors in which the pattern is found, in the order in which training saved them."""
        seen = dict.fromkeys(name for saved in self.saved for name in saved.values)
        return [name for name in seen if re.search(pattern, name)]

    def without(self, pattern: str) -> Run:
        """The same run, had these tensors not been saved."""
        kept = [
            Saved(
                saved.step,
                saved.mode,
                saved.mode_step,
                {name: value for name, value in saved.values.items() if not re.search(pattern, name)},
                saved.worker,
                saved.seconds,
            )
            for saved in self.saved
        ]
        return Run([saved for saved in kept if saved.values], self.patterns, self.workers, self.begins, self.other)

    def write(self, folder: Path) -> None:
        """Write the trial folder, as ended."""
        found = {name: self.names(pattern) for name, pattern in self.patterns.items()}
        collections = {name: tensors for name, tensors in found.items() if tensors}
        writers = [
            TrialWriter(folder, worker=f"worker_{worker}", num_workers=self.workers, collections=collections)
            for worker in range(self.workers)
        ]
        for saved in self.saved:
            writers[saved.worker].save(
                saved.step, saved.values, mode=saved.mode, mode_step=saved.mode_step, wall_time=STARTED + saved.seconds
            )
        for writer in writers:
            writer.close(end=False)
        write_end_marker(folder)


def saved_between(steps: Iterable[int], begins: int, found: int) -> int:
    """How many saved steps went by from the beginning of a fault to its finding; 0 if it was found at once."""
    return sum(begins <= step < found for step in steps)
