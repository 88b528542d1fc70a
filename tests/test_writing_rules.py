"""docs/writing-rules.md: all of its code runs, in the order in which it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

import evaluator.rule
from evaluator.hosting.file_examples import KEYS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "writing-rules.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMAND = "rule-evaluator "


@dataclass(frozen=True)
class Ran:
    """What a command of the page came to."""

    line: str
    code: int
    out: str
    err: str


def run(line: str, folder: Path) -> Ran:
    arguments = shlex.split(line.replace("TRIAL", str(ROOT / "evaluator" / "demo_trial")))[1:]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "240"}
    made = subprocess.run(
        [sys.executable, "-m", "evaluator", *arguments],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    return Ran(line, made.returncode, made.stdout, made.stderr)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Ran | str]:
    """Every command of the page, run where the files of the page are; and what the page says that it prints."""
    folder = tmp_path_factory.mktemp("page")
    found: list[Ran | str] = []
    for language, text in BLOCKS:
        name = re.match(r"# (\w+\.(?:py|toml))\n", text)
        if name is not None:
            # the last line of the page before a block may be read as part of it, but not of the file
            (folder / name[1]).write_text(text.removeprefix(name[0]), encoding="utf-8")
            if name[1].endswith(".py"):
                found.append(run(f"{COMMAND}test {name[1]}", folder))
        elif language == "sh":
            found += [run(line, folder) for line in text.splitlines()]
        elif language == "text":
            found.append(text)
    return found


def test_every_block_is_something_that_is_run():
    assert {language for language, _ in BLOCKS} == {"sh", "python", "text", "toml"}
    assert all(line.startswith(COMMAND) for language, text in BLOCKS if language == "sh" for line in text.splitlines())


def test_every_command_of_the_page_runs_and_every_file_passes_its_examples(ran: Sequence[Ran | str]):
    assert [(one.line, one.code, one.err) for one in ran if isinstance(one, Ran) and one.code != 0] == []


def test_what_the_page_says_is_printed_is_printed(ran: Sequence[Ran | str]):
    said = [(before, one) for before, one in pairwise(ran) if isinstance(one, str)]

    assert said
    assert [(before.out if isinstance(before, Ran) else before) for before, _ in said] == [one for _, one in said]


@pytest.mark.parametrize("text", [t for language, t in BLOCKS if language == "python" and ".py\n" not in t[:60]])
def test_the_needs_of_the_page_can_be_declared(text: str):
    exec(compile(text, "writing-rules.md", "exec"), dict(vars(evaluator.rule)))  # noqa: S102 - it is our own page


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_an_example_is_explained(key: str):
    assert f"`{key}`" in PAGE


def test_the_readme_leads_to_the_page():
    assert "(docs/writing-rules.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
