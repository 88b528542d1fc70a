"""The tensor of another worker or run that is the same one under another wrapper: `module.fc.weight` is `fc.weight`."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from evaluator.names_of_parameters import plain_name
from evaluator.sources.base import Layout

_plain: WeakKeyDictionary[Layout, Mapping[str, str]] = WeakKeyDictionary()
"""Layout -> plain name -> the one tensor that it belongs to; made only where a name has no partner as it stands."""


def counterpart(name: str, mine: Layout, theirs: Layout) -> str | None:
    """The tensor there that differs from this one by parts of wrappers only.

    None where there is none, or where either side has several that it could be.
    """
    plain = plain_name(name)
    if _by_plain_name(mine).get(plain) != name:
        return None
    return _by_plain_name(theirs).get(plain)


def _by_plain_name(layout: Layout) -> Mapping[str, str]:
    known = _plain.get(layout)
    if known is None:
        found: dict[str, str | None] = {}
        for name in layout.at:
            plain = plain_name(name)
            found[plain] = None if plain in found else name
        known = _plain[layout] = {plain: name for plain, name in found.items() if name is not None}
    return known
