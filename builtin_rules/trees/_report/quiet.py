"""Keeps matplotlib from talking: where it keeps its font list, or that a glyph is missing, is no news for a job."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """No warning, and no line on standard error."""
    log = logging.getLogger("matplotlib")
    level = log.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            log.setLevel(level)
