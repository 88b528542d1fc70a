"""What rule files import from `smdebug.analysis.utils`.

Source:
    smdebug-api.md, section 8. Unlike the reference, leaving a block brings back what was before, after an error too
    (smdebug-review.md, R6 and R7).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from evaluator.user_rules.exceptions import SMDebugTypeError


class Refreshing(Protocol):
    """What can be told to look for new steps by itself, or not to."""

    dynamic_refresh: bool


Trials = TypeVar("Trials", bound="Refreshing | list[Any]")


@contextmanager
def no_refresh(trials: Trials) -> Iterator[Trials]:
    """Within the block one trial, or a list of them, shows what was known before and nothing newer."""
    with _refreshing(trials, wanted=False):
        yield trials


@contextmanager
def refresh(trials: Trials) -> Iterator[Trials]:
    """Within the block one trial, or a list of them, looks for new steps."""
    with _refreshing(trials, wanted=True):
        yield trials


@contextmanager
def _refreshing(trials: Refreshing | list[Any], *, wanted: bool) -> Iterator[None]:
    several = list(trials) if isinstance(trials, list | tuple) else [trials]
    before = [trial.dynamic_refresh for trial in several]
    try:
        for trial in several:
            trial.dynamic_refresh = wanted
        yield
    finally:
        for trial, former in zip(several, before, strict=True):
            trial.dynamic_refresh = former


def parse_list_from_str(arg: str | list[str] | None, delimiter: str = ",") -> list[str]:
    """The parts of a text; blanks around them stay. Nothing gives an empty list."""
    if not arg:
        return []
    if isinstance(arg, str):
        return arg.split(delimiter)
    if isinstance(arg, list):
        return arg
    raise SMDebugTypeError(f"a list or a text would be right, not {type(arg).__name__}")


def parse_bool(arg: bool | str | None, default: bool) -> bool:
    """A truth value from the text of a parameter."""
    if arg is None:
        return default
    if arg in {True, "True", "true"}:
        return True
    if arg in {False, "False", "false"}:
        return False
    raise ValueError(f"boolean argument expected, but found {arg}")
