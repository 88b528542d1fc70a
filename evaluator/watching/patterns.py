"""Folders by a pattern, such as `s3://runs/*/debug-output`: what matches now, with few listings.

A folder is listed where a part of the pattern has wildcards, and never below that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from evaluator.clock import Clock
from evaluator.errors import InputError, Mistake
from evaluator.storage import open_store
from evaluator.storage.base import Requests, Store

_WILD = re.compile(r"[*?\[]")
_REMOTE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://[^/]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Match:
    """A path that matches.

    Args:
        name: what tells it from the others: the parts of its path that stand for wildcards.
        uri: the path itself, as relative or absolute as the pattern is.
    """

    name: str
    uri: str


class Pattern:
    """A path or URI in which any part may have wildcards, as shells have them: `*`, `?` and `[...]`.

    A wildcard never stands for a "/", nor for the dot at the beginning of a name.
    """

    def __init__(self, text: str, clock: Clock | None = None) -> None:
        """Look at nothing yet.

        Raises:
            InputError: it is no such path.
        """
        self.text = text
        self._clock = clock
        if text[:7].lower() == "file://":
            # names in folders are not encoded, so the path itself is gone by
            text = open_store(text).uri
        remote = _REMOTE.match(text)
        root = remote[0] if remote else "/" if text.startswith("/") else ""
        if remote and has_wildcard(root):
            raise InputError([Mistake(self.text, "has a wildcard in the name of the bucket", "name one bucket")])
        parts = [part for part in text[len(root) :].split("/") if part]
        first = next((number for number, part in enumerate(parts) if has_wildcard(part)), len(parts))
        self._rest = parts[first:]
        if ".." in self._rest:
            raise InputError([Mistake(self.text, "has '..' after a wildcard", "give the path without it")])
        if "**" in self._rest:
            raise InputError([Mistake(self.text, "'**' is not known", "give one '*' for each level of folders")])
        self._base = _joined(root, "/".join(parts[:first]))

    @property
    def wild(self) -> bool:
        """Whether it has wildcards; without one it is a path."""
        return bool(self._rest)

    @property
    def requests(self) -> Requests:
        """How often was asked for what matches."""
        return self._store.requests

    @property
    def refused(self) -> Mapping[str, str]:
        """Path -> why it was left out: links that lead elsewhere, say."""
        return {_joined(self._base, key): why for key, why in self._store.refused.items()}

    def problem(self) -> str | None:
        """Why nothing can match: what is before the first wildcard is not there; None where it may be."""
        problem = self._store.root_problem()
        return None if problem is None else f"{self._base or '.'} {problem}"

    @cached_property
    def _store(self) -> Store:
        return open_store(self._base or ".", self._clock)

    def matches(self) -> Iterator[Match]:
        """What matches now, in the order of names; a path after the last wildcard need not be there.

        Raises:
            StorageUnavailable: it cannot be listed.
        """
        if not self.wild:
            yield Match(self._base.rstrip("/").rpartition("/")[2] or self._base, self._base)
            return
        found: list[tuple[str, tuple[str, ...]]] = [("", ())]
        for number, part in enumerate(self._rest):
            if has_wildcard(part):
                last = number == len(self._rest) - 1
                found = [
                    (f"{folder}/{name}".lstrip("/"), (*names, name))
                    for folder, names in found
                    for name in self._names(folder, part, files=last and "." in part)
                ]
            else:
                found = [(f"{folder}/{part}".lstrip("/"), names) for folder, names in found]
        for folder, names in found:
            yield Match("/".join(names), _joined(self._base, folder))

    def _names(self, folder: str, part: str, *, files: bool) -> list[str]:
        """What is in a folder and matches; files only for a name with an ending, since a log may be a file."""
        names = self._store.folders(folder)
        if files:
            names = sorted({*names, *(entry.key.rpartition("/")[2] for entry in self._store.files(folder))})
        return [name for name in names if fnmatchcase(name, part) and name.startswith(".") <= part.startswith(".")]


def has_wildcard(text: str) -> bool:
    """Whether a text has a character that a shell would take for a wildcard."""
    return _WILD.search(text) is not None


def _joined(root: str, rest: str) -> str:
    if not root or root.endswith("/") or not rest:
        return root + rest
    return f"{root}/{rest}"
