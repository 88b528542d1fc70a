"""For rule authors: declare what a rule needs, then decide over small arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from evaluator.needs import (
    TRAINING,
    Accumulator,
    Beside,
    Measure,
    Need,
    OtherTrial,
    OtherWorker,
    Previous,
    Progress,
    Selection,
    Summary,
    Tensor,
)
from evaluator.window import Column, Decided, Met, NotYet, ProgressView, Row, State, Verdict, Window, grown

__all__ = [
    "TRAINING",
    "Accumulator",
    "Beside",
    "Column",
    "Decided",
    "Example",
    "LoopParameters",
    "Measure",
    "Met",
    "Need",
    "NotYet",
    "OtherTrial",
    "OtherWorker",
    "Previous",
    "Progress",
    "ProgressView",
    "Recommended",
    "Report",
    "Row",
    "Rule",
    "RuleParameters",
    "Selection",
    "Severity",
    "State",
    "Summary",
    "Tensor",
    "Verdict",
    "Window",
    "grown",
]

Severity = Literal["critical", "error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("critical", "error", "warning", "info")
ParameterSet = Literal["sagemaker", "recommended"]


class RuleParameters(BaseModel):
    """The parameters of a rule. On the wire every value is a string; names and defaults are SageMaker's."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class LoopParameters(BaseModel):
    """Parameters that every rule takes because the loop, not the rule, acts on them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start_step: int = Field(0, ge=0, description="Judged from this step on; earlier steps still count as history.")
    end_step: int | None = Field(None, description="Judged before this step only.")
    exclude_regex: str | None = Field(None, description="Tensors in whose name this is found are left out.")
    consecutive: int = Field(1, ge=1, description="Due steps in a row at which one tensor must meet it.")
    on_finding: Literal["stop", "continue"] = Field("stop", description="Whether the rule ends at its first finding.")
    severity: Severity | None = Field(None, description="Instead of the rule's own severity.")

    @field_validator("exclude_regex")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            re.compile(pattern)
        return pattern


@dataclass(frozen=True)
class Recommended:
    """A parameter value that we recommend over SageMaker's default, and why.

    Args:
        unless: parameters beside which it would be in the way: when one of them is given, it is not used.
    """

    value: Any
    reason: str
    unless: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A small run that shows the rule fire (`met_at`) or stay quiet (None); test and documentation at once.

    Args:
        tensors: name -> its value at each step: a number, an array, or None where it was not saved.
        met_at: the step of the first finding.
        steps: the step numbers, by default 0, 1, 2, ...
        modes: the mode of each step, by default GLOBAL.
        collections: collection -> tensor names; by default every tensor is in every collection asked for.
        workers: worker -> tensors, for runs of several workers, instead of `tensors`.
        other: tensors of another trial, at the same steps.
        parameters: of the rule or the loop.
        seconds: wall time of each step, by default one second apart.
        tensor: the tensor that the finding must name, where that matters.
    """

    title: str
    tensors: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    met_at: int | None = None
    steps: Sequence[int] | None = None
    modes: Sequence[str] | None = None
    collections: Mapping[str, Sequence[str]] | None = None
    workers: Mapping[str, Mapping[str, Sequence[Any]]] | None = None
    other: Mapping[str, Sequence[Any]] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seconds: Sequence[float] | None = None
    tensor: str | None = None


@dataclass(frozen=True)
class Report:
    """A page made at the end, and at most every `every_seconds`, from what the needs have gathered.

    Args:
        file_name: ends in .html; written into the configuration's folder.
        render: takes the same arguments as a condition and returns the page, or why none can be made.
    """

    file_name: str
    render: Callable[..., str | NotYet]
    every_seconds: float = 300.0


@dataclass(frozen=True)
class Rule:
    """A rule: what it needs, and the pure function that decides.

    Args:
        name: the bad pattern it finds, in CamelCase.
        severity: unless a configuration says otherwise.
        parameters: their names, types, defaults and descriptions.
        requires: parameters -> needs.
        condition: one argument per need, in order, then the parameters.
        report: instead of a condition.
        recommended: parameter -> value used unless SageMaker's own defaults are asked for.
        every: parameters -> least number of steps between two checks.
        at: when it is judged: at steps, on an idle poll, at the end.
        other_trials: whether it compares with other trials.
        patience: parameters -> for how many seconds nothing may come before it would be met; a job that follows a run
            does not give up sooner.
        precedence: which of the findings of one step is told as the cause: the least. 0 is for values that are not
            finite, 30 for rules that say what is wrong with a layer, 50 for symptoms of tensors, 70 for losses and
            metrics, which follow from everything else.
    """

    name: str
    severity: Severity
    parameters: type[RuleParameters]
    requires: Callable[[Any], Sequence[Need]]
    condition: Callable[..., Verdict] | None = None
    report: Report | None = None
    examples: Sequence[Example] = ()
    recommended: Mapping[str, Recommended] = field(default_factory=dict)
    every: Callable[[Any], int] | None = None
    at: frozenset[Literal["step", "idle", "end"]] = frozenset({"step"})
    other_trials: bool = False
    patience: Callable[[Any], float] | None = None
    precedence: int = 50
    module: str = ""
    """Where it was found; filled by the registry."""
    documentation: str = ""
    """The docstring of its module; filled by the registry."""

    def __post_init__(self) -> None:
        """A rule decides or reports, not both and not neither."""
        if (self.condition is None) == (self.report is None):
            raise TypeError(f"{self.name}: a rule has either a condition or a report")
