"""The actions that somebody asked for, checked: those of one rule, and those of all rules from a severity on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from evaluator import strict_json
from evaluator.actions.base import Action, ActionParameters, Kind, Secret, Surroundings, kinds
from evaluator.actions.text import named_values, parse_actions
from evaluator.aws import missing_boto3
from evaluator.config.request import ActionRequest, RuleRequest
from evaluator.config.rule_arguments import parse_rule_argument
from evaluator.config.sagemaker_shape import ACTION_KEY
from evaluator.config.wire import Unfit, is_unset, plain, read_model
from evaluator.errors import Mistake, did_you_mean
from evaluator.isolation.environment import is_secret
from evaluator.rule import SEVERITIES, Severity

ACTIONS_KEY = "actions"
"""The key of a rule's own actions in our shape."""
_AT_LEAST = "at_least"
_DEFAULT_LEAST: Severity = "error"
_BY_BOTO3 = frozenset({"email", "rule_file", "sms", "stop_training"})


def actions_key(request: RuleRequest) -> str | None:
    """The parameter in which a request of this shape has its actions."""
    return {"sagemaker": ACTION_KEY, "ours": ACTIONS_KEY}.get(request.shape)


def without_actions(request: RuleRequest) -> RuleRequest:
    """The request for who has nothing to do with actions."""
    left = {name: value for name, value in request.parameters.items() if name != actions_key(request)}
    return replace(request, parameters=left)


def actions_of(request: RuleRequest, mistakes: list[Mistake]) -> tuple[ActionRequest, ...]:
    """The actions of one rule; adds what is wrong with them to the mistakes."""
    key = actions_key(request)
    value = None if key is None else request.parameters.get(key)
    if key is None or is_unset(value):
        return ()
    where = f"{request.where}: {key}"
    if request.shape == "ours":
        return _of_our_shape(value, where, mistakes)
    try:
        entries = parse_actions(value) if isinstance(value, str) else value if isinstance(value, list) else [value]
    except ValueError as error:
        right = 'for example [{"name": "email", "endpoint": "a@b.org"}]'
        mistakes.append(Mistake(where, f"is not JSON ({error})", right))
        return ()
    found = []
    for number, entry in enumerate(entries):
        given = named_values(entry)
        if given is None:
            mistakes.append(Mistake(f"{where}[{number}]", f"is {entry!r}", "expected an object with a name"))
        else:
            found.append(ActionRequest(str(given.pop("name")), given, f"{where}[{number}]"))
    return tuple(found)


def read_action(entry: Mapping[str, object], where: str, mistakes: list[Mistake]) -> ActionRequest | None:
    """One action of our own shape: what it uses, its parameters, and (where it is for all rules) from when on."""
    use = entry.get("use")
    if not isinstance(use, str) or not use.strip():
        what = "'use' is missing" if use is None else f"'use' is {use!r}"
        mistakes.append(Mistake(where, what, f"the kind of action: {', '.join(kinds())}"))
        return None
    parameters = {name: value for name, value in entry.items() if name not in ("use", _AT_LEAST)}
    return ActionRequest(use, parameters, f"{where} {use}", entry.get(_AT_LEAST))


def read_action_arguments(arguments: Sequence[str]) -> tuple[list[ActionRequest], list[Mistake]]:
    """What `--action KIND[:key=value,...]` asks for, in the grammar of `--rule`."""
    found: list[ActionRequest] = []
    mistakes: list[Mistake] = []
    for argument in arguments:
        parsed = parse_rule_argument(argument, "--action", "the form is KIND:key=value,key=value")
        if isinstance(parsed, Mistake):
            mistakes.append(parsed)
            continue
        parameters = dict(parsed.parameters)
        least = parameters.pop(_AT_LEAST, None)
        if parsed.name is not None:
            parameters["name"] = parsed.name
        found.append(ActionRequest(parsed.use, parameters, f"--action {parsed.use}", least))
    return found, mistakes


def configure_actions(
    job_wide: Iterable[ActionRequest],
    of_rules: Mapping[str, Sequence[ActionRequest]],
    around: Surroundings,
    environment: Mapping[str, str],
) -> tuple[tuple[Action, ...], list[Mistake]]:
    """The actions of a job, and everything that is wrong with them.

    Args:
        job_wide: for the findings of all rules.
        of_rules: configuration -> those for its findings.
        around: what is known of the job.
        environment: where secrets are, under the names that the actions give.
    """
    mistakes: list[Mistake] = []
    made: list[Action] = []
    names: dict[str, int] = {}
    known_names: dict[str, str] = {}
    asked = [(None, one) for one in job_wide] + [(rule, one) for rule, those in of_rules.items() for one in those]
    for rule, request in asked:
        least = _least(request, mistakes) if rule is None else None
        if rule is not None and request.at_least is not None:
            right = "leave it out; it is for actions of all rules, in [[action]] or --action"
            mistakes.append(Mistake(request.where, f"{_AT_LEAST!r} has no meaning for the action of one rule", right))
        action = _configure(request, around, environment, mistakes)
        if action is None:
            continue
        if action.key not in known_names:
            kind = action.kind.name
            names[kind] = names.get(kind, 0) + 1
            known_names[action.key] = kind if names[kind] == 1 else f"{kind}-{names[kind]}"
        made.append(replace(action, name=known_names[action.key], rule=rule, at_least=least))
    return tuple(made), mistakes


