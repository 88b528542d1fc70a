"""Imports go one way; time, the environment and frameworks stay where they belong (design: P8)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("evaluator", "builtin_rules")

LAYERS: tuple[set[str], ...] = (
    # Parts (a module or a package of evaluator, or the other package), lowest layer first.
    # A part imports parts of lower layers only, never its neighbours.
    {"errors", "first_process", "names_of_parameters"},
    {
        "aws",
        "clock",
        "modes",
        "isolation.environment",
        "saving.environment",
        "storage._environment",
        "user_rules.environment",
    },
    {"scalar_names", "strict_json", "formats", "storage", "segments"},
    {"logs", "reductions", "sources", "saving"},
    {"writer"},
    {"safe_writer"},
    {"hooks"},
    {"needs"},
    {"window"},
    {"series", "progress", "rule", "trial"},
    {"file_plan"},
    {"plan", "finding", "builtin_rules"},
    {"actions"},
    {"registry", "engine", "status", "story", "user_rules", "judged_trial"},
    {"resuming", "passes", "places"},
    {"outcome", "config", "other_trials"},
    {"sinks", "output_lock", "table", "recording", "sagemaker", "explaining"},
    {"output_folder", "rule_state"},
    {"rule_run", "isolation"},
    {"evaluation", "reasons", "outside"},
    {"ending", "reporting", "job_status"},
    {"loop", "job_outputs", "rule_processes"},
    {"testing"},
    {"hosting", "job"},
    {"watching"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
ALLOWED: dict[str, set[str]] = {
    part: set().union(*LAYERS[:height]) for height, layer in enumerate(LAYERS) for part in layer
}

MAY_TELL_TIME = {"clock"}
MAY_READ_ENVIRONMENT = {
    "config",
    "cli",
    "__main__",
    "user_rules.environment",
    "isolation.environment",
    "saving.environment",
    "storage._environment",
}

NEVER_AT_IMPORT = (
    *("google.protobuf", "torch", "tensorflow", "mxnet", "xgboost", "keras", "transformers", "lightning"),
    *("pytorch_lightning", "boto3", "botocore", "s3fs", "distributed", "dask"),
)
"""Heavy, or optional: a function that needs one imports it itself."""


def modules() -> dict[str, Path]:
    """Dotted name -> file, of every module that is installed."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def lineage(name: str) -> list[str]:
    """A dotted name and what it is in, longest first."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def part_of(module: str) -> str | None:
    """The entry of the table that a module belongs to."""
    return next((name for name in lineage(module.removeprefix("evaluator.")) if name in ALLOWED), None)


def imports(tree: ast.AST, module: str, *, package: bool) -> Iterator[tuple[int, str]]:
    """Line and full name of all that is imported; `from evaluator import x` is evaluator.x where that is a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = module.split(".")
                above = here[: len(here) - node.level + package]
                base = ".".join([*above, *base.split(".")]).rstrip(".")
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield node.lineno, full if full in MODULES or base in {"os", "google"} else base


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when a module is imported, or may."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from at_import(child)


def wrong_imports(module: str, source: str, *, package: bool = False) -> list[str]:
    """What a module imports against the table, each with the line and what to do."""
    part = part_of(module)
    if part is None:
        return (
            []
            if module in PACKAGES
            else [f"{module} is in no part of the table LAYERS in tests/test_layers.py; add it"]
        )
    problems = []
    for line, name in imports(ast.parse(source), module, package=package):
        if name.split(".")[0] not in PACKAGES or name == "evaluator":
            continue
        target = part_of(name)
        if target is None:
            problems.append(f"{module}:{line} imports {name}, which is in no part of the table LAYERS")
        elif part not in lineage(target) and not ALLOWED[part].intersection(lineage(target)):
            may = ", ".join(sorted(ALLOWED[part])) or "nothing"
            problems.append(f"{module}:{line} ({part}) must not import {name} ({target}); it may import: {may}")
    return problems


