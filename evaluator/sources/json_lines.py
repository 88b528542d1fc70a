"""Source: scalars as JSON lines: one object per line, `step` and then one key per name, or step, name and value."""

from __future__ import annotations

import json
from collections.abc import Sequence

from evaluator.sources._line_log import LineLog
from evaluator.sources._rows import Row, RowProblem, RowReader

TRIED = 20
"""Lines of which one must be a row: others may come first, as the arguments of the run."""
OURS = "rule_configuration"
"""What every line of our own findings.jsonl has."""


class JsonLines(LineLog):
    """A file of JSON lines."""

    name = "json_lines"
    suffixes = (".jsonl", ".ndjson", ".json", ".jsonlines")

    @classmethod
    def is_one(cls, head: Sequence[str]) -> bool:
        """Whether one of the first lines is an object with a step and a number."""
        rows = RowReader()
        for line in [line for line in head if line.strip()][:TRIED]:
            try:
                if rows.read(_object(line)).values:
                    return True
            except RowProblem:
                continue
        return False

    def row(self, line: str) -> Row | None:
        """One object."""
        return self.rows.read(_object(line))

    def unfinished_row(self, line: str) -> Row | None:
        """An object that is closed is whole."""
        return self.row(line)


def _object(line: str) -> dict[str, object]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else "is no JSON"
        raise RowProblem(f"{what}: {line.strip()[:40]!r}") from None
    if not isinstance(found, dict):
        raise RowProblem(f"is no object: {line.strip()[:40]!r}")
    if OURS in found:
        raise RowProblem("is a finding of this program, no log")
    return found


SOURCE = JsonLines
