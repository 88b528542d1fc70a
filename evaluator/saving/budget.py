"""A limit to the disk that one worker's steps take: the oldest ones go before a new one comes.

A step goes index file first, since a reader takes an index file as the sign that the event file is there.
A reader that follows has taken the step long before; one that comes later begins with the first step that is left.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path

from evaluator.errors import FormatError, OutputError
from evaluator.formats.key_names import EVENTS_PREFIX, INDEX_PREFIX, event_key, index_key
from evaluator.saving.files import UNFINISHED, remove


class Budget:
    """How many steps, or bytes, of one worker may lie in the folder."""

    def __init__(self, folder: Path, worker: str, *, keep_steps: int | None, keep_bytes: int | None) -> None:
        """Nothing is looked at yet; None is no limit."""
        for name, limit in (("keep_steps", keep_steps), ("keep_bytes", keep_bytes)):
            if limit is not None and operator.index(limit) < 1:
                raise FormatError("writer", f"{name} is {limit}", "1 or more, or None for no limit")
        self._folder = folder
        self._worker = worker
        self._most_steps = keep_steps
        self._most_bytes = keep_bytes
        self._kept: dict[int, int] | None = None
        """Step -> bytes, in the order in which they were written; None until the folder was looked at."""

    def make_room(self, step: int, size: int) -> None:
        """Remove the oldest steps until this one fits.

        Raises:
            OutputError: it is larger than all that may lie there; then nothing was removed.
        """
        if self._most_steps is None and self._most_bytes is None:
            return
        if self._most_bytes is not None and size > self._most_bytes:
            raise OutputError("writer", f"step {step} takes {size} bytes", f"keep_bytes allows {self._most_bytes}")
        if self._kept is None:
            self._kept = self._left_by_earlier_runs()
        # A step that is written again is replaced, so it is not in its own way.
        self._kept.pop(step, None)
        while self._kept and self._is_too_much(size):
            oldest = next(iter(self._kept))
            remove(self._folder, index_key(oldest, self._worker))
            remove(self._folder, event_key(oldest, self._worker))
            del self._kept[oldest]
        self._kept[step] = size

    def _is_too_much(self, size: int) -> bool:
        kept = self._kept or {}
        too_many = self._most_steps is not None and len(kept) >= self._most_steps
        return too_many or (self._most_bytes is not None and sum(kept.values()) + size > self._most_bytes)

    def _left_by_earlier_runs(self) -> dict[int, int]:
        """What lies there of this worker, oldest first; what a killed writer left unfinished is removed."""
        found: dict[int, tuple[float, int]] = {}
        for key, step in self._keys():
            path = self._folder / key
            if key.endswith(UNFINISHED):
                remove(self._folder, key)
            elif path.is_file():
                status = path.stat()
                _, size = found.get(step, (0.0, 0))
                found[step] = (status.st_mtime, size + status.st_size)
        return {step: found[step][1] for step in sorted(found, key=lambda step: (found[step][0], step))}

    def _keys(self) -> Iterator[tuple[str, int]]:
        """The keys of this worker's files and their steps, finished or not."""
        for prefix, key_of in ((INDEX_PREFIX, index_key), (EVENTS_PREFIX, event_key)):
            for path in sorted((self._folder / prefix).glob("*/*")):
                key = path.relative_to(self._folder).as_posix()
                digits = path.name.partition("_")[0]
                if digits.isascii() and digits.isdigit() and key.startswith(key_of(int(digits), self._worker)):
                    yield key, int(digits)
