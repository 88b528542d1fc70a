"""Parses and encodes collections files: named sets of tensors, and how many workers save.

Source:
    saved format of smdebug 1.0.34, section 2 (core/collection_manager.py:97-110).
    Unlike the reference, one bad collection does not make the whole file unreadable.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluator.errors import FormatError
from evaluator.formats.index_file import json_object, short, whole_number
from evaluator.formats.pattern_weight import weight

LONGEST_REGEX = 1000
"""Characters of a pattern in a file; ours, those of Debugger's hooks have less than 50."""

MOST_REGEXES = 10_000
"""Patterns in a file, each of which is compiled once to see whether it is valid; ours."""

MOST_WEIGHT_OF_FILE = 300_000
"""Weight of all patterns of a file together; ours, compiling as much takes seconds."""

MOST_PROBLEMS = 100
"""Problems of one file that are told one by one; ours."""


@dataclass(frozen=True, slots=True)
class SavedCollection:
    """A named set of tensors: by their names, and by patterns that are searched in a name."""

    name: str
    include_regex: tuple[str, ...] = ()
    tensor_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CollectionFile:
    """The content of one worker's collections file, and what in it was left out and why."""

    collections: dict[str, SavedCollection]
    num_workers: int | None
    problems: tuple[str, ...]


def parse_collections(data: bytes, where: str) -> CollectionFile:
    """The content of a collections file; what is wrong in a part of it becomes a problem, and the rest is used.

    Raises:
        Truncated: the file is empty or cut; the writer may still be writing.
        FormatError: it is no object with an object of collections.
    """
    content = json_object(data, where)
    saved = content.get("collections")
    if not isinstance(saved, dict):
        raise FormatError(where, f"'collections' is {short(saved)}", "an object of collections would be right")
    problems: list[str] = []
    found: dict[str, SavedCollection] = {}
    regexes = _Patterns()
    for key, entry in saved.items():
        place = f"{where}: collection {short(key)}"
        if not isinstance(entry, dict):
            problems.append(f"{place}: it is {short(entry)}; an object would be right")
            continue
        # The name inside is the one that counts, as for the reference.
        name = entry.get("name", key)
        if not isinstance(name, str):
            problems.append(f"{place}: 'name' is {short(name)}; a text would be right")
            name = key
        if name in found:
            problems.append(f"{place}: there are two collections {short(name)}; the last one is used")
        patterns = _regexes(_texts(entry, "include_regex", place, problems), regexes, place, problems)
        found[name] = SavedCollection(name, patterns, _texts(entry, "tensor_names", place, problems))
    num_workers = _num_workers(content.get("_meta"), where, problems)
    if len(problems) > MOST_PROBLEMS:
        problems[MOST_PROBLEMS:] = [f"{where}: {len(problems) - MOST_PROBLEMS} more problems"]
    return CollectionFile(found, num_workers, tuple(problems))


def encode_collections(collections: Mapping[str, SavedCollection], num_workers: int) -> bytes:
    """A collections file that the reference can read; what it holds besides our fields gets its defaults."""
    saved = {
        name: {
            "name": name,
            "include_regex": list(collection.include_regex),
            "tensor_names": sorted(collection.tensor_names),
            "reduction_config": None,
            "save_config": None,
            "save_histogram": True,
        }
        for name, collection in collections.items()
    }
    return json.dumps({"collections": saved, "_meta": {"num_workers": num_workers}}).encode()


def _texts(entry: dict[str, Any], key: str, place: str, problems: list[str]) -> tuple[str, ...]:
    """The texts of a list; the reference writes false or null for none."""
    values = entry.get(key) or []
    if not isinstance(values, list):
        problems.append(f"{place}: {key!r} is {short(values)}; a list of texts would be right")
        return ()
    wrong = [value for value in values if not isinstance(value, str)]
    if wrong:
        problems.append(f"{place}: {len(wrong)} items of {key!r} are no texts, such as {short(wrong[0])}")
    return tuple(value for value in values if isinstance(value, str))


class _Patterns:
    """The patterns of a file that were looked at, each once."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        """Pattern -> why it cannot be used; empty when it can."""
        self._weight = 0

    def problem(self, pattern: str) -> str:
        """Why a pattern cannot be used; empty when it can."""
        found = self.known.get(pattern)
        if found is None:
            found = self.known[pattern] = self._look_at(pattern)
        return found

    def _look_at(self, pattern: str) -> str:
        if len(pattern) > LONGEST_REGEX:
            return f"it has {len(pattern)} characters, at most {LONGEST_REGEX} are allowed"
        try:
            self._weight += weight(pattern)
            if self._weight > MOST_WEIGHT_OF_FILE:
                return "the patterns of the file would take too much memory or time"
            # A pattern of somebody else's file must not print warnings, nor fail where warnings are errors.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(pattern)
        except (re.error, OverflowError, RecursionError, ValueError) as error:
            return str(error) or type(error).__name__
        return ""


def _regexes(patterns: tuple[str, ...], looked_at: _Patterns, place: str, problems: list[str]) -> tuple[str, ...]:
    """The patterns that can be used."""
    good = []
    for pattern in patterns:
        if pattern not in looked_at.known and len(looked_at.known) >= MOST_REGEXES:
            problems.append(f"{place}: there are too many patterns; at most {MOST_REGEXES} in a file")
            break
        if problem := looked_at.problem(pattern):
            problems.append(f"{place}: pattern {short(pattern)} is left out: {problem}")
        else:
            good.append(pattern)
    return tuple(good)


def _num_workers(meta: object, where: str, problems: list[str]) -> int | None:
    """How many workers will save; None when the file does not tell."""
    value = meta.get("num_workers") if isinstance(meta, dict) else None
    number = whole_number(value)
    if number is None or number < 1:
        problems.append(f"{where}: 'num_workers' is {short(value)}; a number of 1 or more would be right")
        return None
    return number
