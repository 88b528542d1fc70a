"""Source: scalars as a CSV table with a header: Lightning's metrics.csv, Keras' CSVLogger, Ultralytics' results.csv.

Commas, tabs or semicolons separate cells: those with which the header names a column of steps.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence

from evaluator.scalar_names import Naming
from evaluator.sources._line_log import LineLog
from evaluator.sources._rows import Row, RowProblem, step_column
from evaluator.storage.base import Store


class CsvTable(LineLog):
    """A file with a header and rows; a header that comes again begins a new table in the same file."""

    name = "csv"
    suffixes = (".csv", ".tsv")

    def __init__(self, store: Store, naming: Naming | None = None) -> None:
        """Nothing is read yet."""
        self._header: list[str] | None = None
        self._delimiter = ","
        super().__init__(store, naming)

    @classmethod
    def is_one(cls, head: Sequence[str]) -> bool:
        """Whether the first line names a column of steps, and others."""
        first = next((line for line in head if line.strip()), "")
        try:
            names = _cells(first, _delimiter(first))
        except RowProblem:
            return False
        return len(names) > 1 and _is_header(names)

    def row(self, line: str) -> Row | None:
        """A row under the header."""
        if self._header is None:
            self._delimiter = _delimiter(line)
        cells = _cells(line, self._delimiter)
        if self._header is None or (cells[0] == self._header[0] and _is_header(cells)):
            self._header = cells
            return None
        if len(cells) != len(self._header):
            raise RowProblem(f"has {len(cells)} cells; the header has {len(self._header)}")
        # of columns with the same name the first one that is filled counts
        row: dict[str, object] = {}
        for name, cell in zip(self._header, cells, strict=True):
            row[name] = row.get(name) or cell
        return self.rows.read(row)

    def _start_over(self) -> None:
        super()._start_over()
        self._header = None


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
    except csv.Error as error:
        raise RowProblem(f"is no row: {error}") from None


def _delimiter(header: str) -> str:
    def fits(delimiter: str) -> tuple[bool, int]:
        try:
            names = _cells(header, delimiter)
        except RowProblem:
            return False, 0
        return _is_header(names), len(names)

    return max(",\t;", key=fits)


def _is_header(names: Sequence[str]) -> bool:
    return step_column({name.lower(): name for name in names}) is not None


SOURCE = CsvTable
