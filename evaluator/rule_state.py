"""RuleState: what is known of one configured rule in a job, whether it is judged here or in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluator.config.parameters import RuleConfiguration
from evaluator.finding import Finding
from evaluator.series import Series

MOST_REASONS = 20
"""Different reasons for skipped steps that are counted by themselves."""


@dataclass(slots=True)
class Counts:
    """How much was judged, for the status."""

    evaluated: int = 0
    skipped: int = 0
    skipped_because: dict[str, int] = field(default_factory=dict)
    first_step: int | None = None
    last_step: int | None = None


class RuleState:
    """One rule configuration from its first step to its end, as status and loop see it."""

    def __init__(self, configuration: RuleConfiguration) -> None:
        """Nothing was judged yet."""
        self.configuration = configuration
        self.counts = Counts()
        self.first_finding: Finding | None = None
        self.findings = 0
        self.decided: str | None = None
        self.failure: str | None = None
        """What ended the rule before its time: the traceback of an exception, where there was one."""
        self.problem: str | None = None
        """The same in one line, where the rule's own file is to blame and not the program."""
        self.not_yet: str | None = None
        """Why it could not be judged when it was asked last."""
        self.report_at: float | None = None
        """When its report was made last, by the monotonic clock."""
        self.report_file: str | None = None

    @property
    def series(self) -> Sequence[Series]:
        """The series that it needs, of those that are kept here."""
        return []

    @property
    def tensors(self) -> int:
        """How many tensors, each on each worker, it has seen."""
        return len({column for series in self.series for column in series.columns})

    @property
    def ended(self) -> bool:
        """Whether nothing that is saved later can matter to it."""
        stopped = self.findings > 0 and self.configuration.loop.on_finding == "stop"
        return stopped or self.decided is not None or self.failure is not None

    def past_end(self, step: int) -> bool:
        """Whether the step is beyond the rule's last one."""
        end = self.configuration.loop.end_step
        return end is not None and step >= end

    def skip(self, reason: str) -> None:
        """Count a step at which the rule could not be judged."""
        self.counts.skipped += 1
        reasons = self.counts.skipped_because
        if reason not in reasons and len(reasons) >= MOST_REASONS:
            reason = "other reasons"
        reasons[reason] = reasons.get(reason, 0) + 1

    def retell(self, finding: Finding) -> None:
        """Put a finding that was told otherwise in the place of the one this rule has just made."""
        if self.first_finding is not None and self.first_finding.id == finding.id:
            self.first_finding = finding
