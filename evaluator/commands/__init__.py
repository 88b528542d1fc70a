"""The commands of the program, one module each, found by walking: a new command is one new file."""

from __future__ import annotations

import importlib
import pkgutil
import re
from importlib.util import find_spec

from evaluator.commands.base import Command


def commands() -> list[Command]:
    """The `COMMAND` of every module in this package that has one, in the order in which help shows them."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found = [getattr(module, "COMMAND", None) for module in modules]
    return sorted((one for one in found if isinstance(one, Command)), key=lambda one: (one.place, one.name))


def commands_for(arguments: list[str]) -> list[Command]:
    """The one command that the arguments begin with, where its module is called like it; else all of them.

    Importing the others would take longer than most of them run.
    """
    name = arguments[0] if arguments else ""
    module = f"{__name__}.{name.replace('-', '_')}"
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name) or find_spec(module) is None:
        return commands()
    found = getattr(importlib.import_module(module), "COMMAND", None)
    return [found] if isinstance(found, Command) and found.name == name else commands()
