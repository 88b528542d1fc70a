"""What a processing job is to evaluate: as variables of its environment, and where they do not hold it as objects."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator import strict_json
from evaluator.actions.base import Surroundings
from evaluator.config.actions import configure_actions, read_action_arguments
from evaluator.config.files import read_config_file
from evaluator.config.job_config import configure_rules, read_labels, read_pairs
from evaluator.config.parameters import RuleConfiguration
from evaluator.config.parsing import parse_location
from evaluator.config.request import ActionRequest, RuleRequest
from evaluator.config.rule_arguments import parse_rule_argument, parse_rule_file_argument
from evaluator.config.sagemaker_shape import RULE_KEY
from evaluator.config.settings import PREFIX, resolve_settings
from evaluator.errors import Mistake
from evaluator.sagemaker.launch_files import files_of, local_files
from evaluator.sagemaker.processing_job import CONFIG_VARIABLE

MOST_VARIABLES = 100
LONGEST = 256
"""Characters of a variable's name, and of its value."""
VARIABLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
"""Source: SageMaker API, CreateProcessingJob, Environment (processing-contract.md 3.1)."""

SEVERAL = "rules"
"""How a job with more rules than one is called where nobody names it."""
CONFIG_FILE = "config.json"

_OF_THE_JOB = ("trial", "output", "follow")
"""Settings that the request itself gives."""


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for; empty means "not given"."""

    rules: Sequence[str] = ()
    rule_files: Sequence[str] = ()
    config: str | None = None
    actions: Sequence[str] = ()
    other_trials: Sequence[str] = ()
    set: Sequence[str] = ()
    labels: Sequence[str] = ()


@dataclass
class Evaluated:
    """The rules of a processing job, checked.

    Args:
        name: how the job may be called after them.
        document: of the configuration object; empty where the variables say everything.
        variables: that name the one rule and its parameters.
        settings: setting -> value as text.
        files: name -> content of the rule files that go along.
    """

    name: str
    document: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def environment(self, place: str, settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, bytes]]:
        """The environment, and the objects that go below `place`: key -> content.

        Args:
            place: an s3:// prefix that is the job's own.
            settings: that the request gives, besides those that were asked for.
        """
        document = copy.deepcopy(self.document)
        variables: dict[str, str] = {}
        for name, value in {**self.settings, **settings}.items():
            if len(value) <= LONGEST:
                variables[PREFIX + name.upper()] = value
            else:
                document.setdefault("settings", {})[name] = value
        if document and self.variables:
            # the environment names no rule where a configuration does
            document.setdefault("rule", []).append(_entry_of(self.variables))
        elif not document:
            variables |= self.variables
        if not document:
            return variables, {}
        for entry in files_of(document):
            entry.put(f"{place}/{entry.name}" if entry.name in self.files else entry.location)
        variables[CONFIG_VARIABLE] = f"{place}/{CONFIG_FILE}"
        return variables, {CONFIG_FILE: strict_json.dumps(document, pretty=True) + b"\n", **self.files}


def evaluated(wanted: Wanted, trial: str, training_job: str | None) -> tuple[Evaluated, list[Mistake]]:
    """The rules that were asked for, or everything that is wrong with them."""
    mistakes: list[Mistake] = []
    document = _document(wanted)
    requests = _requests(wanted, mistakes)
    content = None if wanted.config is None else read_config_file(wanted.config)
    in_file = [] if content is None else content.requests
    pairs, wrong = read_pairs(wanted.set, "--set", "a setting is name=value")
    mistakes += wrong + ([] if content is None else content.mistakes)
    for name in _OF_THE_JOB:
        if name in pairs or (content is not None and name in content.settings):
            mistakes.append(Mistake(f"setting {name!r}", "is given by the processing job", "leave it out"))
    settings: dict[str, str] = {name: value for name, value in pairs.items() if name not in _OF_THE_JOB}
    if wanted.other_trials:
        settings["other_trials"] = ",".join(wanted.other_trials)
    mistakes += _not_on_s3(settings.get("other_trials", ""))
    _, _, wrong = resolve_settings(settings, {}, {} if content is None else content.settings, {})
    mistakes += wrong
    nothing_named = not (wanted.rules or wanted.rule_files or in_file or mistakes)
    configured, notes, wrong = (
        configure_rules([*requests, *in_file], None, wanted.other_trials) if requests or nothing_named or in_file
        else ([], [], [])
    )  # fmt: skip
    mistakes += wrong
    labels, wrong = read_labels(wanted.labels)
    mistakes += wrong
    actions, wrong = read_action_arguments(wanted.actions)
    mistakes += wrong
    everywhere = [*actions, *([] if content is None else content.actions)]
    mistakes += _wrong_actions(everywhere, configured, Surroundings(trial, training_job))
    of_file = [] if content is None else content.notes
    found = Evaluated(_name(configured), settings=settings, notes=[*of_file, *notes])
    simple = len(requests) == 1 and requests[0].file is None and not (document or labels or actions)
    if simple and not mistakes and (variables := _variables(configured[0], requests[0])) is not None:
        found.variables = variables
        return found, mistakes
    entries = [_entry(request) for request in requests]
    if entries:
        # as on the command line of run: those of the command line first
        document = {"rule": [*entries, *document.pop("rule", [])], **document}
    if labels:
        document["labels"] = {**document.get("labels", {}), **labels}
    if actions:
        document["action"] = [*map(_action_entry, actions), *document.get("action", [])]
    found.document = document
    if not mistakes:
        found.files, more = local_files(document)
        found.notes += more
    return found, mistakes


def _document(wanted: Wanted) -> dict[str, Any]:
    """What the configuration file holds, the rule files in it named from here."""
    if wanted.config is None:
        return {}
    folder, document = parse_location(wanted.config)
    if isinstance(document, Mistake) or not isinstance(document, dict):
        return {}  # said by who reads it as a configuration
    try:
        for entry in files_of(document):
            if "://" not in entry.location and folder is not None:
                entry.put(str(folder / entry.location))
    except (AttributeError, TypeError):
        # what is no list of objects is said there too
        return {}
    return document


def _requests(wanted: Wanted, mistakes: list[Mistake]) -> list[RuleRequest]:
    parsed = [*map(parse_rule_argument, wanted.rules), *map(parse_rule_file_argument, wanted.rule_files)]
    mistakes += [one for one in parsed if isinstance(one, Mistake)]
    return [one for one in parsed if isinstance(one, RuleRequest)]


def _wrong_actions(
    actions: Sequence[ActionRequest], configured: Sequence[RuleConfiguration], around: Surroundings
) -> list[Mistake]:
    """What is wrong with actions, as far as it shows here: programs, files and secrets are the container's."""
    there = {
        one.name: [action for action in one.actions if action.use.strip().lower() != "command"] for one in configured
    }
    known = [one for one in actions if one.use.strip().lower() != "command"]
    everything = [*known, *(one for those in there.values() for one in those)]
    secrets = {
        str(value): "in the container"
        for one in everything
        for name, value in one.parameters.items()
        if name.endswith("_variable")
    }
    return configure_actions(known, there, around, secrets)[1]


