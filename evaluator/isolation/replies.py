"""What the process of a rule may answer, checked: nothing that comes from there is believed as it is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from evaluator.finding import Finding
from evaluator.rule_state import Counts

MOST_TEXT = 2000
"""Characters of a message or a reason; more is nothing that anybody reads in a status."""


class VerdictReply(BaseModel):
    """Where a rule stands after a step."""

    model_config = ConfigDict(extra="ignore")

    findings: list[Finding] = Field(max_length=1000)
    counts: Counts
    tensors: int
    decided: str | None = Field(max_length=MOST_TEXT)
    not_yet: str | None = Field(max_length=10 * MOST_TEXT)
    why_not: str | None = Field(max_length=10 * MOST_TEXT)
    failure: str | None = None
    report: tuple[str, str] | None = None
