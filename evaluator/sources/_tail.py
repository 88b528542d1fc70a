"""Reads what was added to a file: only new bytes, in pieces, from anything that can be read in ranges."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.storage.base import Entry, Store

PIECE = 8 * 2**20
"""Bytes that are read at a time, so that a large log needs little memory."""

HEAD = 1024
"""Bytes at the start of a file that tell whether it was written anew."""


class Tail:
    """One file that grows.

    A file that is shorter than what was read of it, or begins otherwise, was replaced.
    """

    def __init__(self, key: str, *, rewritten: bool = False) -> None:
        """Nothing is read yet; `rewritten`: whether its start is compared at each growth, which costs a small read."""
        self.key = key
        self.offset = 0
        """How far it was read."""
        self._rewritten = rewritten
        self._head = b""
        self._seen: tuple[float, int] | None = None

    def replaced(self, store: Store, entry: Entry) -> bool:
        """Whether what was read of it is there no more."""
        if entry.size < self.offset:
            return True
        if not (self._rewritten and self._head) or not self.news(entry):
            return False
        return store.read_range(self.key, 0, len(self._head)) != self._head

    def news(self, entry: Entry) -> bool:
        """Whether it was touched since it was read."""
        return self._seen != (entry.modified, entry.size)

    def pieces(self, store: Store, entry: Entry) -> Iterator[tuple[int, bytes]]:
        """Where each new piece begins, and the piece. Raises StorageError; what was read until then is not read again.

        Only what the listing showed is read: what comes meanwhile is for the next time.
        """
        while self.offset < entry.size:
            start = self.offset
            piece = store.read_range(self.key, start, min(PIECE, entry.size - start))
            if not piece:  # cut meanwhile
                break
            if len(self._head) < HEAD:
                self._head += piece[: HEAD - len(self._head)]
            self.offset += len(piece)
            yield start, piece
        self._seen = entry.modified, entry.size
