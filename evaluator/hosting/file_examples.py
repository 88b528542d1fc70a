"""The examples of a rule in a file: those of its `RULE`, or for a class the `EXAMPLES` of the module, in any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from evaluator.errors import InputError, Mistake, did_you_mean
from evaluator.hosting.loading import Loaded
from evaluator.rule import Example, Rule

KEYS = tuple(field.name for field in fields(Example))
REQUIRED = tuple(field.name for field in fields(Example) if field.default is field.default_factory is MISSING)
FORM = "an evaluator.rule.Example, or a dict with the same keys"


def examples_of(loaded: Loaded, chosen: Rule | type, where: str) -> tuple[Example, ...]:
    """The examples of one rule of the file, in order.

    Raises:
        InputError: with everything that is not in form.
    """
    if isinstance(chosen, Rule):
        return _checked(chosen.examples, where, "RULE.examples")
    given = getattr(loaded.module, "EXAMPLES", ())
    name = chosen.__name__
    classes = [*loaded.classes, *([] if name in loaded.classes else [name])]
    if isinstance(given, Mapping):
        # a class that cannot be chosen by itself, as an abstract one, may still be meant
        unknown = [key for key in given if not isinstance(getattr(loaded.module, str(key), None), type)]
        if unknown:
            right = did_you_mean(str(unknown[0]), classes, "rules")
            raise InputError([Mistake(where, f"EXAMPLES has {unknown[0]!r}, which is no class of the file", right)])
        return _checked(given.get(name, ()), where, f"EXAMPLES[{name!r}]")
    checked = _checked(given, where, "EXAMPLES")
    if checked and len(classes) > 1:
        right = "EXAMPLES of a file with several rules is a dict: class name -> list of examples"
        raise InputError([Mistake(where, f"EXAMPLES does not say which of {', '.join(classes)} it is for", right)])
    return checked


def _checked(given: object, where: str, called: str) -> tuple[Example, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        right = f"a list of examples; each is {FORM}"
        raise InputError([Mistake(where, f"{called} is of type {type(given).__name__}", right)])
    examples: list[Example] = []
    mistakes: list[Mistake] = []
    for number, one in enumerate(given):
        made = _example(one, where, f"{called}[{number}]")
        if isinstance(made, Example):
            examples.append(made)
        else:
            mistakes += made
    if mistakes:
        raise InputError(mistakes)
    return tuple(examples)


def _example(one: object, where: str, called: str) -> Example | list[Mistake]:
    if isinstance(one, Example):
        values: dict[str, Any] = {key: getattr(one, key) for key in KEYS}
    elif isinstance(one, Mapping):
        values = {str(key): value for key, value in one.items()}
        unknown = [key for key in values if key not in KEYS]
        if unknown:
            return [Mistake(where, f"{called} has a key {key!r}", did_you_mean(key, KEYS)) for key in unknown]
        missing = [key for key in REQUIRED if key not in values]
        if missing:
            return [Mistake(where, f"{called} has no {key!r}", f"{FORM}: {', '.join(KEYS)}") for key in missing]
    else:
        return [Mistake(where, f"{called} is of type {type(one).__name__}", FORM)]
    return [Mistake(where, f"{called}: {problem}") for problem in _problems(values)] or Example(**values)


def _problems(values: Mapping[str, Any]) -> list[str]:
    """What would not make a trial."""
    problems = []
    if not isinstance(values["title"], str) or not values["title"]:
        problems.append("title is no text; say in a few words what the example shows")
    met_at = values.get("met_at")
    if met_at is not None and (not isinstance(met_at, int) or isinstance(met_at, bool)):
        problems.append(f"met_at is {met_at!r}; give the step of the first finding, or None for quiet")
    if not isinstance(values.get("parameters", {}), Mapping):
        problems.append("parameters are no dict; give name -> value")
    groups: dict[str, Any] = {"tensors": values.get("tensors", {}), "other": values.get("other") or {}}
    workers = values.get("workers") or {}
    if isinstance(workers, Mapping):
        groups.update({f"workers[{name!r}]": tensors for name, tensors in workers.items()})
    else:
        problems.append("workers are no dict; give worker -> name -> its value at each step")
    for called, tensors in groups.items():
        if not isinstance(tensors, Mapping):
            problems.append(f"{called} are no dict; give name -> its value at each step")
            continue
        for name, series in tensors.items():
            # a series of numbers or arrays may itself be an array
            if isinstance(series, str | bytes) or not hasattr(series, "__len__") or not hasattr(series, "__getitem__"):
                problems.append(f"{called}[{name!r}] is {series!r}; give a list with its value at each step")
    return problems
