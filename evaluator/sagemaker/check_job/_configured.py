"""What a rule entry comes to as a configuration, by the same code that configures jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.sagemaker_shape import request_of
from evaluator.errors import Mistake, did_you_mean
from evaluator.needs import Summary
from evaluator.registry import builtin_rules, find_rule
from evaluator.sagemaker.check_job._hosted import RULES
from evaluator.sagemaker.check_job._request import RuleEntry, TrainingRequest


def configured(entry: RuleEntry) -> RuleConfiguration | Sequence[Mistake] | None:
    """The configuration of an entry, or what is wrong with it; None where the rule is in a file or image of a user."""
    if entry.source or (entry.rule is None and not entry.hosted_built_in):
        return None
    asked = request_of(entry.parameters, entry.name, entry.where)
    if isinstance(asked, Mistake):
        return [asked]
    rule = find_rule(asked.use, builtin_rules(), entry.where)
    if isinstance(rule, Mistake):
        # an image of a user's own may well hold it
        return [_not_hosted(rule, asked.use)] if entry.hosted_built_in else None
    found = configure(asked, rule)
    return found if isinstance(found, RuleConfiguration) else tuple(found)


def _not_hosted(mistake: Mistake, name: str) -> Mistake:
    return replace(mistake, would_be_right=did_you_mean(name, RULES, "rules"))


def configurations(request: TrainingRequest) -> Iterator[tuple[RuleEntry, RuleConfiguration]]:
    """The entries of rules that are known, configured, less those with mistakes."""
    for entry in request.rules:
        found = configured(entry)
        if isinstance(found, RuleConfiguration):
            yield entry, found


def deciding_needs(configuration: RuleConfiguration) -> tuple[Summary, ...]:
    """What a rule must have of saved tensors: the needs that make it due; where none does, any of all."""
    needs = [one for one in configuration.rule.requires(configuration.parameters) if isinstance(one, Summary)]
    return tuple(one for one in needs if one.triggers) or tuple(needs)
