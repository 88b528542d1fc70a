"""status: one table over many outputs, or over all rules of a training job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from evaluator.aws import Refused, Service
from evaluator.commands.base import Command, ExitZeroOption, FailOnOption, JsonOption, Session, session_of, shown
from evaluator.config.job_config import FailOn, read_choices
from evaluator.errors import InputError, Mistake
from evaluator.outcome import exit_code
from evaluator.sagemaker.described import Described, describe
from evaluator.status import RuleStatus
from evaluator.watching.outputs import NONE_MATCHES, find_outputs
from evaluator.watching.summary import Row, print_rows, rows_document, worst_code

HOSTED = "hosted"
"""Whose rules those are that SageMaker itself tells of."""
_STYLES = {"NoIssuesFound": "green", "IssuesFound": "bold red", "Error": "bold yellow"}


def status(
    context: typer.Context,
    outputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH|s3://...",
            show_default=False,
            help="Outputs of run, wrap or watch, folders that hold outputs, or patterns in quotes ('runs/*/out').",
        ),
    ] = None,
    training_job: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="All rules of this SageMaker training job instead: ours beside it, and the hosted ones.",
        ),
    ] = None,
    as_json: JsonOption = False,
    fail_on: FailOnOption = None,
    exit_zero: ExitZeroOption = False,
) -> int:
    """Show how jobs are, by their outputs: one line for each, running or ended.

    A job that has not written its status for 15 minutes is shown as lost.

    Exit codes: 0 no finding, 1 findings, 2 an output that cannot be read,
    3 a rule in Error, or a job that failed or is lost; the first of 1, 2, 3
    that any output has.
    """
    session = session_of(context)
    least, _, mistakes = read_choices(fail_on, exit_zero, "drain")
    if (training_job is None) == (not outputs):
        what = "no output is given" if training_job is None else "outputs and a training job are given"
        mistakes.append(Mistake("status", what, "give outputs, or --training-job NAME"))
    if mistakes:
        raise InputError(mistakes)
    if training_job is not None:
        return _of_training_job(training_job, session, least, as_json=as_json)
    rows = find_outputs(outputs or [], session.clock)
    now = session.clock.now()
    code = worst_code(row.exit_code(least, now) for row in rows)
    if as_json:
        session.print_json(rows_document(rows, code, now))
    else:
        print_rows(rows, session.out, now)
    return code


def _of_training_job(name: str, session: Session, least: FailOn, *, as_json: bool) -> int:
    """Show all rules of a training job, those of our outputs and those of the hosted service."""
    try:
        sagemaker = Service("sagemaker", session.environment.get("AWS_REGION", "").strip() or None)
    except Refused as error:
        raise InputError([Mistake("SageMaker", error.what, error.would_be_right)]) from error
    job = describe(name, sagemaker)
    rows = _rows(job, session)
    now = session.clock.now()
    codes = [row.exit_code(least, now) for row in rows]
    code = worst_code([*codes, exit_code(job.hosted, least)])
    debug = [(HOSTED, rule) for rule in job.rules]
    profiler = [(HOSTED, rule) for rule in job.profiler_rules]
    for row in rows:
        if row.status is not None:
            debug += [(row.output, rule) for rule in row.status.DebugRuleEvaluationStatuses]
            profiler += [(row.output, rule) for rule in row.status.ProfilerRuleEvaluationStatuses]
    if as_json:
        document: dict[str, Any] = {
            "schema": 1,
            "exit_code": code,
            "TrainingJobName": job.name,
            "TrainingJobStatus": job.status,
            "DebugRuleEvaluationStatuses": [{"from": whose, **rule.document()} for whose, rule in debug],
            "ProfilerRuleEvaluationStatuses": [{"from": whose, **rule.document()} for whose, rule in profiler],
            "outputs": rows_document(rows, code, now)["outputs"],
        }
        session.print_json(document)
    else:
        _print(job, rows, [*debug, *profiler], session, now)
    return code


def _rows(job: Described, session: Session) -> list[Row]:
    """Our outputs among the results of the training job's rules; hosted rules leave other files there."""
    if job.results is None:
        return []
    rows = find_outputs([f"{job.results}/*"], session.clock)
    return [row for row in rows if not row.problem.startswith(NONE_MATCHES)]


def _print(
    job: Described, rows: Sequence[Row], rules: Sequence[tuple[str, RuleStatus]], session: Session, now: float
) -> None:
    """Print one line for each rule, then one for each of our outputs."""
    session.print(shown(f"training job {job.name}: {job.status}"), wrap=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("rule", "status", "from", "details"):
        table.add_column(heading, overflow="fold")
    for whose, rule in rules:
        word = rule.RuleEvaluationStatus
        source = whose if whose == HOSTED else whose.removeprefix(job.folder or "").lstrip("/")
        details = rule.StatusDetails or ""
        if rule.Finding is not None:
            details = f"step {rule.Finding.step}: {rule.Finding.message}"
        table.add_row(
            shown(rule.RuleConfigurationName), shown(word, _STYLES.get(word, "")), shown(source), shown(details)
        )
    if rules:
        session.print(table)
    else:
        session.print(shown("no rules: neither hosted ones, nor an output of ours beside its tensors"), wrap=False)
    if rows:
        print_rows(rows, session.out, now)


COMMAND = Command("status", status, 4)
