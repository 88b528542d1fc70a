"""What the job tells the process of a rule; what comes back is JSON, read in `isolated_run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evaluator.config.request import RuleFile, RuleRequest
from evaluator.modes import Mode
from evaluator.segments import Array
from evaluator.sources.base import Collections, Positions


@dataclass(frozen=True, slots=True)
class Start:
    """The first message: which rule, and within which limits."""

    request: RuleRequest
    name: str
    """Of the configuration."""
    trial: str
    """What the trial is called by."""
    other_trials: tuple[str, ...]
    following: bool
    memory: int
    """Bytes that it may have beyond what it has at its start; 0 for no limit."""
    memory_budget: int
    """Bytes for values of earlier steps."""
    error_budget: int
    """Steps at which it may raise."""


@dataclass(frozen=True, slots=True)
class Values:
    """Values of one file: those of one type joined, with positions in the file's layout, counts and shapes."""

    joined: Sequence[tuple[Positions, Array, Positions, Sequence[tuple[int, ...]]]] = ()
    texts: Mapping[int, Array] = field(default_factory=dict)
    empty: Mapping[int, Array] = field(default_factory=dict)
    problems: Mapping[int, str] = field(default_factory=dict)
    wall_time: float | None = None


@dataclass(frozen=True, slots=True)
class File:
    """What one worker saved at a step in one mode."""

    worker: str
    mode: Mode
    mode_step: int
    modified: float
    layout: int
    """Number of a layout that this message or an earlier one holds."""
    shapes: Mapping[str, tuple[int, ...]]
    values: Values | None
    """None: too much to be held; each value is asked for by itself."""
    key: str
    """What to call the file by when asking for its values."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step to be judged."""

    number: int
    files: Sequence[File]
    complete: bool
    restarted: bool
    layouts: Mapping[int, tuple[tuple[str, ...], tuple[str, ...]]]
    """Number -> names and kinds, of the layouts that were not sent before."""
    collections: Collections | None
    """None: as before."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Judge what can be judged without a new step."""

    kind: Literal["idle", "end"]
    now: float
    step: int | None
    ended: bool
    """Whether nothing more is read."""
    complete: bool
    """Whether the run itself is taken to have ended."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The job has ended: close what is open."""


@dataclass(frozen=True, slots=True)
class Look:
    """The first message where no job is at work: the file whose rules are to be told about."""

    file: RuleFile
    memory: int
    """As in `Start`."""
    every: bool
    """Whether all rules are wanted where no name says which; otherwise there must be only one."""


@dataclass(frozen=True, slots=True)
class Try:
    """Have a rule judge one of its examples."""

    rule: str
    example: int
