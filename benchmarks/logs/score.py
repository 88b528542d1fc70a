"""What findings on labelled logs come to: false alarms on healthy ones, and problems that a fitting rule found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.incidents import Share, by_group, share
from benchmarks.logs.load import Label

FITTING: Mapping[str, frozenset[str]] = {
    "nonfinite": frozenset({"NonFinite", "ExplodingTensor"}),
    "diverging": frozenset({"LossDiverging", "LossNotDecreasing", "LossSpike"}),
    "overfit": frozenset({"Overfit", "Overtraining"}),
    "not_learning": frozenset({"LossNotDecreasing", "MetricFlat"}),
    "spike": frozenset({"LossSpike"}),
}
"""Problem -> the rules that tell a user about it."""
HEALTHY = "healthy"
UNCLEAR = "unclear"


@dataclass(frozen=True)
class Found:
    """A finding, as far as this benchmark shows it."""

    rule: str
    step: int
    tensor: str | None
    measured: str
    message: str


@dataclass(frozen=True)
class JudgedLog:
    """One log and what a set of rules made of it."""

    label: Label
    found: Sequence[Found]
    evaluated: frozenset[str] = frozenset()
    raised: Mapping[str, str] | None = None

    @property
    def fitting(self) -> list[Found]:
        """The findings of rules that fit the problem; of a healthy or unclear log none do."""
        rules = FITTING.get(self.label.label, frozenset())
        return [one for one in self.found if one.rule in rules]


@dataclass(frozen=True)
class Score:
    """The share of one line of the table, by run and by repository."""

    runs: Share
    repositories: float
    """Mean over repositories."""


def false_alarms(logs: Sequence[JudgedLog]) -> Score:
    """Healthy logs with any finding."""
    return _score([(log.label.repository, bool(log.found)) for log in logs if log.label.label == HEALTHY])


def recall(logs: Sequence[JudgedLog], *problems: str) -> Score:
    """Logs with one of these problems on which a fitting rule has a finding."""
    return _score([(log.label.repository, bool(log.fitting)) for log in logs if log.label.label in problems])


def misses(logs: Sequence[JudgedLog]) -> list[JudgedLog]:
    """Logs with a problem that no fitting rule found."""
    return [log for log in logs if log.label.label in FITTING and not log.fitting]


def alarmed(logs: Sequence[JudgedLog]) -> list[JudgedLog]:
    """Healthy logs with a finding."""
    return [log for log in logs if log.label.label == HEALTHY and log.found]


def unclear(logs: Sequence[JudgedLog]) -> list[JudgedLog]:
    """Logs of which nobody can say, with a finding; they are not scored."""
    return [log for log in logs if log.label.label == UNCLEAR and log.found]


def _score(hits: Sequence[tuple[str, bool]]) -> Score:
    return Score(share(hit for _, hit in hits), by_group(hits))
