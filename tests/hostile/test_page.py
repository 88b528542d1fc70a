"""What docs/reliability.md says is shown by tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+\.py)((?:::\w+)+)`", PAGE)))


@cache
def named_in(file: str) -> set[str]:
    """The tests in a file, those of classes with the name of the class."""
    found = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(f"::{node.name}")
        elif isinstance(node, ast.ClassDef):
            found |= {f"::{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def test_the_page_names_tests():
    assert len(NAMED) > 20


@pytest.mark.parametrize(("file", "test"), NAMED, ids="".join)
def test_a_test_that_the_page_names_exists(file: str, test: str):
    assert test in named_in(file)


def test_every_table_row_names_a_test_or_the_one_above():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| What")]

    assert [row for row in rows if "::test_" not in row and "the same" not in row] == []
