"""The spellings in which a rule is told the other trials that it compares with."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NUMBERED = re.compile(r"other_trial_(\d{1,6})")
_KEYS = ("other_trials", "other_trial")


def is_other_trial_key(key: str) -> bool:
    """Whether a parameter of this name gives other trials.

    Source:
        the SDK sends other_trial_0, other_trial_1, ...; the guide writes other_trials, its older text other_trial
        (builtin-rules.md 2.10).
    """
    return key in _KEYS or _NUMBERED.fullmatch(key) is not None


def other_trials_of(parameters: Mapping[str, object]) -> tuple[str, ...]:
    """The other trials in these parameters: the numbered ones in order, then the listed ones; each once."""
    numbered = [(int(match[1]), value) for key, value in parameters.items() if (match := _NUMBERED.fullmatch(key))]
    found = [str(value).strip() for _, value in sorted(numbered, key=lambda pair: pair[0])]
    for key in _KEYS:
        found += _listed(parameters.get(key))
    return tuple(dict.fromkeys(path for path in found if path not in ("", "None")))


def _listed(value: object) -> list[str]:
    if value is None:
        return []
    items = value if isinstance(value, list | tuple) else str(value).split(",")
    return [str(item).strip() for item in items]
