"""The one rule that a container's environment names, and which variables are parameters of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from evaluator.config.other_trials import is_other_trial_key
from evaluator.config.parameters import ABOUT_THE_CONFIGURATION, known_parameters
from evaluator.config.request import RuleRequest
from evaluator.config.rule_files import is_hidden, is_never_a_parameter
from evaluator.config.sagemaker_shape import RESERVED, RULE_KEY, SOURCE_KEY, request_of
from evaluator.config.settings import PREFIX
from evaluator.config.spelling import misspelled
from evaluator.config.wire import is_unset
from evaluator.errors import Mistake
from evaluator.registry import find_rule
from evaluator.rule import LoopParameters, Rule

WHERE = "environment"

_NAMING = frozenset({RULE_KEY, SOURCE_KEY})
_OF_EVERY_RULE = RESERVED | {*LoopParameters.model_fields, *ABOUT_THE_CONFIGURATION}


@dataclass(frozen=True)
class EnvironmentRule:
    """What the environment says about rules.

    Args:
        asked_for: what the rule is called, also where there is no request because something is wrong with it.
    """

    request: RuleRequest | None = None
    notes: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    asked_for: str = ""


def read_environment(
    environment: Mapping[str, str], processing_job: Mapping[str, str], rules: Mapping[str, Rule] | None = None
) -> EnvironmentRule:
    """The rule named by `rule_to_invoke` or `source_s3_uri`, with its parameters; no request when none is named.

    Args:
        environment: the process's variables. Only names that the rule or the loop knows are taken, because there
            are many others.
        processing_job: `Environment` of processingjobconfig.json. All of it was meant for the job, so what nobody
            knows of it stays in the request and ends in `ignored_parameters`.
        rules: those that can be named; by default the ones that are installed.
    """
    meant = {key: value for key, value in processing_job.items() if not key.startswith(PREFIX)}
    use, source = (environment.get(key) or meant.get(key) or "" for key in (RULE_KEY, SOURCE_KEY))
    if not is_unset(source):
        named = {RULE_KEY: use, SOURCE_KEY: source} if use.strip() else {SOURCE_KEY: source}
        return _of_file(named, environment, {key: value for key, value in meant.items() if key not in _NAMING})
    if not use:
        return EnvironmentRule()
    rule = find_rule(use, rules, WHERE)
    known = set(RESERVED) if isinstance(rule, Mistake) else RESERVED | set(known_parameters(rule))
    taken = {key: value for key, value in environment.items() if key in known or is_other_trial_key(key)}
    request = request_of({**meant, **taken, RULE_KEY: use}, None, WHERE)
    if isinstance(request, Mistake):
        return EnvironmentRule(mistakes=(request,), asked_for=use)
    if isinstance(rule, Mistake):
        return EnvironmentRule(mistakes=(rule,), asked_for=use)
    others = [key for key in environment.keys() - taken.keys() - meant.keys() if not key.startswith(PREFIX)]
    return EnvironmentRule(request, tuple(misspelled(others, known, WHERE)), asked_for=use)


def _of_file(named: Mapping[str, str], environment: Mapping[str, str], meant: Mapping[str, str]) -> EnvironmentRule:
    """The rule in a file: which variables are parameters of it is known only when it is loaded."""
    given = {
        key: environment.get(key, meant.get(key, ""))
        for key in [*meant, *environment]
        if key not in _NAMING and (key in meant or key in _OF_EVERY_RULE or is_other_trial_key(key))
    }
    barred = sorted(key for key in given if is_never_a_parameter(key))
    notes = [f"{WHERE}: variable {key!r} is not used: it is never a parameter of a rule file" for key in barred]
    parameters = {key: value for key, value in given.items() if key not in barred}
    request = request_of({**parameters, **named}, None, WHERE)
    if isinstance(request, Mistake):
        return EnvironmentRule(mistakes=(request,), asked_for=named.get(RULE_KEY, named[SOURCE_KEY]))
    others = environment.keys() - given.keys() - _NAMING
    offered = {key: environment[key] for key in sorted(others) if not is_hidden(key)}
    file = None if request.file is None else replace(request.file, offered=offered)
    return EnvironmentRule(replace(request, file=file), tuple(notes), asked_for=request.use)
