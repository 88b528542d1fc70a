"""The checked configuration of a whole job, put together from all the places that had a say in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from evaluator.actions.base import Action, Surroundings
from evaluator.config.actions import configure_actions
from evaluator.config.names import assign_names
from evaluator.config.parameters import RuleConfiguration, configure, configure_file
from evaluator.config.request import ActionRequest, RuleRequest
from evaluator.config.rule_files import stand_in
from evaluator.config.rule_stop import RuleStop
from evaluator.config.settings import Origin, Settings
from evaluator.config.wire import convert
from evaluator.errors import Mistake
from evaluator.registry import BUILTIN_ONLY, find_rule, known_rules, pack_notes
from evaluator.rule import SEVERITIES, Rule, Severity
from evaluator.scalar_names import Naming
from evaluator.trial.opening import Reading

FailOn = Severity | Literal["never"]
OnSigterm = Literal["drain", "stop"]
AfterEnd = Literal["exit", "wait"]


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
        after_end: whether the process stays, after the job has ended, until a stop signal comes.
        until_pid: the process whose end is the end of training.
        rule_stop: the file by which rules are told to stop.
        region: where SageMaker is, as far as the environment says it in a way that boto3 does not read.
        naming: what the names in a log mean.
        actions: what is to be done at findings.
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
    after_end: AfterEnd = "exit"
    until_pid: int | None = None
    rule_stop: RuleStop | None = None
    region: str | None = None
    flat_output: bool = False
    naming: Naming | None = None
    actions: tuple[Action, ...] = ()

    @property
    def reading(self) -> Reading:
        """How the trial is to be read."""
        return Reading(self.settings.source, self.naming)


def configure_rules(
    requests: Sequence[RuleRequest],
    rules: Mapping[str, Rule] | None,
    job_wide_trials: Sequence[str],
    *,
    user_rules: bool = True,
) -> tuple[list[RuleConfiguration], list[str], list[Mistake]]:
    """The configurations that were asked for, notes, and mistakes; without requests every rule is a candidate.

    Args:
        requests: as they were written.
        rules: those that can be named; by default the ones that are installed.
        job_wide_trials: other trials, for every rule that compares with some.
        user_rules: whether rules that do not come with the program are allowed.
    """
    known = known_rules(with_packs=user_rules) if rules is None else rules
    notes = pack_notes(with_packs=user_rules) if rules is None else []
    mistakes: list[Mistake] = []
    found: list[tuple[RuleRequest, Rule]] = []
    for request in requests or [RuleRequest(name, {}, "candidate", name) for name in known]:
        rule = _rule(request, known, user_rules=user_rules)
        if isinstance(rule, Mistake):
            mistakes.append(rule)
        else:
            found.append((request, rule))
    names, name_mistakes = assign_names(found)
    mistakes += name_mistakes
    configurations: list[RuleConfiguration] = []
    for (request, rule), name in zip(found, names, strict=True):
        named = replace(request, name=name)
        configuration = configure(named, rule) if request.file is None else configure_file(named)
        if isinstance(configuration, list):
            mistakes += configuration
        else:
            configurations.append(_with_trials(configuration, job_wide_trials))
    notes += [note for configuration in configurations for note in configuration.notes]
    if job_wide_trials and not any(rule.other_trials for _, rule in found):
        notes.append("other trials were given, but no rule of this job compares with other trials")
    return configurations, notes, mistakes


def actions_of_job(
    job_wide: Sequence[ActionRequest],
    rules: Sequence[RuleConfiguration],
    settings: Settings,
    environment: Mapping[str, str],
) -> tuple[tuple[Action, ...], list[Mistake]]:
    """The actions of all rules and of single ones, or what is wrong with them."""
    of_rules = {rule.name: rule.actions for rule in rules}
    around = Surroundings(settings.trial or "", settings.training_job_name)
    return configure_actions(job_wide, of_rules, around, environment)


def _rule(request: RuleRequest, known: Mapping[str, Rule], *, user_rules: bool) -> Rule | Mistake:
    """The rule that was asked for, or what stands in for it while it is still in its file."""
    if request.file is None:
        found = find_rule(request.use, known, "--rule" if request.shape == "command line" else request.where)
        if isinstance(found, Mistake) and not user_rules:
            return replace(found, would_be_right=f"{found.would_be_right}; {BUILTIN_ONLY}")
        return found
    if not user_rules:
        return Mistake(request.where, BUILTIN_ONLY, "name a built-in rule, or allow rule files")
    return stand_in(request)


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


def read_after_end(after_end: str) -> tuple[AfterEnd, list[Mistake]]:
    """The word that `--after-end` gives."""
    word = convert(AfterEnd, after_end)
    if word not in get_args(AfterEnd):
        return "exit", [Mistake("--after-end", f"{after_end!r} does not fit", "expected exit or wait")]
    return "wait" if word == "wait" else "exit", []


def _with_trials(configuration: RuleConfiguration, job_wide: Sequence[str]) -> RuleConfiguration:
    if not configuration.rule.other_trials:
        return configuration
    return replace(configuration, other_trials=tuple(dict.fromkeys([*configuration.other_trials, *job_wide])))
