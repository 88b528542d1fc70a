"""What the names in a log mean, as a configuration file says it: `[names.collections]` and `[names.modes]`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evaluator.errors import Mistake, did_you_mean
from evaluator.modes import Mode
from evaluator.scalar_names import Naming

PARTS = ("collections", "modes")


def read_naming(table: Mapping[str, object], where: str) -> tuple[Naming, list[Mistake]]:
    """The naming, and everything that is wrong with it."""
    mistakes = [Mistake(where, f"{key!r} is not known", did_you_mean(key, PARTS)) for key in table if key not in PARTS]
    collections = _patterns(table.get("collections", {}), f"{where}: collections", mistakes)
    modes: dict[Mode, tuple[str, ...]] = {}
    for name, patterns in _patterns(table.get("modes", {}), f"{where}: modes", mistakes).items():
        mode = Mode.__members__.get(name.upper())
        if mode is None:
            right = did_you_mean(name.upper(), Mode.__members__)
            mistakes.append(Mistake(f"{where}: modes", f"{name!r} is no mode", right))
        else:
            modes[mode] = patterns
    return Naming(collections, modes), mistakes


def _patterns(table: object, where: str, mistakes: list[Mistake]) -> dict[str, tuple[str, ...]]:
    """Name -> patterns, of a table whose values are patterns or lists of them."""
    if not isinstance(table, Mapping):
        mistakes.append(Mistake(where, f"is a {type(table).__name__}", "expected names with patterns"))
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for name, value in table.items():
        patterns = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else ()
        problem = _problem(patterns)
        if problem is None:
            found[str(name)] = patterns
        else:
            mistakes.append(Mistake(where, f"{name!r} is {value!r}", f"expected regular expressions{problem}"))
    return found


def _problem(patterns: tuple[object, ...]) -> str | None:
    """Why these are no patterns, if they are none."""
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        return ""
    try:
        for pattern in patterns:
            re.compile(str(pattern))
    except (re.error, OverflowError, RecursionError) as error:
        return f": {error}"
    return None
