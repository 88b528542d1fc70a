"""Step: one saved step as it was taken, which is what is judged."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaluator.sources.base import StepFile
from evaluator.trial.completeness import Completeness


@dataclass(slots=True)
class Step:
    """One saved step, taken: its files, and what is missing of it."""

    number: int
    files: list[StepFile]
    completeness: Completeness = Completeness.COMPLETE
    silent: tuple[str, ...] = ()
    """Workers known from elsewhere that wrote nothing for this step, when it is partial."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Worker -> why its file could not be read."""
    unreadable_keys: dict[str, str] = field(default_factory=dict)
    """Key -> the same."""
    restarted: bool = False
    """Whether training went back, so that all steps are taken anew and this is the first of them."""
