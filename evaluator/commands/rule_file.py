"""What commands that look at one rule file have in common: which file is meant, and within which limits it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluator.commands.base import Session
from evaluator.config.job_config import read_pairs
from evaluator.config.request import RuleFile
from evaluator.config.rule_arguments import parse_rule_file_argument
from evaluator.config.rule_files import check_rule_file
from evaluator.config.settings import Settings, resolve_settings
from evaluator.errors import InputError, Mistake
from evaluator.isolation.process import ProcessLimits
from evaluator.registry import BUILTIN_ONLY


def settings_of(session: Session, given: Sequence[str]) -> Settings:
    """The settings of the environment and of `--set`.

    Raises:
        InputError: with everything that is wrong with them.
    """
    pairs, mistakes = read_pairs(given, "--set", "a setting is name=value")
    settings, _, wrong = resolve_settings(pairs, session.environment, {}, {})
    if mistakes or wrong:
        raise InputError([*mistakes, *wrong])
    return settings


def limits_of(settings: Settings) -> ProcessLimits:
    """The time that a rule file has in a process of its own."""
    return ProcessLimits(settings.user_import_timeout, settings.user_step_timeout)


def asked_for(argument: str, settings: Settings, command: str) -> tuple[RuleFile, Mapping[str, object]]:
    """The file that FILE.py[:NAME][:key=value,...] names, and the parameters that follow it.

    Raises:
        InputError: it is not in form, there is no such file, or users' rules are not allowed.
    """
    request = parse_rule_file_argument(argument)
    if isinstance(request, Mistake):
        raise InputError([replace(request, where=f"{command} {argument!r}")])
    if not settings.allow_user_rules:
        raise InputError([Mistake(command, BUILTIN_ONLY, "name a built-in rule, or allow rule files")])
    if request.file is None:
        raise TypeError("an argument that was parsed names a file")
    file = check_rule_file(request.file, command)
    if isinstance(file, list):
        raise InputError(file)
    return file, request.parameters