def _variables(configured: RuleConfiguration, request: RuleRequest) -> dict[str, str] | None:
    """The variables that name one rule and its parameters; None where they do not hold them."""
    given = {name: str(value) for name, value in request.parameters.items()}
    # the environment is of SageMaker's shape, where SageMaker's defaults apply; this was the command line
    given.setdefault("parameter_set", "recommended")
    if request.name is not None:
        given["name"] = request.name
    variables = {RULE_KEY: configured.rule.name, **given}
    fits = all(VARIABLE.fullmatch(name) and len(name) <= LONGEST >= len(value) for name, value in variables.items())
    # ours beside them: the trial, the training job, and the settings
    return variables if fits and len(variables) <= MOST_VARIABLES - 40 else None


def _entry_of(variables: Mapping[str, str]) -> dict[str, str]:
    """The rule that variables name, as an entry of our shape."""
    return {"use": variables[RULE_KEY], **{name: value for name, value in variables.items() if name != RULE_KEY}}


def _entry(request: RuleRequest) -> dict[str, Any]:
    """A rule of the command line, as an entry of our shape."""
    about: dict[str, Any] = {} if request.name is None else {"name": request.name}
    if request.file is None:
        return {"use": request.use, **about, **request.parameters}
    file = request.file
    return {"file": file.path + ("" if file.name is None else f":{file.name}"), **about, **request.parameters}


def _action_entry(request: ActionRequest) -> dict[str, Any]:
    least = {} if request.at_least is None else {"at_least": request.at_least}
    return {"use": request.use, **request.parameters, **least}


def _name(configured: Sequence[RuleConfiguration]) -> str:
    """The configuration's name where there is one rule."""
    return configured[0].name if len(configured) == 1 else SEVERAL


def _not_on_s3(other_trials: str) -> list[Mistake]:
    paths = [path.strip() for path in other_trials.split(",") if path.strip()]
    what, right = "is on no storage that a processing job reaches", "s3://BUCKET/PREFIX"
    return [Mistake(f"other trial {path!r}", what, right) for path in paths if not path.startswith("s3://")]
