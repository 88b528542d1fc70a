"""support: what SageMaker Debugger can do in distributed training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from evaluator.commands.base import Command, JsonOption, Session, session_of, shown
from evaluator.errors import InputError, Mistake
from evaluator.sagemaker.distributed import FRAMEWORKS, NO_OPERATIONS, STRATEGIES, Support, canonical, support_of

SUPPORTED, NOT_SUPPORTED, NOT_SAID = 0, 1, 3
"""Exit codes of a verdict, as of the commands that check; 2 is wrong input. A table is always 0."""

_FEATURES = {
    "bottlenecks": "system bottlenecks",
    "profiling": "framework profiling",
    "tensors": "output tensors",
}


def support(
    context: typer.Context,
    framework: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"One of {', '.join(FRAMEWORKS)}.", show_default=False)
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"One of {', '.join(STRATEGIES)}.", show_default=False)
    ] = None,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", metavar="", help="SageMaker's checkpoints are switched on too.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Show what SageMaker Debugger supports in distributed training, or say whether one combination is supported.

    With --framework and --strategy the exit code is the verdict on output tensors, which rules need:
    0 supported, 1 not supported, 3 AWS says nothing about it.
    """
    session = session_of(context)
    mistakes: list[Mistake] = []
    which = _meant(framework, FRAMEWORKS, "--framework", mistakes)
    how = _meant(strategy, STRATEGIES, "--strategy", mistakes)
    if mistakes:
        raise InputError(mistakes)
    rows = support_of(which, how, checkpoints=checkpoints)
    # whatever the framework is, these two are not supported
    one = len(rows) <= 1 and how is not None and (which is not None or not any(row.framework for row in rows))
    supported = bool(rows) and rows[0].tensors
    if as_json:
        verdict = None if not one or not rows else supported
        session.print_json(_document(rows, verdict, checkpoints=checkpoints))
    elif one:
        _say(session, rows, which, how)
    else:
        _print(session, rows)
    if not one:
        return SUPPORTED
    return NOT_SAID if not rows else SUPPORTED if supported else NOT_SUPPORTED


def _meant(word: str | None, known: Sequence[str] | Any, where: str, mistakes: list[Mistake]) -> str | None:
    if word is None:
        return None
    found = canonical(word, known, where)
    if isinstance(found, Mistake):
        mistakes.append(found)
        return None
    return found


def _document(rows: Sequence[Support], verdict: bool | None, *, checkpoints: bool) -> dict[str, Any]:
    return {
        "schema": 1,
        "checkpoints": checkpoints,
        "supported": verdict,
        "combinations": [
            {
                "strategy": row.strategy,
                "framework": row.framework,
                "system_bottlenecks": row.bottlenecks,
                "framework_profiling": row.profiling,
                "output_tensors": row.tensors,
                "reasons": list(row.why),
            }
            for row in rows
        ],
        "notes": [NO_OPERATIONS],
    }


def _say(session: Session, rows: Sequence[Support], which: str | None, how: str | None) -> None:
    if not rows:
        named = f"{STRATEGIES[how or '']} with {FRAMEWORKS[which or '']}"
        session.print(shown(f"{named}: AWS's list of what Debugger supports does not have it"), wrap=False)
        return
    row = rows[0]
    framework = FRAMEWORKS[which] if which is not None else "any framework"
    works = [words for field, words in _FEATURES.items() if getattr(row, field)]
    verdict = f"supported: {', '.join(works)}" if row.tensors else "not supported"
    session.print(shown(f"{STRATEGIES[row.strategy]} with {framework}: {verdict}"), wrap=False)
    for reason in row.why:
        session.print(shown(f"not {'all' if row.tensors else 'supported'}: {reason}"), wrap=False)


def _print(session: Session, rows: Sequence[Support]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("strategy", "framework", *_FEATURES.values()):
        table.add_column(column, overflow="fold")
    reasons: list[str] = []
    for row in rows:
        marks = []
        for reason in row.why:
            if reason not in reasons:
                reasons.append(reason)
            marks.append(f"[{reasons.index(reason) + 1}]")
        framework = FRAMEWORKS[row.framework] if row.framework else "any"
        cells = ["yes" if getattr(row, field) else f"no {' '.join(marks)}".strip() for field in _FEATURES]
        table.add_row(shown(STRATEGIES[row.strategy]), shown(framework), *map(shown, cells))
    session.print(table)
    for number, reason in enumerate(reasons, 1):
        session.print(shown(f"[{number}] {reason}"))
    session.print(Text(), shown(f"In all of them: {NO_OPERATIONS}."))


COMMAND = Command("support", support, 11)
