"""Makes a checked rule configuration of what somebody asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluator.config import sagemaker_shape as sagemaker
from evaluator.config.other_trials import is_other_trial_key, other_trials_of
from evaluator.config.request import RuleRequest
from evaluator.config.wire import Unfit, convert, is_unset, plain, read_model
from evaluator.errors import Mistake, did_you_mean, nearest
from evaluator.rule import LoopParameters, ParameterSet, Rule, RuleParameters, Severity

ABOUT_THE_CONFIGURATION = ("parameter_set", "name")
"""Loop parameters that are about the configuration as a whole and so are not among `LoopParameters`."""


_PARAMETER_SETS: tuple[ParameterSet, ...] = ("sagemaker", "recommended")


@dataclass(frozen=True)
class RuleConfiguration:
    """One rule with everything it was configured with.

    Args:
        shown: parameter -> {"value", "from"} for the status file. "from" is "configuration" (it was given),
            "recommended" (our value instead of SageMaker's default), or the default, called "sagemaker" where
            SageMaker's parameter set applies and "default" where the recommended one leaves it alone. Loop
            parameters are shown when given or recommended.
        ignored: names that were given and that neither the rule nor the loop knows.
        candidate: no rule was named at all, so every built-in rule is tried.
    """

    name: str
    rule: Rule
    parameters: RuleParameters
    loop: LoopParameters
    severity: Severity
    shown: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    candidate: bool = False
    other_trials: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def known_parameters(rule: Rule) -> list[str]:
    """Every parameter that a configuration of this rule may give, the rule's own first."""
    others = ["other_trials"] if rule.other_trials else []
    names = [*rule.parameters.model_fields, *others, *LoopParameters.model_fields, *ABOUT_THE_CONFIGURATION]
    return list(dict.fromkeys(names))


def configure(request: RuleRequest, rule: Rule) -> RuleConfiguration | list[Mistake]:
    """The configuration of `rule` that was asked for, or everything that is wrong with it."""
    given, ignored, notes, mistakes = _sort_out(request, rule)
    chosen_set = _parameter_set(request, mistakes)
    recommended = {}
    if chosen_set == "recommended":
        recommended = {
            name: one.value
            for name, one in rule.recommended.items()
            if name not in given and not any(other in given for other in one.unless)
        }
    values = _without_bad_regexes(request, given, mistakes) | recommended

    own_fields, loop_fields = rule.parameters.model_fields, LoopParameters.model_fields
    # A name that both know means the same to both, so both get it.
    parameters, own_unfit = read_model(rule.parameters, {n: v for n, v in values.items() if n in own_fields})
    loop, loop_unfit = read_model(LoopParameters, {n: v for n, v in values.items() if n in loop_fields})
    known_by_now = {problem.field for problem in own_unfit if problem.field}
    unfit = own_unfit + [problem for problem in loop_unfit if problem.field not in known_by_now]
    mistakes += [_mistake(request, problem) for problem in unfit]
    if loop is not None and loop.end_step is not None and loop.end_step <= loop.start_step:
        what = f"end_step ({loop.end_step}) is not above start_step ({loop.start_step}), so no step would be judged"
        mistakes.append(Mistake(request.where, what, "end_step is the first step that is not judged any more"))
    if mistakes or parameters is None or loop is None:
        return mistakes

    shown: dict[str, dict[str, object]] = {}
    for name in [*own_fields, *(loop_field for loop_field in loop_fields if loop_field not in own_fields)]:
        default = "sagemaker" if chosen_set == "sagemaker" else "default"
        origin = "configuration" if name in given else "recommended" if name in recommended else default
        if name in own_fields or origin != default:
            value = getattr(parameters if name in own_fields else loop, name)
            shown[name] = {"value": plain(value), "from": origin}
    return RuleConfiguration(
        name=request.name or rule.name,
        rule=rule,
        parameters=parameters,
        loop=loop,
        severity=loop.severity or rule.severity,
        shown=shown,
        ignored=tuple(ignored),
        candidate=request.shape == "candidate",
        other_trials=other_trials_of(request.parameters) if rule.other_trials else (),
        notes=tuple(notes),
    )


def _sort_out(request: RuleRequest, rule: Rule) -> tuple[dict[str, object], list[str], list[str], list[Mistake]]:
    """What was given of the known parameters, and what is ignored, noted and mistaken of the others."""
    given: dict[str, object] = {}
    ignored: list[str] = []
    notes: list[str] = []
    mistakes: list[Mistake] = []
    known = known_parameters(rule)
    for name, value in request.parameters.items():
        if name in rule.parameters.model_fields or name in LoopParameters.model_fields:
            if not is_unset(value):
                given[name] = value
        elif name == "parameter_set" or (rule.other_trials and is_other_trial_key(name)):
            continue
        elif request.shape != "sagemaker":
            mistakes.append(Mistake(request.where, f"parameter {name!r} is not known", did_you_mean(name, known)))
        elif name not in (sagemaker.RULE_KEY, sagemaker.BASE_TRIAL_KEY):
            ignored.append(name)
            notes.append(f"{request.where}: parameter {name!r} is ignored: {_why_ignored(name, known)}")
    return given, ignored, notes, mistakes


def _why_ignored(name: str, known: list[str]) -> str:
    if name == "name":
        return "the configuration has a name already"
    if name == sagemaker.ACTION_KEY:
        return "actions are not built yet in this version"
    if is_other_trial_key(name):
        return "the rule does not compare with other trials"
    close = nearest(name, known, 1)
    return "it is not known" + (f"; did you mean {close[0]!r}?" if close else "")


def _parameter_set(request: RuleRequest, mistakes: list[Mistake]) -> ParameterSet:
    default: ParameterSet = "sagemaker" if request.shape == "sagemaker" else "recommended"
    value = request.parameters.get("parameter_set")
    if is_unset(value):
        return default
    chosen = next((one for one in _PARAMETER_SETS if one == convert(ParameterSet, value)), None)
    if chosen is None:
        right = "expected 'sagemaker' or 'recommended'"
        mistakes.append(Mistake(request.where, f"parameter 'parameter_set' is {value!r}", right))
    return chosen or default


def _without_bad_regexes(
    request: RuleRequest, given: Mapping[str, object], mistakes: list[Mistake]
) -> dict[str, object]:
    """The given values less the regular expressions that are none; each of those is a mistake."""
    good: dict[str, object] = {}
    for name, value in given.items():
        problem = _regex_problem(value) if "regex" in name else None
        if problem is None:
            good[name] = value
        else:
            right = f"expected a regular expression: {problem}"
            mistakes.append(Mistake(request.where, f"parameter {name!r} is {value!r}", right))
    return good


def _regex_problem(value: object) -> str | None:
    for pattern in value if isinstance(value, list | tuple) else [value]:
        try:
            if isinstance(pattern, str):
                re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            return str(error)
    return None


def _mistake(request: RuleRequest, problem: Unfit) -> Mistake:
    if problem.field is None:
        what, _, right = problem.expected.partition("; ")
        return Mistake(request.where, what, right)
    return Mistake(request.where, f"parameter {problem.field!r} is {problem.value!r}", f"expected {problem.expected}")
