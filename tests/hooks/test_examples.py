"""The example scripts: each says with at most three added lines what is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.hooks.trials import findings

ROOT = Path(__file__).parents[2]
EXAMPLES = {path.stem.removeprefix("train_"): path for path in sorted((ROOT / "docs" / "examples").glob("train_*.py"))}
PAGE = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
ADDED = "  # +"

FOUND = {
    "numpy": "LossDiverging",
    "pytorch": "DeadRelu",
    "xgboost": "Overfit",
    "keras": "NonFinite",
    "transformers": "DeadRelu",
    "lightning": "SaturatedActivation",
}
NEEDS = {"numpy": ["numpy"], "pytorch": ["torch"], "transformers": ["transformers", "accelerate"]}


def added(name: str) -> list[str]:
    """The lines that were added to a script."""
    lines = EXAMPLES[name].read_text(encoding="utf-8").splitlines()
    return [line.strip().removesuffix(ADDED).rstrip(",") for line in lines if line.endswith(ADDED)]


def ran(script: Path, folder: Path) -> None:
    """Run a script where its trial shall be."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": "torch", "ACCELERATE_USE_CPU": "true"}
    made = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )

    assert made.returncode == 0, made.stderr


def test_each_example_is_tested():
    assert set(EXAMPLES) == set(FOUND)


@pytest.mark.parametrize("name", EXAMPLES)
def test_at_most_three_lines_are_added_and_the_page_shows_them(name: str):
    assert 1 <= len(added(name)) <= 3
    assert [line for line in added(name) if line not in PAGE] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_says_what_is_found(name: str):
    assert f"| `{EXAMPLES[name].name}` | {FOUND[name]} |" in PAGE


@pytest.mark.parametrize("name", EXAMPLES)
def test_without_the_added_lines_it_is_a_script_like_any_other(name: str):
    lines = EXAMPLES[name].read_text(encoding="utf-8").splitlines()
    plain = "\n".join(line for line in lines if not line.endswith(ADDED))

    compile(plain, name, "exec")
    assert "evaluator" not in plain
    assert "hook" not in plain


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_wrong_with_it_is_found(name: str, tmp_path: Path):
    missing = [module for module in NEEDS.get(name, [name]) if find_spec(module) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    ran(EXAMPLES[name], tmp_path)

    assert FOUND[name] in findings(tmp_path / "trial")
    assert (tmp_path / "trial" / "training_job_end.ts").exists() == (name != "numpy")