def wrong_reads(module: str, source: str) -> list[str]:
    """Where a module tells time or reads the environment without being the one for it."""
    tree = ast.parse(source)
    part = part_of(module)
    problems = []
    names = list(imports(tree, module, package=False))
    if part not in MAY_TELL_TIME:
        problems += [
            f"{module}:{line} imports time; take a Clock" for line, name in names if name.split(".")[0] == "time"
        ]
        problems += [
            f"{module}:{node.lineno} calls {ast.unparse(node.func)}; take a Clock"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"now", "utcnow", "today"}
            and ast.unparse(node.func.value).split(".")[-1] in {"datetime", "date"}
        ]
    if part not in MAY_READ_ENVIRONMENT:
        environment = {"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv"}
        used = [(node.lineno, ast.unparse(node)) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        problems += [
            f"{module}:{line} uses {name}; only {', '.join(sorted(MAY_READ_ENVIRONMENT))} read the environment"
            for line, name in [*names, *used]
            if name in environment
        ]
    return problems


def heavy_imports(module: str, source: str) -> list[str]:
    """Frameworks and optional packages that are imported together with the module."""
    return [
        f"{module}:{line} imports {name} with the module; import it in the function that needs it"
        for node in at_import(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line, name in imports(node, module, package=False)
        if set(NEVER_AT_IMPORT).intersection(lineage(name))
    ]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_lower_layers(module: str):
    path = MODULES[module]

    assert wrong_imports(module, path.read_text(encoding="utf-8"), package=path.name == "__init__.py") == []


@pytest.mark.parametrize("module", MODULES)
def test_time_and_the_environment_are_read_only_where_they_belong(module: str):
    assert wrong_reads(module, MODULES[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("module", MODULES)
def test_nothing_heavy_is_imported_with_a_module(module: str):
    assert heavy_imports(module, MODULES[module].read_text(encoding="utf-8")) == []


def test_every_part_stands_in_one_layer():
    assert sum(len(layer) for layer in LAYERS) == len(ALLOWED)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("evaluator.errors", "import evaluator.clock"),
        ("evaluator.formats.tensor", "from evaluator.storage.base import Store"),
        ("evaluator.sources.base", "def late():\n    from evaluator.trial.trial import Trial"),
        ("evaluator.storage.file", "from ..sources import detect"),
        ("evaluator.rule", "from evaluator.trial import trial"),
        ("builtin_rules.gradients.x", "from evaluator.loop import follow"),
        ("evaluator.helpers", ""),
        ("evaluator.loop", "import evaluator.helpers"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str):
    assert len(wrong_imports(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("evaluator.storage.file", "from evaluator.storage.base import Store\nfrom evaluator import __version__"),
        ("evaluator.storage.file", "from .base import Store\nfrom ..errors import KeyMissing"),
        ("evaluator.trial.trial", "from evaluator.sources.base import Source\nimport numpy"),
    ],
)
def test_a_right_import_is_not_found(module: str, source: str):
    assert wrong_imports(module, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from time import sleep",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import date\ndate.today()",
        "import os\nos.environ['A']",
        "import os\nos.getenv('A')",
        "from os import environ",
    ],
)
def test_a_wrong_read_is_found(source: str):
    assert len(wrong_reads("evaluator.loop", source)) == 1


def test_a_clock_is_not_a_wrong_read():
    assert wrong_reads("evaluator.loop", "clock.now()\nfrom datetime import datetime\ndatetime.fromtimestamp(0)") == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch", 1),
        ("import boto3.session", 1),
        ("from google.protobuf import message", 1),
        ("from google import protobuf", 1),
        ("try:\n    import xgboost\nexcept ImportError:\n    pass", 1),
        ("class A:\n    import mxnet", 1),
        ("import google_crc32c\nimport torchless", 0),
        ("def f():\n    import torch", 0),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch", 0),
    ],
)
def test_a_heavy_import_is_found(source: str, expected: int):
    assert len(heavy_imports("evaluator.loop", source)) == expected
