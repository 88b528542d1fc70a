"""The checked configuration of a whole job, put together from all the places that had a say in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from evaluator.config.names import assign_names
from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.config.settings import Origin, Settings
from evaluator.config.wire import convert
from evaluator.errors import Mistake
from evaluator.registry import builtin_rules, find_rule
from evaluator.rule import SEVERITIES, Rule, Severity

FailOn = Severity | Literal["never"]
OnSigterm = Literal["drain", "stop"]


@dataclass(frozen=True)
class JobConfig:
    """Everything that a job is told.

    Args:
        trial: path or URI, as given.
        origins: setting -> where its value comes from.
        labels: copied into status and findings.
        notes: what the user should know and what does not stop the job; for the status.
        fail_on: the least severity of a finding that makes the exit code 1 (`--exit-zero` is "never").
        on_sigterm: whether a stop signal lets saved steps be evaluated first.
        until_pid: the process whose end is the end of training.
        flat_output: findings lie directly in the output folder, because the environment named exactly one rule.
    """

    trial: str
    settings: Settings
    origins: Mapping[str, Origin]
    rules: tuple[RuleConfiguration, ...]
    labels: Mapping[str, str]
    notes: tuple[str, ...] = ()
    fail_on: FailOn = "info"
    on_sigterm: OnSigterm = "drain"
    until_pid: int | None = None
    flat_output: bool = False


def configure_rules(
    requests: Sequence[RuleRequest], rules: Mapping[str, Rule] | None, job_wide_trials: Sequence[str]
) -> tuple[list[RuleConfiguration], list[str], list[Mistake]]:
    """The configurations that were asked for, notes, and mistakes; without requests every rule is a candidate."""
    known = builtin_rules() if rules is None else rules
    mistakes: list[Mistake] = []
    found: list[tuple[RuleRequest, Rule]] = []
    for request in requests or [RuleRequest(name, {}, "candidate", name) for name in known]:
        rule = find_rule(request.use, known, "--rule" if request.shape == "command line" else request.where)
        if isinstance(rule, Mistake):
            mistakes.append(rule)
        else:
            found.append((request, rule))
    names, name_mistakes = assign_names(found)
    mistakes += name_mistakes
    configurations: list[RuleConfiguration] = []
    for (request, rule), name in zip(found, names, strict=True):
        configuration = configure(replace(request, name=name), rule)
        if isinstance(configuration, list):
            mistakes += configuration
        else:
            configurations.append(_with_trials(configuration, job_wide_trials))
    notes = [note for configuration in configurations for note in configuration.notes]
    if job_wide_trials and not any(rule.other_trials for _, rule in found):
        notes.append("other trials were given, but no rule of this job compares with other trials")
    return configurations, notes, mistakes


def read_labels(arguments: Sequence[str]) -> tuple[dict[str, str], list[Mistake]]:
    """The labels of `--label k=v` arguments."""
    return read_pairs(arguments, "--label", "a label is k=v")


def read_pairs(arguments: Sequence[str], option: str, form: str) -> tuple[dict[str, str], list[Mistake]]:
    """The name=value arguments of an option that can be given several times."""
    pairs: dict[str, str] = {}
    mistakes: list[Mistake] = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        name = name.strip()
        if not equals or not name:
            mistakes.append(Mistake(option, f"{argument!r} has no name and value", form))
        elif pairs.get(name, value) != value:
            mistakes.append(Mistake(option, f"{name!r} is given twice: {pairs[name]!r} and {value!r}", "give it once"))
        else:
            pairs[name] = value
    return pairs, mistakes


def read_choices(fail_on: str | None, exit_zero: bool, on_sigterm: str) -> tuple[FailOn, OnSigterm, list[Mistake]]:
    """The options that are words of a short list."""
    mistakes: list[Mistake] = []
    words = (*SEVERITIES, "never")
    chosen = next((word for word in words if word == (fail_on or "info").lower()), None)
    if chosen is None:
        mistakes.append(Mistake("--fail-on", f"{fail_on!r} does not fit", f"expected one of {', '.join(words)}"))
    signal = convert(OnSigterm, on_sigterm)
    if signal not in get_args(OnSigterm):
        mistakes.append(Mistake("--on-sigterm", f"{on_sigterm!r} does not fit", "expected drain or stop"))
    least: FailOn = "never" if exit_zero or chosen is None else chosen  # type: ignore[assignment]
    return least, "stop" if signal == "stop" else "drain", mistakes


def _with_trials(configuration: RuleConfiguration, job_wide: Sequence[str]) -> RuleConfiguration:
    if not configuration.rule.other_trials:
        return configuration
    return replace(configuration, other_trials=tuple(dict.fromkeys([*configuration.other_trials, *job_wide])))
