"""Tells the findings of one incident as one story: the cause first, what follows from it marked as such."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evaluator.finding import Finding
from evaluator.formats.key_names import natural_key

StoryKey = tuple[int, int, int, object]


def story_key(finding: Finding, precedence: int, order: Mapping[str, int]) -> StoryKey:
    """What comes first sorts first: the earliest step; there the rule that says most about the cause; then the tensor.

    Args:
        finding: any of the incident.
        precedence: of the finding's rule.
        order: of the tensors, as training saved them.
    """
    tensor = order.get(finding.tensor or "", len(order))
    return finding.step, precedence, tensor, natural_key(finding.worker or "")


def in_story_order(
    findings: Iterable[Finding], precedence: Mapping[str, int], order: Mapping[str, int]
) -> list[Finding]:
    """The findings of one step, the likeliest cause first and the others marked to follow it.

    Args:
        findings: those that clear an issue are left out.
        precedence: configuration -> precedence of its rule.
        order: of the tensors, as training saved them.
    """
    met = [finding for finding in findings if finding.event == "met"]
    met.sort(key=lambda finding: story_key(finding, precedence[finding.rule_configuration], order))
    followers = [
        finding.model_copy(update={"details": {**finding.details, "follows": met[0].id}}) for finding in met[1:]
    ]
    return [*met[:1], *followers]
