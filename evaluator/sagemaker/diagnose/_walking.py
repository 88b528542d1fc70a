"""Finds the checks, and makes them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from evaluator.sagemaker.diagnose._check import Check, Result, Sign
from evaluator.sagemaker.diagnose._evidence import Evidence


@cache
def checks() -> tuple[Check, ...]:
    """The `CHECK` of every module in this package, in their order; those with an underscore hold none."""
    found = []
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not module.name.startswith("_"):
            loaded = importlib.import_module(f"{__package__}.{module.name}")
            found.append(replace(loaded.CHECK, documentation=loaded.__doc__ or ""))
    return tuple(sorted(found, key=lambda one: (one.place, one.name)))


def signs() -> Mapping[str, tuple[Sign, ...]]:
    """All lines that checks look for in logs, by the names that they give them."""
    return {name: several for check in checks() for name, several in check.signs.items()}


def diagnose(evidence: Evidence) -> list[tuple[Check, Result]]:
    """Each check and what it comes to."""
    return [(check, check.check(evidence)) for check in checks()]
