"""What the command line asks for, checked as a whole: a job's configuration, or every mistake at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evaluator.config.actions import read_action_arguments
from evaluator.config.files import FileContent, read_config_file
from evaluator.config.job_config import (
    JobConfig,
    actions_of_job,
    configure_rules,
    read_after_end,
    read_choices,
    read_labels,
    read_pairs,
)
from evaluator.config.request import RuleRequest
from evaluator.config.rule_arguments import parse_rule_argument, parse_rule_file_argument
from evaluator.config.rule_stop import read_rule_stop
from evaluator.config.settings import KNOWN_VARIABLES, resolve_settings
from evaluator.errors import InputError, Mistake
from evaluator.rule import Rule


@dataclass(frozen=True)
class Arguments:
    """What the command line of `run` and `check` gives; None and empty mean "not given"."""

    trial: str | None = None
    rules: Sequence[str] = ()
    rule_files: Sequence[str] = ()
    config: str | None = None
    actions: Sequence[str] = ()
    other_trials: Sequence[str] = ()
    output: str | None = None
    set: Sequence[str] = ()
    labels: Sequence[str] = ()
    follow: bool | None = None
    until_pid: int | None = None
    training_job: str | None = None
    on_sigterm: str = "drain"
    after_end: str = "exit"
    fail_on: str | None = None
    exit_zero: bool = False
    own: Mapping[str, object] = field(default_factory=dict)
    """Settings that an option of its own gives, besides the ones above."""


def load(arguments: Arguments, environment: Mapping[str, str], rules: Mapping[str, Rule] | None = None) -> JobConfig:
    """The configuration of the job.

    Raises:
        InputError: with everything that is wrong in arguments, environment and file.
    """
    content = FileContent() if arguments.config is None else read_config_file(str(arguments.config))
    given, mistakes = _settings_of(arguments)
    mistakes += content.mistakes
    settings, origins, setting_mistakes = resolve_settings(given, environment, content.settings, {})
    mistakes += setting_mistakes
    requests, request_mistakes = _requests_of(arguments)
    mistakes += request_mistakes
    # A rule that could not be understood was named all the same, so its job is not one over every rule.
    nothing_named = not (arguments.rules or arguments.rule_files or content.requests or content.mistakes)
    asked = [*requests, *content.requests]
    configured, rule_notes, rule_mistakes = (
        configure_rules(asked, rules, settings.other_trials, user_rules=settings.allow_user_rules)
        if asked or nothing_named
        else ([], [], [])
    )
    mistakes += rule_mistakes
    action_requests, action_mistakes = read_action_arguments(arguments.actions)
    actions, more_mistakes = actions_of_job([*action_requests, *content.actions], configured, settings, environment)
    mistakes += action_mistakes + more_mistakes
    labels, label_mistakes = read_labels(arguments.labels)
    fail_on, on_sigterm, choice_mistakes = read_choices(arguments.fail_on, arguments.exit_zero, arguments.on_sigterm)
    after_end, word_mistakes = read_after_end(arguments.after_end)
    mistakes += label_mistakes + choice_mistakes + word_mistakes
    if settings.trial is None and "trial" not in given:
        mistakes.insert(0, Mistake("trial", "no trial is given", "expected the folder that a training run saved under"))
    mistakes += _following_mistakes(arguments, follow=settings.follow)
    if mistakes or settings.trial is None:
        raise InputError(mistakes)
    unused = [variable for variable in sorted(KNOWN_VARIABLES) if environment.get(variable)]
    notes = [f"environment: {variable} is read by 'container' only; use --config" for variable in unused]
    rule_stop, stop_notes = read_rule_stop(environment) if settings.follow else (None, [])
    return JobConfig(
        trial=settings.trial,
        settings=settings,
        origins=origins,
        rules=tuple(configured),
        labels=content.labels | labels,
        naming=content.naming,
        notes=(*content.notes, *rule_notes, *notes, *stop_notes),
        fail_on=fail_on,
        on_sigterm=on_sigterm,
        after_end=after_end,
        until_pid=arguments.until_pid,
        rule_stop=rule_stop,
        region=environment.get("AWS_REGION", "").strip() or None,
        actions=actions,
    )


def _settings_of(arguments: Arguments) -> tuple[dict[str, object], list[Mistake]]:
    """The settings that the command line gives, by options of their own and by `--set`."""
    pairs, mistakes = read_pairs(arguments.set, "--set", "a setting is name=value")
    own: dict[str, object] = {
        "trial": arguments.trial,
        "other_trials": tuple(arguments.other_trials) or None,
        "output": arguments.output,
        "follow": arguments.follow,
        "training_job_name": arguments.training_job,
        **arguments.own,
    }
    given: dict[str, object] = dict(pairs)
    for name, value in own.items():
        if value is None:
            continue
        if name in pairs:
            mistakes.append(Mistake("--set", f"{name!r} is given by an argument of its own too", "give it once"))
        given[name] = value
    return given, mistakes


def _requests_of(arguments: Arguments) -> tuple[list[RuleRequest], list[Mistake]]:
    parsed = [
        *(parse_rule_argument(argument) for argument in arguments.rules),
        *(parse_rule_file_argument(argument) for argument in arguments.rule_files),
    ]
    requests = [one for one in parsed if isinstance(one, RuleRequest)]
    return requests, [one for one in parsed if isinstance(one, Mistake)]


def _following_mistakes(arguments: Arguments, *, follow: bool) -> list[Mistake]:
    """What is wrong with options that only mean something while a run is followed."""
    mistakes = []
    if arguments.until_pid is not None and arguments.until_pid < 1:
        mistakes.append(Mistake("--until-pid", f"{arguments.until_pid} is no process id", "expected a number above 0"))
    given = {
        "--until-pid": arguments.until_pid is not None,
        "--training-job": arguments.training_job is not None,
        "--after-end": arguments.after_end == "wait",
    }
    unused = [option for option, there in given.items() if there and not follow]
    return mistakes + [Mistake(option, "has no meaning when nothing is followed", "add --follow") for option in unused]
