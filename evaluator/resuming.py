"""Whether a job can go on with what an unfinished one left in its output folder."""

from __future__ import annotations

from evaluator.status import JobStatus


def differs(former: JobStatus, mine: JobStatus) -> str | None:
    """In what an unfinished job differs from this one, so that it cannot go on with it."""
    if former.trial != mine.trial:
        return f"over another trial, {former.trial}"
    known = {rule.RuleConfigurationName: (rule.Rule, rule.Parameters) for rule in former.rules}
    known.update({one.rule: known.get(one.rule, (one.rule, {})) for one in former.not_applicable})
    wanted = {rule.RuleConfigurationName: (rule.Rule, rule.Parameters) for rule in mine.rules}
    return None if known == wanted else "with other rules or parameters"
