"""What a set of rules made of one run, measured against what is known about the run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.zoo.kind import Fault
from benchmarks.zoo.run import saved_between
from evaluator.finding import Finding

BEFORE_ALL_OTHERS = ("NonFinite", "ExplodingTensor")


@dataclass(frozen=True)
class Found:
    """A finding, as far as scores need it."""

    rule: str
    step: int
    tensor: str = ""
    worker: str = ""

    @classmethod
    def of(cls, finding: Finding) -> Found:
        """The part of a finding that is judged."""
        return cls(finding.rule, finding.step, finding.tensor or "", finding.worker or "")


@dataclass(frozen=True)
class Score:
    """One faulty run, judged by one set of rules."""

    recalled: bool
    """A rule that is for the fault fired, not before the fault began."""
    first: bool
    """The finding that is told first is one of these."""
    placed: bool | None
    """The first of these names the right tensor or worker; None when the fault is at none, or was not found."""
    delay: int | None
    """Saved steps from the beginning of the fault to the first of these; None when it was not found."""
    findings: int
    unrelated: int
    """Findings of rules that have nothing to do with the fault, and all findings before it."""
    strangers: tuple[str, ...] = field(default=())
    """The rules of the unrelated findings."""


def in_story_order(findings: Sequence[Found]) -> list[Found]:
    """As they are told: earliest step first, within a step what is not finite before all others, then as they come."""
    return sorted(findings, key=lambda found: (found.step, found.rule not in BEFORE_ALL_OTHERS))


def score(fault: Fault, begins: int, steps: Sequence[int], findings: Sequence[Found]) -> Score:
    """Measure the findings of a run whose fault begins at a step, with these steps saved."""
    told = in_story_order(findings)
    intended = [found for found in told if found.rule in fault.rules and found.step >= begins]
    related = {*fault.rules, *fault.acceptable}
    strangers = [found.rule for found in told if found.rule not in related or found.step < begins]
    hit = intended[0] if intended else None
    return Score(
        recalled=hit is not None,
        first=hit is not None and told[0] == hit,
        placed=None if hit is None else _placed(fault, hit),
        delay=None if hit is None else saved_between(steps, begins, hit.step),
        findings=len(told),
        unrelated=len(strangers),
        strangers=tuple(strangers),
    )


def _placed(fault: Fault, hit: Found) -> bool | None:
    """Whether a finding is at the right place; None when the fault has no place."""
    if not fault.tensor and not fault.worker:
        return None
    right_tensor = not fault.tensor or bool(re.search(fault.tensor, hit.tensor))
    return right_tensor and (not fault.worker or hit.worker == fault.worker)
