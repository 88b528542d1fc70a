"""How near a word is to known ones, to tell a misspelled variable from one of somebody else's."""

from __future__ import annotations

from collections.abc import Iterable


def misspelled(variables: Iterable[str], known: Iterable[str], where: str) -> list[str]:
    """A note for each variable that is no known name and looks like one."""
    names = sorted(known)
    return [
        f"{where}: variable {variable!r} is not used; did you mean {close!r}?"
        for variable in sorted(variables)
        if variable not in names and (close := within_two_edits(variable, names))
    ]


def within_two_edits(variable: str, known: Iterable[str]) -> str | None:
    """The known name that `variable` is a misspelling of; short names must be nearer, or everything is near them."""
    near = [(distance, name) for name in known if (distance := edits(variable, name)) <= 2 and 2 * distance < len(name)]
    return min(near)[1] if near else None


def edits(first: str, second: str) -> int:
    """How many letters to insert, delete or replace make one word of the other; 3 stands for more than two."""
    if abs(len(first) - len(second)) > 2:
        return 3
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        previous, row[0] = row[0], i
        for j, other in enumerate(second, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (letter != other))
    return min(row[-1], 3)
