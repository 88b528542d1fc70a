"""test: runs the examples of a rule file: series in, verdict out."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from evaluator.commands.base import Command, JsonOption, Session, SetOption, count, session_of, shown
from evaluator.commands.explain import print_series, verdict
from evaluator.commands.rule_file import asked_for, limits_of, settings_of
from evaluator.commands.run import run_job
from evaluator.commands.signals import Signals
from evaluator.config.load import Arguments, load
from evaluator.errors import InputError, Mistake
from evaluator.isolation.bench import Bench
from evaluator.isolation.messages import Look
from evaluator.outcome import FOUND, NOT_EVALUATED, NOTHING_FOUND
from evaluator.status import JobStatus
from evaluator.table import print_verdicts

MOST_LINES = 20
"""Of what the file printed; it is told where an example failed."""

Document = dict[str, Any]


def try_examples(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py[:NAME]",
            show_default=False,
            help="The rule file; NAME is one rule in it, otherwise all are tested. Parameters for --trial may follow "
            "as in --rule-file.",
        ),
    ],
    trial: Annotated[
        str | None, typer.Option(metavar="DIR", help="Also run the rule over this trial and show its verdict.")
    ] = None,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> int:
    """Test a rule file: each example is run, and its verdict compared with what the example says.

    A RULE has `examples`; for a class they are in EXAMPLES of the module. The file runs in a process of its own.
    Exit codes: 0 all as expected, 1 an example failed, 2 wrong input, 3 there was nothing to run.
    """
    session = session_of(context)
    chosen = settings_of(session, settings or ())
    asked, parameters = asked_for(file, chosen, "test")
    if parameters and trial is None:
        raise InputError([Mistake("test", "parameters are given, but no trial", "an example has its own; add --trial")])
    with Bench(Look(asked, chosen.user_memory, every=True), limits_of(chosen)) as bench:
        rules = _introduce(session, bench, as_json=as_json)
        tested = [_tested(session, bench, rule, asked.path, as_json=as_json) for rule in rules]
        bench.close()
        output = bench.output.decode("utf-8", "replace").splitlines()[-MOST_LINES:]
    outcomes = [one for rule in tested for one in rule["examples"]]
    failed = [one for one in outcomes if not one["as_expected"]]
    if not as_json:
        if failed and output:
            session.print(Text(), Text("What the file printed last:"), *(shown(f"  {line}") for line in output))
        session.print(shown(_summary(len(outcomes), len(failed)), "bold"), wrap=False)
    status = None if trial is None else _over(session, trial, file, rules, settings or (), as_json=as_json)
    if as_json:
        over = None if status is None else status.document()
        passed = len(outcomes) - len(failed)
        totals = {"as_expected": passed, "failed": len(failed)}
        session.print_json({"schema": 1, "file": asked.path, "rules": tested, **totals, "status": over})
    if failed or (status is not None and any(rule.RuleEvaluationStatus == "Error" for rule in status.rules)):
        return FOUND
    return NOTHING_FOUND if outcomes or status is not None else NOT_EVALUATED


def _introduce(session: Session, bench: Bench, *, as_json: bool) -> list[Document]:
    """The rules of the file; where it cannot be imported, the author sees where it stopped."""
    try:
        return bench.introduce()
    except InputError:
        if bench.failure and not as_json:
            for line in bench.failure.splitlines():
                session.err.print(shown(line), soft_wrap=True)
        raise


def _tested(session: Session, bench: Bench, rule: Document, path: str, *, as_json: bool) -> Document:
    """What came of the examples of one rule, told as they are run."""
    if not as_json:
        session.print(shown(f"{Path(path).name}: {rule['name']}", "bold"), wrap=False)
    outcomes = []
    for number, example in enumerate(rule["examples"]):
        outcome = bench.try_example(rule["name"], number)
        expected = {"met_at": example["met_at"], "tensor": example["tensor"]}
        given = {"title": example["title"], "parameters": example["parameters"], "series": example["series"]}
        outcomes.append({**given, "expected": expected, **outcome})
        if not as_json:
            _tell(session, example, outcome)
    if not as_json and not outcomes:
        session.print(shown("  no examples"))
    return {"rule": rule["name"], "examples": outcomes}


def _tell(session: Session, example: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
    """One line for what is as expected; otherwise also what came out, and of what."""
    if outcome["as_expected"]:
        never = "" if outcome["evaluated"] else f" (never judged: {outcome['why']})"
        line = Text.assemble(("  ok      ", "green"), shown(f"{example['title']}: {verdict(example)}{never}"))
        session.print(line, wrap=False)
        return
    session.print(Text.assemble(("  FAILED  ", "bold red"), shown(example["title"])), wrap=False)
    got = "" if outcome["raised"] else f"{verdict(outcome)}: "
    session.print(shown(f"          expected: {verdict(example)}"), wrap=False)
    session.print(shown(f"          got:      {got}{outcome['why']}"), wrap=False)
    print_series(session, example, 10)
    session.print(*(shown(f"          {line}") for line in str(outcome["failure"]).splitlines()), wrap=False)


def _summary(examples: int, failed: int) -> str:
    if not examples:
        return "no example to run; those of a RULE are its examples, those of a class are EXAMPLES of the module"
    return (
        f"{failed} of {count(examples, 'example')} failed"
        if failed
        else f"{count(examples, 'example')}, all as expected"
    )


def _over(
    session: Session, trial: str, file: str, rules: Sequence[Document], settings: Sequence[str], *, as_json: bool
) -> JobStatus:
    """What a job with these rules comes to over a trial, without anything being left of its output."""
    named = [file] if len(rules) == 1 else [f"{file}:{rule['name']}" for rule in rules]
    quiet = {} if any(one.startswith("log_level") for one in settings) else {"log_level": "error"}
    with tempfile.TemporaryDirectory(prefix="rule-test-") as output, Signals() as signals:
        arguments = Arguments(
            trial=trial, rule_files=named, output=output, set=settings, follow=False, exit_zero=True, own=quiet
        )
        config = load(arguments, session.environment)
        result = run_job(session, config, signals)
        if not as_json:
            print_verdicts(result.status, session.out)
            for path in sorted(Path(output).rglob("traceback.txt")):
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
                session.print(*(shown(line) for line in lines), wrap=False)
    return result.status


COMMAND = Command("test", try_examples, 5)
