"""check: a dry run that says what each rule would see of a trial, and what is missing."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from evaluator.commands.base import (
    Command,
    ConfigOption,
    JsonOption,
    OtherTrialOption,
    RuleFileOption,
    RuleOption,
    Session,
    SetOption,
    SourceOption,
    count,
    names,
    session_of,
    shown,
)
from evaluator.commands.dry_run import look
from evaluator.commands.looks import Look, NeedLook, RuleLook
from evaluator.config.load import Arguments, load

NOTHING_WRONG, SOMETHING_FOUND, NOTHING_CHECKED = 0, 1, 3
"""Exit codes of commands that check; 2 is wrong input. Source: design, section 9."""

FIRST_NAMES = 3


def check(
    context: typer.Context,
    trial: Annotated[
        str | None,
        typer.Argument(metavar="TRIAL", show_default=False, help="The folder that one training run saved under."),
    ] = None,
    rule: RuleOption = None,
    rule_file: RuleFileOption = None,
    config: ConfigOption = None,
    other_trial: OtherTrialOption = None,
    settings: SetOption = None,
    source: SourceOption = None,
    as_json: JsonOption = False,
) -> int:
    """Say what each rule would see of a trial, how many points there are, and what is missing; evaluates nothing.

    Exit codes: 0 nothing wrong, 1 something found, 2 wrong input,
    3 nothing could be checked.
    """
    session = session_of(context)
    arguments = Arguments(
        trial=trial,
        rules=rule or (),
        rule_files=rule_file or (),
        config=config,
        other_trials=other_trial or (),
        set=settings or (),
        own={"source": source},
    )
    job = load(arguments, session.environment)
    seen = look(job, session.clock)
    if as_json:
        session.print_json(_document(job.trial, seen, job.notes))
    else:
        _print(session, job.trial, seen, job.notes)
    return _exit_code(seen)


def _exit_code(seen: Look) -> int:
    if not seen.steps or all(one.candidate and one.reason is not None for one in seen.rules):
        return NOTHING_CHECKED
    found = any(_problems(one) for one in seen.rules if not one.candidate)
    return SOMETHING_FOUND if found or seen.problems or seen.incomplete else NOTHING_WRONG


def _problems(one: RuleLook) -> list[str]:
    """What somebody should look at, in words."""
    problems = [f"would not be evaluated: {one.reason}"] if one.reason is not None else []
    problems += [one.broken] if one.broken is not None else []
    problems += [
        f"perhaps too few points: {need.looks_for} has {count(need.points, 'point')} over {count(need.span, 'step')}, "
        f"and the rule looks back over {_history(need)}"
        for need in one.short
    ]
    problems += one.unmatched
    if one.ignored:
        problems.append(f"ignored parameters: {', '.join(one.ignored)}")
    return problems


def _history(need: NeedLook) -> str:
    rows, steps = need.history
    return count(rows, "point") + (f" and {count(steps, 'step')}" if steps else "")


def _document(path: str, seen: Look, notes: tuple[str, ...]) -> dict[str, Any]:
    return {
        "schema": 1,
        "trial": path,
        "steps": {"count": seen.steps, "first": seen.first, "last": seen.last},
        "rules": [_rule_document(one) for one in seen.rules if not _not_applicable(one)],
        "not_applicable": [
            {"rule": one.configuration, "reason": one.reason} for one in seen.rules if _not_applicable(one)
        ],
        "incomplete": seen.incomplete,
        "problems": dict(seen.problems),
        "more_problems": seen.more_problems,
        "notes": list(notes),
    }


def _rule_document(one: RuleLook) -> dict[str, Any]:
    return {
        "rule_configuration": one.configuration,
        "rule": one.rule,
        "needs": [
            {
                "looks_for": need.looks_for,
                "tensors": len(need.tensors),
                "first_tensors": need.tensors[:FIRST_NAMES],
                "points": need.points,
                "looks_back": {"points": need.history[0], "steps": need.history[1]},
                "decides_when": need.triggers,
            }
            for need in one.needs
        ],
        "due": one.due,
        "enough": one.enough,
        "reason": one.reason,
        "ignored_parameters": list(one.ignored),
        "problems": _problems(one),
        "file": one.file,
    }


def _not_applicable(one: RuleLook) -> bool:
    return one.candidate and one.reason is not None


def _print(session: Session, path: str, seen: Look, notes: tuple[str, ...]) -> None:
    span = f", {seen.first} to {seen.last}" if seen.steps else ""
    session.print(shown(f"{path}: {count(seen.steps, 'step')}{span}"), wrap=False)
    for one in seen.rules:
        if not _not_applicable(one):
            _print_rule(session, one)
    not_applicable = [one for one in seen.rules if _not_applicable(one)]
    if not_applicable:
        session.print(Text(), shown(f"not applicable ({len(not_applicable)}), because no rule was named:", "bold"))
        for one in not_applicable:
            session.print(Padding(shown(f"{one.configuration}: {one.reason}"), (0, 0, 0, 2), expand=False))
    for problem in seen.incomplete:
        session.print(shown(f"problem: {problem}", "yellow"), wrap=False)
    for where, what in seen.problems.items():
        session.print(shown(f"problem: {where}: {what}", "yellow"), wrap=False)
    if seen.more_problems:
        session.print(shown(f"and {count(seen.more_problems, 'more problem')}", "yellow"))
    for note in notes:
        session.print(shown(f"note: {note}", "yellow"), wrap=False)


def _print_rule(session: Session, one: RuleLook) -> None:
    problems = _problems(one)
    if one.file is not None:
        verdict = f": {one.file}" + ("" if problems else "; it loads, and what it looks at is known when it runs")
    else:
        verdict = "" if problems else ", nothing missing" if one.due is not None else ": nothing missing"
    due = "" if one.due is None else f": judged at {count(one.due, 'step')} at most"
    of = f" ({one.rule})" if one.rule != one.configuration else ""
    session.print(Text(), shown(f"{one.configuration}{of}{due}{verdict}", "bold"))
    for need in one.needs:
        first = f": {names(need.tensors, FIRST_NAMES)}" if need.tensors else ""
        tensors = f"{need.looks_for}: {count(len(need.tensors), 'tensor')} at {count(need.points, 'step')}{first}"
        session.print(Padding(shown(tensors), (0, 0, 0, 2), expand=False))
    for problem in problems:
        session.print(Padding(shown(problem, "yellow"), (0, 0, 0, 2), expand=False))


COMMAND = Command("check", check, 3)
