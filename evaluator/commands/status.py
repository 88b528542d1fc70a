"""status: one table over many outputs."""

from __future__ import annotations

from typing import Annotated

import typer

from evaluator.commands.base import Command, ExitZeroOption, FailOnOption, JsonOption, session_of
from evaluator.config.job_config import read_choices
from evaluator.errors import InputError
from evaluator.watching.outputs import find_outputs
from evaluator.watching.summary import print_rows, rows_document, worst_code


def status(
    context: typer.Context,
    outputs: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH|s3://...",
            show_default=False,
            help="Outputs of run, wrap or watch, folders that hold outputs, or patterns in quotes ('runs/*/out').",
        ),
    ],
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
    if mistakes:
        raise InputError(mistakes)
    rows = find_outputs(outputs, session.clock)
    now = session.clock.now()
    code = worst_code(row.exit_code(least, now) for row in rows)
    if as_json:
        session.print_json(rows_document(rows, code, now))
    else:
        print_rows(rows, session.out, now)
    return code


COMMAND = Command("status", status, 4)
