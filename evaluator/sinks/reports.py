"""Report files: the pages that report rules make, each in its configuration's folder."""

from __future__ import annotations

from typing import ClassVar, Self

from evaluator.errors import OutputError
from evaluator.sinks.base import Outputs, Sink, key_in
from evaluator.storage.base import Store


class Reports(Sink):
    """Writes each page as a whole, so that a reader never sees half of one."""

    name: ClassVar[str] = "reports"

    def __init__(self, store: Store) -> None:
        """Args: store: the output folder."""
        self._store = store

    @classmethod
    def build(cls, outputs: Outputs) -> Self:
        """Every job has one."""
        return cls(outputs.store)

    def report(self, folder: str, file_name: str, text: str) -> None:
        """Write the page.

        Raises:
            OutputError: the name is not that of a page in the folder.
        """
        if "/" in file_name or not file_name.endswith(".html"):
            raise OutputError(repr(file_name), "is not the name of a page", "a name without '/' that ends in .html")
        self._store.write(key_in(folder, file_name), text.encode("utf-8", "backslashreplace"))


SINK = Reports
