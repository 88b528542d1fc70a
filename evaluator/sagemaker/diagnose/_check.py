"""What a check of a distributed training job is, and what it can come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from evaluator.sagemaker.diagnose._evidence import Evidence

Word = Literal["ok", "found", "not checked"]


@dataclass(frozen=True)
class Ok:
    """It was looked for and is not there.

    Args:
        what: what was seen instead.
    """

    what: str


@dataclass(frozen=True)
class Found:
    """It is there.

    Args:
        evidence: what shows it, one line each; from files, so not to be trusted.
        remedy: what to do in this very case, beside the remedy of the check.
    """

    what: str
    evidence: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotChecked:
    """Nothing can be said.

    Args:
        why: what is missing, and what would provide it.
    """

    why: str


Result = Ok | Found | NotChecked


def word_of(result: Result) -> Word:
    """What a result is called."""
    if isinstance(result, Found):
        return "found"
    return "ok" if isinstance(result, Ok) else "not checked"


def gravest(results: Sequence[Result]) -> Result | None:
    """What several ways of checking the same come to: found in one of them counts; None where there is no way."""
    for kind in (Found, Ok):
        found = next((result for result in results if isinstance(result, kind)), None)
        if found is not None:
            return found
    reasons = [result.why for result in results if isinstance(result, NotChecked)]
    return NotChecked("; ".join(reasons)) if reasons else None


@dataclass(frozen=True)
class Sign:
    """Lines of a log that a check looks for.

    Args:
        needles: words in small letters that a line must all hold, the rarest one first: every line is searched for it.
        also: what must hold of the line as it stands, too.
    """

    needles: tuple[str, ...]
    also: Callable[[str], object] | None = None

    def shows(self, line: str, lowered: str) -> bool:
        """Whether a line is one of them."""
        return all(needle in lowered for needle in self.needles) and (self.also is None or bool(self.also(line)))


@dataclass(frozen=True)
class Example:
    """A small case that shows the check at work; test and documentation at once.

    Args:
        request: a request or description of a training job.
        log: the text of a log.
        logs: file name -> text, for several.
        trial: worker -> tensor -> its value at each step, None where it was not saved.
        seconds: when each step of the trial was saved; one second apart by default.
        ended: whether the trial has its end marker.
        smaller: the trial of the same training with fewer workers, one step every `smaller_seconds`.
        checkpoints: file name -> keys.
        security_groups: as DescribeSecurityGroups answers.
        file_systems: as DescribeFileSystems answers.
        metrics: as GetMetricData answers.
        now: when the check is made, in seconds after the first step of the trial.
    """

    title: str
    shows: Word
    request: Mapping[str, Any] | None = None
    log: str | None = None
    logs: Mapping[str, str] = field(default_factory=dict)
    trial: Mapping[str, Mapping[str, Sequence[Any]]] | None = None
    seconds: Sequence[float] | None = None
    ended: bool = True
    smaller: Mapping[str, Mapping[str, Sequence[Any]]] | None = None
    smaller_seconds: float = 1.0
    checkpoints: Mapping[str, Sequence[str]] = field(default_factory=dict)
    security_groups: Mapping[str, Any] | None = None
    file_systems: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] | None = None
    now: float = 0.0


@dataclass(frozen=True)
class Check:
    """One thing that goes wrong with distributed training, and how it shows.

    Args:
        name: the bad thing itself.
        place: among the others.
        inputs: what it can go by; options of the command.
        check: of all that is known.
        remedy: what to do about it, one step each.
        signs: name -> the lines of logs that it wants to be told of.
    """

    name: str
    place: int
    inputs: tuple[str, ...]
    check: Callable[[Evidence], Result]
    remedy: tuple[str, ...]
    examples: tuple[Example, ...]
    signs: Mapping[str, tuple[Sign, ...]] = field(default_factory=dict)
    documentation: str = ""
    """The module's; filled in when the check is found."""
