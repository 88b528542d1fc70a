"""How much memory and time a pattern of somebody else's file takes before it is searched for at all.

The packages that compile patterns write out what has to occur several times: `(?:a{50000}){50000}` is a pattern of
twenty characters that takes all memory there is. So a pattern is weighed as it was written, before it is compiled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from re import _parser  # type: ignore[attr-defined] # the standard library's own reading of a pattern; nothing else has it
from typing import Any

MOST_WEIGHT = 2_000
"""Of one pattern beyond its own length; ours: those of Debugger's hooks weigh less than 100, and a unit of weight takes
about 1 KB."""

_RANGE = 40
"""Characters of a range that weigh as much as one: a set takes time for each of them when case is ignored."""

_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})


def weight(pattern: str) -> int:
    """About how many parts the compiled pattern has, each occurrence that must be there counted.

    Raises:
        OverflowError: it is too heavy to be compiled.
        re.error, RecursionError, ValueError: it is no pattern.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        total = _weigh(_parser.parse(pattern))
    if total > MOST_WEIGHT + 2 * len(pattern):
        raise OverflowError("it would take too much memory or time")
    return total


def _weigh(parts: Any) -> int:
    total = 1
    for operation, argument in parts:
        if str(operation) in _REPEATS:
            least, most, inner = argument
            # what may occur once more is written out once more
            total += _weigh(inner) * (int(least) + (most > least))
        elif str(operation) == "RANGE":
            # beyond the 65,536 characters of the basic plane nothing is looked at one by one
            total += 1 + min(argument[1] - argument[0], 1 << 16) // _RANGE
        else:
            total += 1 + sum(map(_weigh, _inside(argument)))
    return total


def _inside(argument: Any) -> Iterator[Any]:
    """The parts within an argument: branches, groups, sets."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, list):
        if all(isinstance(one, tuple) and len(one) == 2 for one in argument):
            yield argument
        else:
            for one in argument:
                yield from _inside(one)
    elif isinstance(argument, tuple):
        for one in argument:
            yield from _inside(one)
