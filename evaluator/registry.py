"""Finds the built-in rules, and those of installed packs, by walking packages, so that a new rule is one new file."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

import builtin_rules as shipped
from evaluator.errors import Mistake, did_you_mean
from evaluator.rule import LoopParameters, Rule

_CAMEL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")

BUILTIN_ONLY = "this installation runs built-in rules only (allow_user_rules=false)"

GROUP = "rule_evaluator.rules"
"""The entry point group of rule packs; each entry point is a module with a rule, or a package of such modules."""


@dataclass(frozen=True)
class InstalledRules:
    """The rules of installed packs, and what was left out of them.

    Args:
        packs: rule -> name and version of the distribution that it comes from.
        notes: what was left out, and why.
    """

    rules: Mapping[str, Rule] = field(default_factory=dict)
    packs: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@cache
def builtin_rules() -> Mapping[str, Rule]:
    """The rules that come with the program, by name, in the order of the names."""
    return rules_of(shipped)


@cache
def installed_rules() -> InstalledRules:
    """The rules of the packs that are installed beside the program; a pack with a fault is left out with a note."""
    entries = _entry_points()
    if not entries:
        return InstalledRules()
    rules: dict[str, Rule] = {}
    packs: dict[str, str] = {}
    taken = {name.lower(): "a built-in rule" for name in builtin_rules()}
    notes = []
    for entry, pack in entries:
        where = f"rule pack {pack}"
        try:
            # what a module prints when it is imported must not get among the output of a command
            with redirect_stdout(sys.stderr):
                found = _rules_of_entry(entry)
        except (Exception, SystemExit) as error:  # noqa: BLE001 it is foreign code, and the job can do without it
            notes.append(f"{where} is left out: {entry.value}: {type(error).__name__}: {error}")
            continue
        for name, rule in found.items():
            if name.lower() in taken:
                notes.append(f"{where}: rule {name!r} is left out: it has the name of {taken[name.lower()]}")
                continue
            rules[name], packs[name], taken[name.lower()] = rule, pack, f"a rule of {pack}"
    return InstalledRules(dict(sorted(rules.items())), packs, tuple(notes))


class KnownRules(Mapping[str, Rule]):
    """The rules that can be named, by name; a built-in one is found without importing the others.

    Importing all of them takes as long as judging a short run.
    """

    def __init__(self, *, with_packs: bool) -> None:
        """Import nothing yet."""
        self._with_packs = with_packs

    def __getitem__(self, name: str) -> Rule:
        """The rule of this name."""
        # once all are imported, looking through the packages again for each would be wasted
        found = None if "_all" in vars(self) else _shipped_rule(name)
        return self._all[name] if found is None else found

    def __iter__(self) -> Iterator[str]:
        """All names."""
        return iter(self._all)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all)

    @cached_property
    def _all(self) -> Mapping[str, Rule]:
        return {**builtin_rules(), **installed_rules().rules} if self._with_packs else builtin_rules()


def known_rules(*, with_packs: bool = True) -> Mapping[str, Rule]:
    """The rules that can be named: the built-in ones, and those of packs where these are allowed."""
    return KnownRules(with_packs=with_packs)


def _shipped_rule(name: str) -> Rule | None:
    """The built-in rule of this name, where its module is called like it."""
    for topic in pkgutil.iter_modules(shipped.__path__):
        for info in pkgutil.iter_modules([str(Path(path, topic.name)) for path in shipped.__path__]):
            if info.name.replace("_", "") == name.lower() and not info.name.startswith("_"):
                rule = _rule_of(importlib.import_module(f"{shipped.__name__}.{topic.name}.{info.name}"))
                return rule if rule.name == name else None
    return None


def pack_of(name: str) -> str | None:
    """The pack that a rule comes from, with its version; None for a built-in rule."""
    return None if name in builtin_rules() else installed_rules().packs.get(name)


def pack_notes(*, with_packs: bool = True) -> list[str]:
    """What is left out of the installed packs, and why."""
    if with_packs:
        return list(installed_rules().notes)
    packs = sorted({pack for _, pack in _entry_points()})
    return [f"rule pack {pack} is left out: {BUILTIN_ONLY}" for pack in packs]


def find_rule(name: str, rules: Mapping[str, Rule] | None = None, where: str = "") -> Rule | Mistake:
    """The rule of this name in whatever case, or the mistake that there is none, with the nearest names.

    Source:
        the old test driver took names in any case (builtin-rules.md 1.1).
    """
    known = known_rules() if rules is None else rules
    rule = known.get(name.strip())
    if rule is None:
        rule = {known_name.lower(): rule for known_name, rule in known.items()}.get(name.strip().lower())
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
        rule = _rule_of(module)
        twin = next((other for name, other in found.items() if name.lower() == rule.name.lower()), None)
        if twin is not None:
            right = "names are unique in any case"
            raise TypeError(f"{_file(module)}: rule {rule.name!r} has the name of the rule in {twin.module}; {right}")
        found[rule.name] = rule
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


def _entry_points() -> list[tuple[EntryPoint, str]]:
    """The entry points of rule packs, each with its distribution's name and version, in a stable order."""
    found = entry_points(group=GROUP)
    named = [(entry, f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.name) for entry in found]
    return sorted(named, key=lambda one: (one[1], one[0].name))


def _rules_of_entry(entry: EntryPoint) -> dict[str, Rule]:
    """The rules of one entry point of a pack."""
    module = entry.load()
    if not isinstance(module, ModuleType):
        what = f"{module!r} is no module"
        raise TypeError(f"{what}; an entry point names a module with a rule, or a package of such modules")
    found = rules_of(module) if hasattr(module, "__path__") else {}
    if found:
        return found
    rule = _rule_of(module)
    return {rule.name: rule}


def _file(module: ModuleType) -> str:
    return module.__file__ or module.__name__


def _rule_of(module: ModuleType) -> Rule:
    """The rule of a module, with where it was found."""
    rule = _checked(getattr(module, "RULE", None), _file(module))
    return replace(rule, module=module.__name__, documentation=inspect.cleandoc(module.__doc__ or ""))


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
