"""The page about actions tells of all of them, and what it shows is taken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluator.actions._payloads import SHAPES
from evaluator.actions.base import kinds
from evaluator.config.load import Arguments, load

PAGE = (Path(__file__).parents[2] / "docs" / "actions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", kinds())
def test_every_kind_and_each_of_its_parameters_is_documented(name: str):
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]

    assert [field for field in kinds()[name].parameters.model_fields if f"`{field}`" not in row] == []


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_documented(name: str):
    assert f"| `{name}` |" in PAGE


@pytest.mark.parametrize(("language", "names"), [("toml", ["webhook", "stop_file", "command"]),
                                                ("json", ["stop_training", "email"])])  # fmt: skip
def test_what_the_page_shows_is_taken(language: str, names: list[str], tmp_path: Path):
    (block,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / f"job.{language}"
    path.write_text(block)

    assert [one.name for one in load(Arguments(trial="run", config=str(path)), {}).actions] == names
