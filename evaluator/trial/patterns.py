"""Searching patterns in names, both of which somebody else wrote: a search that takes too long is given up.

A pattern like `^(a|a)*$` takes time that doubles with each letter of a name, so that one line in a collections file
could hold up a job for ever. The package `regex` understands the patterns of Python's `re`, lookaheads included, and
can stop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import regex

from evaluator.formats.pattern_weight import weight

_NO_COUNT = re.compile(r"(?<!\\)\{(?!\d*,?\d*\})")
"""A brace that is itself for `re`, where `regex` may see the number of allowed mistakes."""

SECONDS = 0.1
"""For one pattern in one name; ours: a name of 1,000 characters takes the patterns of Debugger's hooks microseconds."""

MOST_DROPPED = 20
"""After so many patterns that took too long no new one is tried, so that many cannot do what one may not."""

KEPT = 10_000
"""Compiled patterns that are kept at a time."""

KEPT_WEIGHT = 200_000
"""What these may weigh together: about as many KB."""


class Patterns:
    """Compiled patterns, and those that were dropped."""

    def __init__(self) -> None:
        """No pattern was searched for yet."""
        self.dropped: dict[str, str] = {}
        """Pattern -> why it is searched for no more."""
        self.untried: set[str] = set()
        """Patterns that came after too many had been dropped (the first few)."""
        self._compiled: dict[str, regex.Pattern[str]] = {}
        self._weight = 0

    def found(self, pattern: str, name: str) -> bool:
        """Whether the pattern is found in the name, as `re.search` finds it; never for one that was dropped."""
        if pattern in self.dropped:
            return False
        compiled = self._compiled.get(pattern)
        try:
            if compiled is None:
                compiled = self._compile(pattern)
            return compiled is not None and compiled.search(name, timeout=SECONDS) is not None
        except TimeoutError:
            self.dropped[pattern] = f"takes more than {SECONDS} s for one name, so it selects nothing"
        except (regex.error, OverflowError, RecursionError, MemoryError, ValueError, re.error) as error:
            self.dropped[pattern] = f"cannot be searched for: {error or type(error).__name__}"
        return False

    def any_found(self, patterns: Iterable[str], name: str) -> bool:
        """Whether one of them is found in the name."""
        return any(self.found(pattern, name) for pattern in patterns)

    def _compile(self, pattern: str) -> regex.Pattern[str] | None:
        if len(self.dropped) >= MOST_DROPPED:
            if len(self.untried) < KEPT:
                self.untried.add(pattern)
            return None
        heavy = weight(pattern)
        if len(self._compiled) >= KEPT or self._weight + heavy > KEPT_WEIGHT:
            self._compiled.clear()
            self._weight = 0
        self._weight += heavy
        # what only `regex` has a meaning for: fuzzy matches, classes of POSIX
        plain = _NO_COUNT.sub(r"\\{", pattern).replace("[[:", r"[\[:")
        compiled = self._compiled[pattern] = regex.compile(plain, regex.VERSION0, cache_pattern=False)
        return compiled
