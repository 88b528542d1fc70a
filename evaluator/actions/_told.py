"""What messages say of a finding to people: one line, and the facts below it."""

from __future__ import annotations

from evaluator.finding import Finding
from evaluator.logs import printable

LONGEST = 500
"""Characters of a name or message in a text for people; names come from the trial and may be of any length."""


def headline(finding: Finding) -> str:
    """What is wrong, in one line."""
    return f"{named(finding)} ({finding.severity}) at step {finding.step}: {short(finding.message)}"


def named(finding: Finding) -> str:
    """The rule, by the name of its configuration where that is another one."""
    rule, configuration = short(finding.rule), short(finding.rule_configuration)
    return rule if rule == configuration else f"{configuration} ({rule})"


def facts(finding: Finding) -> list[tuple[str, str]]:
    """What to know of a finding, those things left out that it does not have."""
    affected = finding.affected
    more = f"{affected.tensors} of {affected.of} tensors" if affected.tensors > 1 else None
    given = {
        "tensor": finding.tensor,
        "worker": finding.worker,
        "affected": more,
        "measured": finding.measured,
        "limit": finding.limit,
        # which checkpoint to go back to
        "last healthy step": "none" if finding.last_healthy_step is None else finding.last_healthy_step,
        "trial": finding.trial or None,
        "finding": finding.id,
    }
    labels = {f"label {name}": text for name, text in finding.labels.items()}
    return [(name, short(str(value))) for name, value in (given | labels).items() if value is not None]


def lines(finding: Finding) -> str:
    """The headline with the facts below it."""
    return "\n".join([headline(finding), *(f"{name}: {value}" for name, value in facts(finding))])


def short(text: str, most: int = LONGEST) -> str:
    """The text on one line, cut where it is long."""
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."
