"""schema: the JSON schemas of the files that a job writes."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from evaluator import status
from evaluator.commands.base import Command, session_of
from evaluator.errors import InputError, Mistake, did_you_mean
from evaluator.outcome import NOTHING_FOUND


def schema(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="status|finding", show_default=False, help="Which of the two.")],
) -> int:
    """Print the JSON schema of status.json, or of a line of findings.jsonl."""
    kinds: tuple[Literal["status", "finding"], ...] = ("status", "finding")
    for known in kinds:
        if kind.lower() == known:
            session_of(context).print_json(status.schema(known))
            return NOTHING_FOUND
    raise InputError([Mistake("schema", f"{kind!r} has none", did_you_mean(kind, kinds, "expected one of"))])


COMMAND = Command("schema", schema, 7)
