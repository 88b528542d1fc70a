"""Formats of saved runs: bytes in a store become steps, names and values; one module per format, found by walking."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from evaluator.sources.base import Source
from evaluator.storage.base import Store


def source_types() -> Iterator[type[Source]]:
    """Every format there is, in the order in which they are asked: a module here may hold one, as SOURCE."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = (getattr(importlib.import_module(f"{__name__}.{name}"), "SOURCE", None) for name in names)
    yield from sorted((one for one in found if one is not None), key=lambda one: one.rank)


def detect(store: Store, name: str | None = None) -> Source | None:
    """The run that is saved at the root of the store, or None; in whatever format, or only in the one of this name."""
    for source in source_types():
        if name in {None, source.name} and source.detect(store):
            return source(store)
    return None
