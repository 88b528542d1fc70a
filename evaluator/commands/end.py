"""end: writes the end marker of a trial."""

from __future__ import annotations

from typing import Annotated

import typer

from evaluator.commands.base import Command, session_of, shown
from evaluator.errors import InputError, Mistake
from evaluator.formats.key_names import END_MARKER
from evaluator.outcome import NOTHING_FOUND
from evaluator.storage import open_store
from evaluator.trial.opening import runs_below


def end(
    context: typer.Context,
    trial: Annotated[
        str, typer.Argument(metavar="TRIAL", show_default=False, help="The folder that one training run saved under.")
    ],
) -> int:
    """Write the end marker, which tells everybody who follows the trial that nothing more will come.

    Outside SageMaker nobody else does it.
    """
    store = open_store(trial)
    problem = store.root_problem()
    if problem is not None:
        raise InputError([Mistake(trial, problem, "the folder of a trial")])
    below = runs_below(store)
    if below:
        # a marker beside them would make this folder look like a trial itself
        listed = ", ".join(f"{trial.rstrip('/')}/{folder}" for folder in below)
        raise InputError([Mistake(trial, "is not a trial, but holds some", f"name one of them: {listed}")])
    there = store.stat(END_MARKER) is not None
    if not there:
        store.write(END_MARKER, b"")
    did = "was there already" if there else "is written"
    session_of(context).print(shown(f"{trial}: the end marker {END_MARKER} {did}"), wrap=False)
    return NOTHING_FOUND


COMMAND = Command("end", end, 8)
