"""new-rule: writes a rule file that passes its own examples, to begin with."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from evaluator.commands.base import Command, session_of, shown
from evaluator.errors import InputError, Mistake
from evaluator.outcome import NOTHING_FOUND

NAME = "TemplateName"
"""Stands for the name of the rule in the templates."""

TAKEN = ("evaluator", "builtin_rules", "smdebug")
"""Modules that the written file imports, or that are imported with these: it must not be called so."""

_CAMEL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def new_rule(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", show_default=False, help="The bad pattern that the rule finds, in CamelCase."),
    ],
    as_class: Annotated[
        bool, typer.Option("--class", metavar="", help="A class as smdebug has them, instead of a declared rule.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write (default: the name in snake_case, .py).")
    ] = None,
) -> int:
    """Write a rule file that passes its own examples, for you to change.

    It has parameters, a condition, an example that fires and one that stays quiet.
    """
    session = session_of(context)
    snake = _BORDER.sub("_", name).lower()
    path = output if output is not None else Path(f"{snake}.py")
    mistakes = _mistakes(name, path)
    if mistakes:
        raise InputError(mistakes)
    kind = "class" if as_class else "declared"
    text = files("evaluator").joinpath("templates", f"{kind}_rule.py.txt").read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text.replace(NAME, name))
    except FileExistsError:
        right = "nothing is overwritten; name another file with --output"
        raise InputError([Mistake("new-rule", f"{str(path)!r} is there already", right)]) from None
    except OSError as error:
        right = "name a file in a folder that is there and can be written"
        raise InputError([Mistake("new-rule", f"{str(path)!r} cannot be written: {error.strerror}", right)]) from None
    session.print(
        shown(f"{path} is written; next:"),
        shown(f"  rule-evaluator test {path}"),
        shown(f"  rule-evaluator run TRIAL --rule-file {path}"),
        wrap=False,
    )
    return NOTHING_FOUND


def _mistakes(name: str, path: Path) -> list[Mistake]:
    mistakes = []
    if not _CAMEL_CASE.fullmatch(name) or name in {"None", "True", "False"}:
        right = "name the bad pattern that it finds, for example GradientTooLarge"
        mistakes.append(Mistake("new-rule", f"rule name {name!r} is not CamelCase", right))
    if path.suffix != ".py":
        mistakes.append(Mistake("new-rule", f"{str(path)!r} does not end in .py", "give the name of a Python file"))
    elif path.stem in TAKEN:
        right = "give another name with --output"
        mistakes.append(Mistake("new-rule", f"{str(path)!r} would hide the package {path.stem!r}", right))
    return mistakes


COMMAND = Command("new-rule", new_rule, 5)
