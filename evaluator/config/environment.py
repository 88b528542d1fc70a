"""The one rule that a container's environment names, and which variables are parameters of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evaluator.config.other_trials import is_other_trial_key
from evaluator.config.parameters import known_parameters
from evaluator.config.request import RuleRequest
from evaluator.config.sagemaker_shape import RESERVED, RULE_KEY, request_of
from evaluator.config.settings import PREFIX
from evaluator.errors import Mistake
from evaluator.registry import find_rule
from evaluator.rule import Rule

WHERE = "environment"


@dataclass(frozen=True)
class EnvironmentRule:
    """What the environment says about rules."""

    request: RuleRequest | None = None
    notes: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


def read_environment(
    environment: Mapping[str, str], processing_job: Mapping[str, str], rules: Mapping[str, Rule] | None = None
) -> EnvironmentRule:
    """The rule named by `rule_to_invoke`, with its parameters; no request when none is named.

    Args:
        environment: the process's variables. Only names that the rule or the loop knows are taken, because there
            are many others.
        processing_job: `Environment` of processingjobconfig.json. All of it was meant for the job, so what nobody
            knows of it stays in the request and ends in `ignored_parameters`.
        rules: those that can be named; by default the built-in ones.
    """
    meant = {key: value for key, value in processing_job.items() if not key.startswith(PREFIX)}
    use = environment.get(RULE_KEY) or meant.get(RULE_KEY)
    if not use:
        return EnvironmentRule()
    rule = find_rule(use, rules, WHERE)
    known = set(RESERVED) if isinstance(rule, Mistake) else RESERVED | set(known_parameters(rule))
    taken = {key: value for key, value in environment.items() if key in known or is_other_trial_key(key)}
    request = request_of({**meant, **taken, RULE_KEY: use}, None, WHERE)
    if isinstance(request, Mistake):
        return EnvironmentRule(mistakes=(request,))
    if isinstance(rule, Mistake):
        return EnvironmentRule(mistakes=(rule,))
    others = environment.keys() - taken.keys() - meant.keys()
    notes = [
        f"{WHERE}: variable {variable!r} is not used; did you mean {close!r}?"
        for variable in sorted(others)
        if not variable.startswith(PREFIX) and (close := _within_two_edits(variable, sorted(known)))
    ]
    return EnvironmentRule(request, tuple(notes))


def _within_two_edits(variable: str, known: Iterable[str]) -> str | None:
    """The known name that `variable` is a misspelling of; short names must be nearer, or everything is near them."""
    near = [(distance, name) for name in known if (distance := edits(variable, name)) <= 2 and 2 * distance < len(name)]
    return min(near)[1] if near else None


def edits(first: str, second: str) -> int:
    """How many letters to insert, delete or replace make one word of the other; 3 stands for more than two."""
    if abs(len(first) - len(second)) > 2:
        return 3
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        previous, row[0] = row[0], i
        for j, other in enumerate(second, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (letter != other))
    return min(row[-1], 3)
