"""What a dry run says of a trial, its rules, and what they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class NeedLook:
    """What one need of a rule would see.

    Args:
        looks_for: the selection in words.
        tensors: those it would see, in the order of training.
        points: steps at which at least one of them has a value.
        history: how many points it looks back over, and how many steps.
    """

    looks_for: str
    tensors: list[str]
    points: int
    history: tuple[int, int] = (1, 0)
    span: int = 0
    triggers: bool = True

    @property
    def is_short(self) -> bool:
        """Whether there are fewer points than it looks back over."""
        return self.points < self.history[0] or self.span < self.history[1]


@dataclass
class RuleLook:
    """What one rule configuration would see.

    Args:
        due: steps at which the rule would be judged; None when it is not judged at steps.
        reason: why it would never be judged.
        unmatched: parts of what it was told to look at that nothing is called by.
        file: where it is in a file of the user's own; what it looks at is known only when it runs.
        broken: why the rule of a file cannot be had.
    """

    configuration: str
    rule: str
    candidate: bool
    needs: list[NeedLook]
    due: int | None = None
    reason: str | None = None
    ignored: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    file: str | None = None
    broken: str | None = None

    @property
    def short(self) -> list[NeedLook]:
        """The needs with fewer points than they look back over."""
        return [need for need in self.needs if need.triggers and need.points and need.is_short]

    @property
    def enough(self) -> bool | None:
        """Whether there are enough points; None where only the rule itself can tell."""
        if self.reason is not None:
            return False
        return None if self.due is None or self.short else True


@dataclass
class Look:
    """What all rules would see of a trial."""

    steps: int
    first: int | None
    last: int | None
    rules: list[RuleLook]
    problems: Mapping[str, str] = field(default_factory=dict)
    more_problems: int = 0
    incomplete: list[str] = field(default_factory=list)
    """Steps and workers that are not whole."""
