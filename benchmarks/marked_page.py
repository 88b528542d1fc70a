"""A Markdown page with one part for each benchmark, between two marks, so that each can write its own anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluator.logs import printable

PARTS = ("zoo", "logs")
"""The parts of a new page, in their order."""


def marks(part: str) -> tuple[str, str]:
    """The lines before and after a part."""
    return f"<!-- {part} -->", f"<!-- /{part} -->"


def put(part: str, page: Path, text: str) -> None:
    """Write the text between the marks of the part; the page is made when there is none.

    Raises:
        ValueError: the page lacks a mark.
    """
    begin_mark, end_mark = marks(part)
    whole = page.read_text(encoding="utf-8") if page.exists() else _new_page()
    before, begin, rest = whole.partition(begin_mark)
    _, end, after = rest.partition(end_mark)
    if not begin or not end:
        raise ValueError(f"{page}: has no lines {begin_mark} and {end_mark}; add them where the table should stand")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; a name from a log can neither end a cell nor a line."""
    lines = [list(head), ["---"] * len(head), *rows]
    return ["| " + " | ".join(printable(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]


def _new_page() -> str:
    parts = ["\n".join(marks(part)) for part in PARTS]
    return "\n\n".join(["# What the rules detect", *parts]) + "\n"
