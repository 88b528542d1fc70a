"""check-job: what is wrong with the request of a training job, before it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluator.commands.base import Command, JsonOption, Session, count, session_of, shown
from evaluator.config.parsing import parse_content, parse_file
from evaluator.errors import InputError, Mistake
from evaluator.sagemaker.check_job import Flaw, TrainingRequest, check_request, read_request
from evaluator.sagemaker.images import not_a_region
from evaluator.sagemaker.regions import partition_of

NOTHING_WRONG, SOMETHING_FOUND, NOTHING_CHECKED = 0, 1, 3
"""Exit codes of commands that check; 2 is wrong input. Source: design, section 9."""

_STYLES = {"critical": "red", "error": "red", "warning": "yellow", "info": ""}


def check_job(
    context: typer.Context,
    request: Annotated[
        str,
        typer.Argument(
            metavar="REQUEST.json",
            show_default=False,
            help="What CreateTrainingJob takes (or DescribeTrainingJob answers), or arguments of an estimator, as "
            "JSON; - reads standard input.",
        ),
    ],
    region: Annotated[
        str | None,
        typer.Option(metavar="REGION", help="Where the job is to run, if the request does not tell."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Say all that is wrong with the request of a training job as far as SageMaker Debugger is concerned.

    Nothing is sent anywhere.

    Exit codes: 0 nothing wrong, 1 something found, 2 wrong input,
    3 the request has nothing of Debugger.
    """
    session = session_of(context)
    job = _read(request, region)
    flaws = check_request(job)
    if not job.uses_debugger and not flaws:
        job.notes.append("no hook and no rules: the request has nothing of Debugger that could be checked")
    elif job.region is None:
        job.notes.append("the region is not known: that images are in it was not checked; add --region")
    if as_json:
        session.print_json(_document(job, flaws))
    else:
        _print(session, job, flaws)
    if flaws:
        return SOMETHING_FOUND
    return NOTHING_WRONG if job.uses_debugger else NOTHING_CHECKED


def _read(path: str, region: str | None) -> TrainingRequest:
    document = (
        parse_content(sys.stdin.buffer.read, "standard input", ".json") if path == "-" else parse_file(Path(path))
    )
    where = "standard input" if path == "-" else path
    mistakes: list[Mistake] = []
    if region is not None and partition_of(region.strip().lower()) is None:
        mistakes.append(not_a_region(region, "--region"))
    job = document if isinstance(document, Mistake) else read_request(document, where)
    if isinstance(job, Mistake):
        mistakes.append(job)
    if mistakes or isinstance(job, Mistake):
        raise InputError(mistakes)
    if region is not None:
        job.region = region.strip().lower()
        job.partition = partition_of(job.region)
    return job


def _document(job: TrainingRequest, flaws: Sequence[Flaw]) -> dict[str, Any]:
    return {
        "schema": 1,
        "request": job.where,
        "shape": "estimator" if job.estimator else "CreateTrainingJob",
        "region": job.region,
        "framework": job.framework,
        "strategies": list(job.strategies),
        "findings": [
            {
                "where": flaw.where,
                "what": flaw.what,
                "would_be_right": flaw.would_be_right,
                "severity": flaw.severity,
            }
            for flaw in flaws
        ],
        "notes": job.notes,
    }


def _print(session: Session, job: TrainingRequest, flaws: Sequence[Flaw]) -> None:
    for flaw in flaws:
        line = f"{flaw.severity}: {Mistake(flaw.where, flaw.what, flaw.would_be_right)}"
        session.print(shown(line, _STYLES[flaw.severity]), wrap=False)
    for note in job.notes:
        session.print(shown(f"note: {note}"), wrap=False)
    if flaws:
        session.print(shown(f"{job.where}: {count(len(flaws), 'finding')}"), wrap=False)
    elif job.uses_debugger:
        session.print(shown(f"{job.where}: nothing wrong"), wrap=False)


COMMAND = Command("check-job", check_job, 12)
