"""Files of a trial that appear whole or not at all, however the writer ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

UNFINISHED = ".tmp"
"""Ends the name of a file that is being written; readers pass over it. Source: saved format, section 1."""

AT_ONCE = 1024
"""Parts that one call of the system takes. Source: IOV_MAX of Linux and macOS."""

_TRIES = 3
"""The first finds that there is no folder yet; before the second another process may have removed it again."""


def publish(folder: Path, key: str, *parts: bytes | memoryview) -> None:
    """Write a file, of one part or more, so that nobody sees half of it; what cannot be written leaves nothing behind.

    The data are not flushed to the disk: that a process is killed loses nothing, that a machine loses power may.
    """
    path = os.path.join(folder, key)  # noqa: PTH118 - in the thread beside a training; pathlib takes several times as long
    for tries_left in reversed(range(_TRIES)):
        try:
            _write(path + UNFINISHED, parts)
            os.replace(path + UNFINISHED, path)  # noqa: PTH105 - the same
        except FileNotFoundError:
            # it is not there yet, or another worker's budget has removed it just now, since it was empty
            if not tries_left:
                raise
            _make_folder(os.path.dirname(path))  # noqa: PTH120 - the same
        except OSError:
            # half a file on a full disk would only keep it full
            remove(folder, key + UNFINISHED)
            raise
        else:
            return


def _make_folder(path: str) -> None:
    """Make a folder, and those above it where they are not there either."""
    try:
        os.mkdir(path)  # noqa: PTH102 - the same; nearly always this is all that there is to do
    except OSError:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 - the same


def _write(path: str, parts: Sequence[bytes | memoryview]) -> None:
    """Write a file of parts, which are not joined before: they may be large."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        for begin in range(0, len(parts), AT_ONCE):
            some = parts[begin : begin + AT_ONCE]
            written = os.writev(file, some)
            # a disk that becomes full, and a limit to the size of a file, take a piece before they refuse the rest
            if written < sum(memoryview(part).nbytes for part in some):
                _write_rest(file, b"".join(some), written)
    finally:
        os.close(file)


def _write_rest(file: int, data: bytes, written: int) -> None:
    while written < len(data):
        written += os.write(file, memoryview(data)[written:])


def remove(folder: Path, key: str) -> None:
    """Remove a file and the folder that it leaves empty, as far as that can be done."""
    path = folder / key
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        if path.parent != folder:
            path.parent.rmdir()
