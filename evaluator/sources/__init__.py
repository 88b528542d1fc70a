"""Formats of saved runs: bytes in a store become steps, names and values; one module per format, found by walking."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from evaluator.sources.base import Source
from evaluator.storage.base import Store


def source_types() -> Iterator[type[Source]]:
    """Every format there is: each module of this package may hold one, as SOURCE."""
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        found = getattr(importlib.import_module(f"{__name__}.{module.name}"), "SOURCE", None)
        if found is not None:
            yield found


def detect(store: Store) -> Source | None:
    """The run that is saved at the root of the store, in whatever format, or None."""
    for source in source_types():
        if source.detect(store):
            return source(store)
    return None
