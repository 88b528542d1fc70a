"""Bytes under keys: one module per backend, named after its URI scheme."""

from __future__ import annotations

import importlib
import pkgutil
import re
from importlib.util import find_spec

from evaluator.clock import Clock
from evaluator.errors import InputError, Mistake, did_you_mean
from evaluator.storage.base import Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def open_store(uri: str, clock: Clock | None = None) -> Store:
    """The store at `uri`; a path without a scheme is a local folder.

    The module of this package that is named after the scheme does it, by its own `open_store(uri, clock)`.
    A store that has to wait before it asks again does so by the clock; without one it is the machine's.

    Raises:
        InputError: the URI is empty, or no backend is named after its scheme.
    """
    match = _SCHEME.match(uri)
    scheme = match[1].lower() if match else "file"
    if not uri or "\0" in uri:
        raise InputError([Mistake(repr(uri), "is not a path", "give a folder, or a URI")])
    # base is the interface; what is not a plain name cannot be a module of this package
    if scheme == "base" or not scheme.isidentifier() or find_spec(f"{__name__}.{scheme}") is None:
        what = f"storage {f'{scheme}://'!r} is not part of this version"
        raise InputError([Mistake(repr(uri), what, did_you_mean(scheme, _known(), "known"))])
    store: Store = importlib.import_module(f"{__name__}.{scheme}").open_store(uri, clock)
    return store


def _known() -> list[str]:
    """The schemes that have a module here; modules with an underscore are parts of others."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    return [name for name in names if name != "base" and not name.startswith("_")]
