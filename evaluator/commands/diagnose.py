"""diagnose: what is wrong with a distributed training job that stalls, slows down or will not start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from evaluator.commands.base import Command, JsonOption, Session, count, session_of, shown
from evaluator.errors import InputError, Mistake
from evaluator.sagemaker.diagnose import (
    START_LIMIT,
    Check,
    Evidence,
    Found,
    Gathering,
    Inputs,
    NotChecked,
    Ok,
    Result,
    diagnose,
    word_of,
)

NOTHING_WRONG, SOMETHING_FOUND, NOTHING_CHECKED = 0, 1, 3
"""Exit codes of commands that check; 2 is wrong input. Source: design, section 9."""

_STYLES = {"found": "red", "ok": "green", "not checked": ""}
_SAVED = "Saved answers of AWS"


def diagnose_job(
    context: typer.Context,
    training_job: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Ask AWS about this training job: its description, logs, security groups and FSx file systems "
            "(needs the extra s3). Nothing is changed there.",
        ),
    ] = None,
    trial: Annotated[
        str | None, typer.Option(metavar="PATH", help="What the training saved: a folder or s3://BUCKET/PREFIX.")
    ] = None,
    other_trial: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="What the same training saved on another number of workers, to compare step times; may be given "
            "several times.",
        ),
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A log of the training, as text or as 'aws logs filter-log-events' answers; may be given several "
            "times.",
        ),
    ] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A .safetensors file, of which only the header is read, or a JSON list of keys; pickles are never "
            "opened. May be given several times.",
        ),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json",
            help="What CreateTrainingJob takes, arguments of an estimator (as in check-job), or what 'aws sagemaker "
            "describe-training-job' answers.",
            rich_help_panel=_SAVED,
        ),
    ] = None,
    security_groups: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json",
            help="What 'aws ec2 describe-security-groups' answers for the groups of the job.",
            rich_help_panel=_SAVED,
        ),
    ] = None,
    file_systems: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json",
            help="What 'aws fsx describe-file-systems' answers for the file system of the job.",
            rich_help_panel=_SAVED,
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json",
            help="What 'aws cloudwatch get-metric-data' answers for the Sum of DataReadBytes and DataWriteBytes of it "
            "(namespace AWS/FSx).",
            rich_help_panel=_SAVED,
        ),
    ] = None,
    start_limit: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long a training may take to its first step.")
    ] = START_LIMIT,
    as_json: JsonOption = False,
) -> int:
    """Look for what goes wrong with distributed training, in all that is given.

    Every check is told on one line: found, ok, or not checked, and why.

    Exit codes: 0 nothing wrong, 1 something found, 2 wrong input,
    3 nothing could be checked.
    """
    session = session_of(context)
    inputs = Inputs(
        training_job, request, trial, other_trial or (), log or (), checkpoint or (), security_groups, file_systems,
        metrics, start_limit,
    )  # fmt: skip
    _refuse(inputs)
    evidence = _gather(inputs, session)
    results = diagnose(evidence)
    if as_json:
        made = [_document(check, result) for check, result in results]
        session.print_json({"schema": 1, "checks": made, "notes": evidence.notes()})
    else:
        _print(session, results)
        for note in evidence.notes():
            session.print(shown(f"note: {note}"), wrap=False)
    words = {word_of(result) for _, result in results}
    return SOMETHING_FOUND if "found" in words else NOTHING_WRONG if "ok" in words else NOTHING_CHECKED


def _refuse(inputs: Inputs) -> None:
    mistakes = []
    if inputs == Inputs(start_limit=inputs.start_limit, other_trials=(), logs=(), checkpoints=()):
        right = "give at least one of --training-job, --trial, --log, --checkpoint and --request"
        mistakes.append(Mistake("diagnose", "there is nothing to look at", right))
    if inputs.training_job is not None and inputs.request is not None:
        mistakes.append(Mistake("--request", "the job is described by --training-job already", "give one of the two"))
    if mistakes:
        raise InputError(mistakes)


def _gather(inputs: Inputs, session: Session) -> Evidence:
    if not session.err.is_terminal:
        return Gathering(inputs, session.clock, lambda _: None).gather()
    with session.err.status("reading", spinner="line") as line:
        return Gathering(inputs, session.clock, lambda what: line.update(shown(what))).gather()


def _document(check: Check, result: Result) -> dict[str, Any]:
    document: dict[str, Any] = {"check": check.name, "result": word_of(result), "what": _what(result)}
    if isinstance(result, Found):
        document |= {"evidence": list(result.evidence), "remedy": [*result.remedy, *check.remedy]}
    return document


def _what(result: Result) -> str:
    return result.why if isinstance(result, NotChecked) else result.what


def _print(session: Session, results: Sequence[tuple[Check, Result]]) -> None:
    for check, result in results:
        word = word_of(result)
        session.print(shown(f"{word}: {check.name}: {_what(result)}", _STYLES[word]), wrap=False)
        if isinstance(result, Found):
            for line in result.evidence:
                session.print(shown(f"    {line}"), wrap=False)
            for line in (*result.remedy, *check.remedy):
                session.print(shown(f"    remedy: {line}"), wrap=False)
    number = sum(isinstance(result, Found) for _, result in results)
    checked = sum(isinstance(result, Found | Ok) for _, result in results)
    session.print(shown(f"{count(number, 'finding')}; {checked} of {count(len(results), 'check')} could be made"))


COMMAND = Command("diagnose", diagnose_job, 13)
