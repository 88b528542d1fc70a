"""All that the checks may go by, as far as it is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evaluator.sagemaker.check_job._request import TrainingRequest
from evaluator.sagemaker.diagnose._checkpoints import Checkpoint
from evaluator.sagemaker.diagnose._file_systems import FileSystem, Throughput
from evaluator.sagemaker.diagnose._groups import SecurityGroup
from evaluator.sagemaker.diagnose._job import JobFacts
from evaluator.sagemaker.diagnose._log import Hits, LogFacts
from evaluator.sagemaker.diagnose._trial import TrialFacts

START_LIMIT = 1800.0
"""Seconds within which a training has its first step, unless one says otherwise.

Our choice: longer than the time-outs of collectives (PyTorch: 600 s with NCCL, 1800 s otherwise), after which a stall
is an error in the log anyway.
"""

MOST_LETTERS = 200
"""Of a name that is shown."""


@dataclass
class Evidence:
    """What is known of one training; None where nothing was given.

    Args:
        now: seconds since the epoch.
        start_limit: seconds within which there is a first step.
        other_trials: of the same training on another number of workers.
        throughput: file system -> what it did; the empty name stands for the one that there is.
        missing: input -> why it could not be had, though it was asked for.
    """

    now: float
    start_limit: float = START_LIMIT
    request: TrainingRequest | None = None
    job: JobFacts | None = None
    log: LogFacts | None = None
    trial: TrialFacts | None = None
    other_trials: Sequence[TrialFacts] = ()
    checkpoints: Sequence[Checkpoint] = ()
    groups: Sequence[SecurityGroup] | None = None
    file_systems: Sequence[FileSystem] | None = None
    throughput: Mapping[str, Throughput] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def hits(self, sign: str) -> Hits:
        """The lines of the logs that show a sign."""
        found = None if self.log is None else self.log.hits.get(sign)
        return Hits() if found is None else found

    def notes(self) -> list[str]:
        """What was asked for and could not be had, or not to its end."""
        return [f"{what.replace('_', ' ')}: {why}" for what, why in self.missing.items()]

    def lacks(self, needed: str, *inputs: str) -> str:
        """Why something cannot be checked: what it needs, and what stood in the way of that."""
        # without the job nothing else is asked for
        reasons = [self.missing[one] for one in ("job", *inputs) if one in self.missing]
        return f"{needed} ({'; '.join(dict.fromkeys(reasons))})" if reasons else needed


def shortened(name: str) -> str:
    """A name of any length in so many letters."""
    return name if len(name) <= MOST_LETTERS else f"{name[:MOST_LETTERS]}..."


def listed(names: Iterable[object], most: int = 8) -> str:
    """Some names in a row, and how many more there are."""
    every = [shortened(str(name)) for name in names]
    more = f", ... ({len(every)} in all)" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def mapped(names: Mapping[str, str], most: int = 5) -> tuple[str, ...]:
    """Old name -> new name, one line each, the first few."""
    lines = [f"{shortened(old)} -> {shortened(new) or '(nothing)'}" for old, new in names.items()]
    more = [f"... ({len(lines)} in all)"] if len(lines) > most else []
    return (*lines[:most], *more)
