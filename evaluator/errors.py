"""Every error of the program, as one tree.

    EvaluatorError                 says where, what is wrong, and what would be right
    ├── InputError                 the user fixes it: arguments, configuration, paths; holds every mistake at once
    ├── FormatError                bytes are not what the format says; the reader counts it and goes on
    │   └── Truncated              bytes end too early: the writer may still be writing
    ├── StorageError               the store could not do what was asked
    │   ├── KeyMissing             nothing is stored under the key (any more)
    │   ├── KeyRefused             the key would leave the store's root, which is never followed, or may not be read
    │   └── StorageUnavailable     the store did not answer or refused; worth another try
    └── OutputError                an output could not be written
        └── OutputTaken            another evaluator writes there

What is normal while a run is going on ("not saved yet", "condition met") is a value, not an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that a user has to put right."""

    where: str
    what: str
    would_be_right: str = ""

    def __str__(self) -> str:
        """One line: where, what, and what would be right where that is known."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}; {self.would_be_right}" if self.would_be_right else text


class EvaluatorError(Exception):
    """The base of all errors that this program raises on purpose."""

    def __init__(self, where: str, what: str, would_be_right: str = "") -> None:
        """Keep the three parts apart, so that JSON output can show them apart."""
        self.mistake = Mistake(where, what, would_be_right)
        super().__init__(str(self.mistake))

    def without(self, key: str) -> str:
        """The message for a reader who sees anyway which file it is about."""
        where = self.mistake.where
        if where == key or where.endswith(f"/{key}"):
            return str(Mistake("", self.mistake.what, self.mistake.would_be_right))
        return str(self).removeprefix(f"{key}: ")


class InputError(EvaluatorError):
    """The input is wrong; `mistakes` lists everything that was found, not only the first."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        """Hold all mistakes; the message has one line for each."""
        if not mistakes:
            raise ValueError("an InputError needs at least one mistake")
        self.mistakes = tuple(mistakes)
        super().__init__(mistakes[0].where, mistakes[0].what, mistakes[0].would_be_right)
        self.args = ("\n".join(str(mistake) for mistake in mistakes),)


class FormatError(EvaluatorError):
    """Bytes are not what the format says."""


class Truncated(FormatError):
    """Bytes end before what they announce."""


class StorageError(EvaluatorError):
    """The store could not do what was asked."""


class KeyMissing(StorageError, FileNotFoundError):
    """Nothing is stored under the key."""


class KeyRefused(StorageError):
    """The key would leave the store's root, or may not be read; other keys may."""


class StorageUnavailable(StorageError):
    """The store did not answer, or refused."""


class OutputError(EvaluatorError):
    """An output could not be written."""


class OutputTaken(OutputError):
    """Another evaluator writes there."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names that look most like `name`, best first; none when nothing is close."""
    candidates = list(dict.fromkeys(known))
    lowered: dict[str, str] = {}
    for candidate in candidates:
        lowered.setdefault(candidate.lower(), candidate)
    close = difflib.get_close_matches(name.lower(), list(lowered), n=count, cutoff=0.5)
    return [lowered[match] for match in close]


def did_you_mean(name: str, known: Iterable[str], label: str = "known") -> str:
    """The part of a message after the semicolon: nearest names, then all of them (at most 20)."""
    candidates = sorted(set(known))
    close = nearest(name, candidates, 1)
    listed = ", ".join(candidates[:20]) + (f", ... ({len(candidates)} in all)" if len(candidates) > 20 else "")
    guess = f"did you mean {close[0]!r}? " if close else ""
    return f"{guess}{label}: {listed or 'none'}"
