"""Finds the built-in rules by walking their package, so that a new rule is one new file."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import ModuleType

import builtin_rules as shipped
from evaluator.errors import Mistake, did_you_mean
from evaluator.rule import LoopParameters, Rule

_CAMEL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")


@cache
def builtin_rules() -> Mapping[str, Rule]:
    """The rules that come with the program, by name, in the order of the names."""
    return rules_of(shipped)


def find_rule(name: str, rules: Mapping[str, Rule] | None = None, where: str = "") -> Rule | Mistake:
    """The rule of this name in whatever case, or the mistake that there is none, with the nearest names.

    Source:
        the old test driver took names in any case (builtin-rules.md 1.1).
    """
    known = builtin_rules() if rules is None else rules
    by_lower = {known_name.lower(): rule for known_name, rule in known.items()}
    rule = by_lower.get(name.strip().lower())
    if rule is not None:
        return rule
    return Mistake(where, f"rule {name!r} is not known", did_you_mean(name, known, "rules"))


def rules_of(package: ModuleType) -> dict[str, Rule]:
    """The rules of a package, by name: the `RULE` of every module in it and in its topic packages.

    Modules whose name starts with an underscore hold no rule.

    Raises:
        TypeError: a module is not in the form of a rule; says in which file.
    """
    found: dict[str, Rule] = {}
    for module in _modules(package):
        file = module.__file__ or module.__name__
        rule = _checked(getattr(module, "RULE", None), file)
        twin = next((other for name, other in found.items() if name.lower() == rule.name.lower()), None)
        if twin is not None:
            right = "names are unique in any case"
            raise TypeError(f"{file}: rule {rule.name!r} has the name of the rule in {twin.module}; {right}")
        documentation = inspect.cleandoc(module.__doc__ or "")
        found[rule.name] = replace(rule, module=module.__name__, documentation=documentation)
    return dict(sorted(found.items()))


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if info.name.rpartition(".")[2].startswith("_"):
            continue
        module = importlib.import_module(info.name)
        if info.ispkg:
            yield from _modules(module)
        else:
            yield module


def _checked(rule: object, file: str) -> Rule:
    if not isinstance(rule, Rule):
        what = "has no RULE" if rule is None else f"has a RULE of type {type(rule).__name__}"
        raise TypeError(f"{file}: {what}; a rule module assigns an evaluator.rule.Rule to RULE")
    if not _CAMEL_CASE.fullmatch(rule.name):
        raise TypeError(f"{file}: rule name {rule.name!r} is not CamelCase; for example 'VanishingGradient'")
    known = {*rule.parameters.model_fields, *LoopParameters.model_fields}
    unknown = sorted(set(rule.recommended) - known)
    if unknown:
        right = did_you_mean(unknown[0], known)
        raise TypeError(f"{file}: recommended value of {unknown[0]!r}, which is no parameter; {right}")
    return rule
