"""Rules and parameters that nothing knows, or that do not go together with the image."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.config.other_trials import is_other_trial_key
from evaluator.config.parameters import RuleConfiguration, known_parameters
from evaluator.config.sagemaker_shape import RESERVED
from evaluator.errors import did_you_mean
from evaluator.sagemaker.check_job._configured import configured
from evaluator.sagemaker.check_job._hosted import PROFILER_RULES, RULES, parameters_of
from evaluator.sagemaker.check_job._request import Flaw, RuleEntry, TrainingRequest


def check(request: TrainingRequest) -> Iterator[Flaw]:
    """What is wrong with each rule's name and parameters."""
    for entry in request.rules:
        if entry.source and entry.rule is None:
            right = "name the class in the file, or leave 'source_s3_uri' out for an image that holds the rule"
            yield Flaw(entry.where, "'source_s3_uri' is given without 'rule_to_invoke'", right)
        found = configured(entry)
        if found is None:
            request.notes.append(f"{entry.where}: a rule of your own; its name and parameters are not checked")
        elif isinstance(found, RuleConfiguration):
            yield from _known(entry, found)
        else:
            for mistake in found:
                yield Flaw(mistake.where, mistake.what, mistake.would_be_right)
    for entry in request.profiler_rules:
        yield from _profiler_rule(entry)


def _known(entry: RuleEntry, found: RuleConfiguration) -> Iterator[Flaw]:
    rule = found.rule
    hosted = entry.hosted_built_in
    if hosted and rule.name not in RULES:
        what = f"rule {rule.name!r} is not one of the hosted service's"
        yield Flaw(entry.where, what, "use an image of this program, which has it")
        return
    known = parameters_of(rule) if hosted else known_parameters(rule)
    for name in entry.parameters:
        if name in known or name in RESERVED or (is_other_trial_key(name) and rule.other_trials):
            continue
        what = f"parameter {name!r} of {rule.name} is not known and is ignored"
        right = did_you_mean(name, known)
        if is_other_trial_key(name):
            what = f"parameter {name!r} is ignored: {rule.name} does not compare with other trials"
            right = "leave it out"
        elif name not in found.ignored:
            what = f"parameter {name!r} of {rule.name} is not one of the hosted service's"
            right = "leave it out, or use an image of this program, which has it"
        yield Flaw(entry.where, what, right, "warning")


def _profiler_rule(entry: RuleEntry) -> Iterator[Flaw]:
    if not entry.hosted_built_in or entry.source:
        return
    if entry.rule is None:
        yield Flaw(entry.where, "'rule_to_invoke' is missing", "the name of a rule, for example 'ProfilerReport'")
    elif entry.rule.lower() not in {name.lower() for name in PROFILER_RULES}:
        right = did_you_mean(entry.rule, PROFILER_RULES, "profiler rules")
        yield Flaw(entry.where, f"rule {entry.rule!r} is not known", right)
