"""The pages tell the truth: generated ones are fresh, and what the README shows runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.config.settings import Settings
from evaluator.registry import builtin_rules

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith(".venv/bin/rule-evaluator ")
]
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_generated_pages_are_fresh():
    made = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, check=False, capture_output=True, text=True
    )

    assert (made.returncode, made.stdout) == (0, "")


def test_the_readme_shows_commands_and_code():
    assert COMMANDS
    assert PYTHON


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_runs(command: str, tmp_path: Path):
    arguments = shlex.split(command)[1:]
    made = subprocess.run(
        [sys.executable, "-m", "evaluator", *arguments, "--output", str(tmp_path / "output")],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )

    assert made.returncode == 0, made.stderr
    assert made.stdout


@pytest.mark.parametrize("code", PYTHON)
def test_the_code_of_the_readme_runs(code: str, tmp_path: Path):
    changed = code.replace("/tmp/my-trial", str(tmp_path / "trial"))  # noqa: S108 - the README's example path

    subprocess.run([sys.executable, "-c", changed], cwd=ROOT, check=True)

    assert (tmp_path / "trial" / "training_job_end.ts").exists()


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_documented(name: str):
    assert f"`{name}`" in (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", builtin_rules())
def test_every_rule_is_documented(name: str):
    assert f"## {name}\n" in (ROOT / "builtin_rules" / "README.md").read_text(encoding="utf-8")
