"""Makes a checked rule configuration of what somebody asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from evaluator.config import sagemaker_shape as sagemaker
from evaluator.config.actions import actions_key, actions_of, without_actions
from evaluator.config.other_trials import is_other_trial_key, other_trials_of
from evaluator.config.request import ActionRequest, RuleFile, RuleRequest
from evaluator.config.rule_files import check_rule_file, is_hidden, stand_in
from evaluator.config.spelling import misspelled
from evaluator.config.values import mistake_of, no_steps, parameter_set, without_bad_regexes
from evaluator.config.wire import is_unset, plain, read_model
from evaluator.errors import Mistake, did_you_mean, nearest
from evaluator.rule import LoopParameters, Rule, RuleParameters, Severity

ABOUT_THE_CONFIGURATION = ("parameter_set", "name")
"""Loop parameters that are about the configuration as a whole and so are not among `LoopParameters`."""


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
        file: where the rule is in a file of the user's own; `rule` is only a stand-in then.
        request: what was asked for, where the file still has to judge it.
        actions: what is to be done at its findings, as it was written.
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
    file: RuleFile | None = None
    request: RuleRequest | None = None
    actions: tuple[ActionRequest, ...] = ()


def known_parameters(rule: Rule) -> list[str]:
    """Every parameter that a configuration of this rule may give, the rule's own first."""
    others = ["other_trials"] if rule.other_trials else []
    names = [*rule.parameters.model_fields, *others, *LoopParameters.model_fields, *ABOUT_THE_CONFIGURATION]
    return list(dict.fromkeys(names))


def configure(request: RuleRequest, rule: Rule) -> RuleConfiguration | list[Mistake]:
    """The configuration of `rule` that was asked for, or everything that is wrong with it."""
    given, ignored, notes, mistakes = _sort_out(request, rule)
    chosen_set = parameter_set(request, mistakes)
    recommended = {}
    if chosen_set == "recommended":
        recommended = {
            name: one.value
            for name, one in rule.recommended.items()
            if name not in given and not any(other in given for other in one.unless)
        }
    values = without_bad_regexes(request, given, mistakes) | recommended

    own_fields, loop_fields = rule.parameters.model_fields, LoopParameters.model_fields
    # A name that both know means the same to both, so both get it.
    parameters, own_unfit = read_model(rule.parameters, {n: v for n, v in values.items() if n in own_fields})
    loop, loop_unfit = read_model(LoopParameters, {n: v for n, v in values.items() if n in loop_fields})
    known_by_now = {problem.field for problem in own_unfit if problem.field}
    unfit = own_unfit + [problem for problem in loop_unfit if problem.field not in known_by_now]
    mistakes += [mistake_of(request, problem) for problem in unfit]
    mistakes += no_steps(request, loop)
    actions = actions_of(request, mistakes)
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
        actions=actions,
    )


def configure_file(request: RuleRequest) -> RuleConfiguration | list[Mistake]:
    """The configuration of the rule in a file, or everything that is wrong as far as it shows without running the file.

    Which parameters the rule takes, only the file knows: the process that loads it calls `configure`.
    """
    if request.file is None:
        raise TypeError(f"{request.where}: the request names no file")
    rule = stand_in(request)
    mistakes: list[Mistake] = []
    file = check_rule_file(request.file, request.where)
    if isinstance(file, list):
        mistakes += file
    parameter_set(request, mistakes)
    actions = actions_of(request, mistakes)
    request = without_actions(request)
    about = {*ABOUT_THE_CONFIGURATION, *sagemaker.RESERVED}
    given = {
        name: value
        for name, value in request.parameters.items()
        if not (name in about or is_other_trial_key(name) or is_unset(value))
    }
    of_loop = {name: value for name, value in given.items() if name in LoopParameters.model_fields}
    loop, unfit = read_model(LoopParameters, without_bad_regexes(request, of_loop, mistakes))
    mistakes += [mistake_of(request, problem) for problem in unfit]
    mistakes += no_steps(request, loop)
    if mistakes or loop is None or isinstance(file, list):
        return mistakes
    shown = given | {name: getattr(loop, name) for name in of_loop}
    if request.shape == "sagemaker":
        # all variables of the job are among them, also those that were not meant for the rule
        shown = {name: value for name, value in shown.items() if not is_hidden(name)}
    return RuleConfiguration(
        name=request.name or rule.name,
        rule=rule,
        parameters=rule.parameters(),
        loop=loop,
        severity=loop.severity or rule.severity,
        shown={n: {"value": plain(v), "from": "configuration"} for n, v in shown.items()},
        other_trials=other_trials_of(request.parameters),
        file=file,
        request=replace(request, file=file),
        actions=actions,
    )


def with_offered(request: RuleRequest, rule: Rule) -> RuleRequest:
    """The request with those variables of the environment that are parameters of the rule; what was given wins."""
    offered = {} if request.file is None else request.file.offered
    known = rule.parameters.model_fields.keys() - sagemaker.RESERVED
    taken = {name: value for name, value in offered.items() if name in known}
    return replace(request, parameters={**taken, **request.parameters})


def _sort_out(request: RuleRequest, rule: Rule) -> tuple[dict[str, object], list[str], list[str], list[Mistake]]:
    """What was given of the known parameters, and what is ignored, noted and mistaken of the others."""
    given: dict[str, object] = {}
    ignored: list[str] = []
    notes: list[str] = []
    mistakes: list[Mistake] = []
    known = known_parameters(rule)
    for name, value in request.parameters.items():
        of_rule = name in rule.parameters.model_fields and name not in sagemaker.RESERVED
        if of_rule or name in LoopParameters.model_fields:
            if not is_unset(value):
                given[name] = value
        elif name in ("parameter_set", actions_key(request)) or (rule.other_trials and is_other_trial_key(name)):
            continue
        elif request.shape != "sagemaker":
            mistakes.append(Mistake(request.where, f"parameter {name!r} is not known", did_you_mean(name, known)))
        elif name not in (sagemaker.RULE_KEY, sagemaker.SOURCE_KEY, sagemaker.BASE_TRIAL_KEY):
            ignored.append(name)
            notes.append(f"{request.where}: parameter {name!r} is ignored: {_why_ignored(name, known)}")
    offered = {} if request.file is None else request.file.offered
    notes += misspelled(offered.keys() - request.parameters.keys(), known, request.where)
    return given, ignored, notes, mistakes


def _why_ignored(name: str, known: list[str]) -> str:
    if name == "name":
        return "the configuration has a name already"
    if is_other_trial_key(name):
        return "the rule does not compare with other trials"
    close = nearest(name, known, 1)
    return "it is not known" + (f"; did you mean {close[0]!r}?" if close else "")