def _configure(
    request: ActionRequest, around: Surroundings, environment: Mapping[str, str], mistakes: list[Mistake]
) -> Action | None:
    kind = _kind(request, mistakes)
    if kind is None:
        return None
    given = {name: value for name, value in request.parameters.items() if value is not None}
    wrong = [_unknown(request.where, name, kind) for name in given if name not in kind.parameters.model_fields]
    known = {name: value for name, value in given.items() if name in kind.parameters.model_fields}
    parameters, unfit = read_model(kind.parameters, known)
    wrong += [_unfit(request.where, problem, kind) for problem in unfit]
    secrets: dict[str, Secret] = {}
    if isinstance(parameters, ActionParameters):
        if not wrong:
            wrong += [Mistake(request.where, what, right) for what, right in kind.check(parameters, around)]
        for name in kind.secrets:
            secret = _secret(name, parameters, request.where, environment, wrong)
            if secret is not None:
                secrets[name] = secret
    if kind.name in _BY_BOTO3 and (missing := missing_boto3(request.where)) is not None:
        wrong.append(missing)
    mistakes += wrong
    if wrong or not isinstance(parameters, ActionParameters):
        return None
    told = {name: plain(getattr(parameters, name)) for name in parameters.model_fields_set}
    key = hashlib.sha256(strict_json.dumps([kind.name, dict(sorted(told.items()))])).hexdigest()[:16]
    return Action(kind.name, key, kind, parameters, secrets)


def _kind(request: ActionRequest, mistakes: list[Mistake]) -> Kind[ActionParameters] | None:
    """The kind of that name; SageMaker writes names without what stands between words."""
    wanted = request.use.strip().lower().replace("_", "").replace("-", "")
    for name, kind in kinds().items():
        if name.replace("_", "") == wanted:
            return kind
    mistakes.append(Mistake(request.where, f"action {request.use!r} is not known", did_you_mean(request.use, kinds())))
    return None


def _of_our_shape(value: object, where: str, mistakes: list[Mistake]) -> tuple[ActionRequest, ...]:
    if not isinstance(value, list):
        right = 'expected a list, for example [{use = "email", endpoint = "a@b.org"}]'
        mistakes.append(Mistake(where, f"is {value!r}", right))
        return ()
    found = []
    for number, entry in enumerate(value):
        place = f"{where}[{number}]"
        if isinstance(entry, dict):
            found.append(read_action(entry, place, mistakes))
        else:
            mistakes.append(Mistake(place, f"is {entry!r}", 'expected a table, for example {use = "stop_file"}'))
    return tuple(one for one in found if one is not None)


def _least(request: ActionRequest, mistakes: list[Mistake]) -> Severity:
    word = str(request.at_least).strip().lower()
    chosen = next((severity for severity in SEVERITIES if severity == word), None)
    if chosen is None and request.at_least is not None:
        what = f"{_AT_LEAST} {request.at_least!r} does not fit"
        mistakes.append(Mistake(request.where, what, f"expected one of {', '.join(SEVERITIES)}"))
    return chosen or _DEFAULT_LEAST


def _secret(
    name: str, parameters: ActionParameters, where: str, environment: Mapping[str, str], mistakes: list[Mistake]
) -> Secret | None:
    """The secret of that name where one is given, by a variable or by a file."""
    variable, file = getattr(parameters, f"{name}_variable"), getattr(parameters, f"{name}_file")
    if variable is not None and file is not None:
        mistakes.append(Mistake(where, f"{name}_variable and {name}_file are given", "give one of them"))
    elif variable is not None:
        if not is_secret(variable):
            # the processes of users' rule files get all variables that do not sound like secrets
            right = "a name with WEBHOOK, TOKEN, KEY or SECRET in it, which they are not given"
            mistakes.append(Mistake(where, f"variable {variable!r} would be seen by users' rule files", right))
        elif not environment.get(variable, "").strip():
            mistakes.append(Mistake(where, f"environment variable {variable!r} is not set", f"set it to the {name}"))
        else:
            return Secret.of_variable(variable, environment[variable])
    elif file is not None:
        return Secret.of_file(file)
    return None


def _unknown(where: str, name: str, kind: Kind[ActionParameters]) -> Mistake:
    if name in kind.secrets:
        right = f"it is a secret: give {name}_variable, the name of a variable that holds it, or {name}_file"
        return Mistake(where, f"{name!r} may not stand here", right)
    return Mistake(where, f"parameter {name!r} is not known", did_you_mean(name, kind.parameters.model_fields))


def _unfit(where: str, problem: Unfit, kind: Kind[ActionParameters]) -> Mistake:
    if problem.field is None:
        return Mistake(where, "its parameters do not go together", f"expected {problem.expected}")
    meant = kind.parameters.model_fields[problem.field].description or problem.expected
    if problem.value is None:
        return Mistake(where, f"{problem.field!r} is missing", meant)
    # a pattern says less than what it stands for
    expected = meant if "pattern" in problem.expected else f"expected {problem.expected}"
    return Mistake(where, f"{problem.field} {problem.value!r} does not fit", expected)
