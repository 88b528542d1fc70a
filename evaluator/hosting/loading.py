"""Imports a rule file, and finds the rule in it: a `RULE` of ours, or a class written for smdebug.

Only ever done in a process of its own: a file may do anything when it is imported.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from evaluator.config.request import RuleFile
from evaluator.errors import InputError, Mistake, did_you_mean
from evaluator.rule import Rule
from evaluator.user_rules import served_path
from evaluator.user_rules.rule import Rule as RuleClass

OURS = ("evaluator", "builtin_rules")
"""Packages of ours whose names a file beside the user's may have too."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a rule file holds."""

    module: ModuleType
    rule: Rule | None
    """Its `RULE`."""
    classes: Mapping[str, type]
    """The classes in it that can be invoked step by step, by name."""

    @property
    def names(self) -> list[str]:
        """What can be asked for."""
        return [*([] if self.rule is None else [self.rule.name]), *self.classes]


def load(path: str, sha256: str | None = None) -> Loaded:
    """Import the file; what it raises is not caught.

    Raises:
        InputError: its content is not what it has to be, or there is no rule in it.
    """
    content = Path(path).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if sha256 is not None and digest != sha256:
        raise InputError([Mistake(path, f"its sha256 is {digest}, not {sha256}", "give the file that was meant")])
    module = _import(Path(path), content)
    rule = getattr(module, "RULE", None)
    if rule is not None and not isinstance(rule, Rule):
        what = f"has a RULE of type {type(rule).__name__}"
        raise InputError([Mistake(path, what, "assign an evaluator.rule.Rule to RULE")])
    if rule is not None:
        rule = replace(rule, module=path, documentation=inspect.cleandoc(module.__doc__ or ""))
    classes = {
        name: one
        for name, one in vars(module).items()
        if isinstance(one, type) and one.__module__ == module.__name__ and _is_rule(one)
    }
    return Loaded(module, rule, classes)


def choose(loaded: Loaded, file: RuleFile) -> Rule | type:
    """The rule that is asked for by name, or the only one.

    Raises:
        InputError: there is none, or no name says which.
    """
    where = file.path
    if file.name is not None:
        if loaded.rule is not None and loaded.rule.name == file.name:
            return loaded.rule
        found = loaded.classes.get(file.name) or getattr(loaded.module, file.name, None)
        if isinstance(found, type):
            _check_class(found, where)
            return found
        raise InputError([Mistake(where, f"has no rule {file.name!r}", did_you_mean(file.name, loaded.names, "rules"))])
    if loaded.rule is not None:
        return loaded.rule
    if len(loaded.classes) == 1:
        return next(iter(loaded.classes.values()))
    if loaded.classes:
        names = ", ".join(loaded.classes)
        raise InputError([Mistake(where, f"has several rules: {names}", f"say which: {Path(where).name}:NAME")])
    right = "a rule is a class derived from smdebug.rules.rule.Rule with a method invoke_at_step, or a module with RULE"
    raise InputError([Mistake(where, "has no rule in it", right)])


def _is_rule(one: type) -> bool:
    """Whether a class of the file is meant as a rule by itself, not as a base of others."""
    return issubclass(one, RuleClass) and not inspect.isabstract(one)


def _check_class(one: type, where: str) -> None:
    """Raise InputError when the class cannot be invoked."""
    if inspect.isabstract(one):
        missing = ", ".join(sorted(getattr(one, "__abstractmethods__", ())))
        raise InputError(
            [Mistake(where, f"class {one.__name__} lacks {missing}", "a rule has a method invoke_at_step")]
        )
    if not callable(getattr(one, "invoke", None)):
        right = "derive it from smdebug.rules.rule.Rule"
        raise InputError([Mistake(where, f"class {one.__name__} has no method invoke", right)])


def _import(path: Path, content: bytes) -> ModuleType:
    """The module, under the file's own name unless a module of that name is there already."""
    served, folder = served_path(), str(path.parent)
    if served not in sys.path:
        sys.path.insert(0, served)
    if folder not in sys.path:
        sys.path.append(folder)
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"rule_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise InputError([Mistake(str(path), "cannot be imported", "give a Python file")])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _let_find_their_own(module, path.parent)
    # compiled here and not by the loader, so that no cache is written beside it and the content is what was checked
    exec(compile(content, str(path), "exec"), vars(module))  # noqa: S102 - importing a rule file is running it
    return module


def _let_find_their_own(module: ModuleType, folder: Path) -> None:
    """A module of the user's that is called as one of our packages is what the user's file means by that name.

    Our own modules go on finding ours: only what the file itself imports is looked up beside it first.
    """
    theirs = {name: folder / f"{name}.py" for name in OURS if (folder / f"{name}.py").is_file()}
    if not theirs:
        return
    own: dict[str, ModuleType] = {}

    def find(name: str) -> ModuleType | None:
        if name in theirs and name not in own:
            spec = importlib.util.spec_from_file_location(f"rule_file_{name}", theirs[name])
            if spec is None or spec.loader is None:
                return None
            own[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(own[name])
        return own.get(name)

    def import_(name: str, names: Any = None, local: Any = None, wanted: Any = (), level: int = 0) -> ModuleType:
        found = None if level else find(name)
        return found if found is not None else builtins.__import__(name, names, local, wanted or (), level)

    vars(module)["__builtins__"] = {**vars(builtins), "__import__": import_}
