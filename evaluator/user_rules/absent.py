"""What rule files may ask for but cannot have in this version, ending with an error that says so."""

from __future__ import annotations

from typing import NoReturn

from evaluator.user_rules.exceptions import SMDebugNotImplementedError


def absent(what: str, why: str) -> NoReturn:
    """Say what is not there."""
    raise SMDebugNotImplementedError(f"{what}: {why}")
