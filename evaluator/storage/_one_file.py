"""One object of a store, as a store of its own: for a log that is named by its path."""

from __future__ import annotations

from evaluator.errors import KeyMissing, KeyRefused
from evaluator.storage.base import Entry, Store


class OneFile(Store):
    """Shows one key of another store and nothing else; nothing is written."""

    def __init__(self, uri: str, store: Store, key: str) -> None:
        """`uri` is how the file was named."""
        super().__init__(uri, store.requests, store.refused)
        self.key = key
        self._store = store

    def below(self, folder: str) -> Store:
        """Nothing is below a file."""
        raise KeyMissing(f"{self.uri}/{folder}", "is below a file")

    def folders(self, prefix: str = "") -> list[str]:
        """None."""
        del prefix
        return []

    def unfinished(self) -> list[str]:
        """None."""
        return []

    def stat(self, key: str) -> Entry | None:
        """What the store says of the file."""
        return self._store.stat(key) if key == self.key else None

    def read(self, key: str) -> bytes:
        """The whole file."""
        return self._store.read(self._checked(key))

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of it."""
        return self._store.read_range(self._checked(key), start, length)

    def write(self, key: str, data: bytes) -> None:
        """Refused."""
        del data
        raise KeyRefused(key, "is not written", "a log is only read")

    def append(self, key: str, data: bytes) -> None:
        """Refused."""
        self.write(key, data)

    def delete(self, key: str) -> None:
        """Refused."""
        self.write(key, b"")

    def rest(self) -> None:
        """As the store does."""
        self._store.rest()

    # after every method whose annotations mean the builtin
    def list(self, prefix: str = "", start_after: str = "") -> list[Entry]:
        """The file, if it is there."""
        entry = self._store.stat(self.key) if self.key.startswith(prefix) and self.key > start_after else None
        return [] if entry is None else [entry]

    def _checked(self, key: str) -> str:
        if key != self.key:
            raise KeyMissing(key, f"is not {self.key}")
        return key
