"""Report files: the pages that report rules make and the texts that rules leave, in their configuration's folder."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import ClassVar, Self

from evaluator.errors import KeyMissing, OutputError
from evaluator.sinks.base import Outputs, Sink, key_in
from evaluator.storage.base import Store


class Reports(Sink):
    """Writes each page as a whole, so that a reader never sees half of one."""

    name: ClassVar[str] = "reports"

    def __init__(self, store: Store) -> None:
        """Args: store: the output folder."""
        self._store = store
        self._written: dict[str, bytes] = {}
        """Page -> a hash of what it holds: a page is told again and again, and writing costs a request."""

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
        key, data = key_in(folder, file_name), text.encode("utf-8", "backslashreplace")
        digest = hashlib.sha256(data).digest()
        if self._written.get(key) != digest:
            self._store.write(key, data)
            self._written[key] = digest

    def keep(self, key: str, data: bytes, beginning: bytes) -> None:
        """Write the text, unless somebody else's is there."""
        with suppress(KeyMissing):
            if not self._store.read_range(key, 0, len(beginning)).startswith(beginning):
                return
        self._store.write(key, data)


SINK = Reports
