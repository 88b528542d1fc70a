"""The commands of the program, one module each, found by walking: a new command is one new file."""

from __future__ import annotations

import importlib
import pkgutil

from evaluator.commands.base import Command


def commands() -> list[Command]:
    """The `COMMAND` of every module in this package that has one, in the order in which help shows them."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found = [getattr(module, "COMMAND", None) for module in modules]
    return sorted((one for one in found if isinstance(one, Command)), key=lambda one: (one.place, one.name))
