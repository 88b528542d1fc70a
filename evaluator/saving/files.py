"""Files of a trial that appear whole or not at all, however the writer ends."""

from __future__ import annotations

import contextlib
from pathlib import Path

UNFINISHED = ".tmp"
"""Ends the name of a file that is being written; readers pass over it. Source: saved format, section 1."""


def publish(folder: Path, key: str, *parts: bytes) -> None:
    """Write a file, of one part or more, so that nobody sees half of it; what cannot be written leaves nothing behind.

    The data are not flushed to the disk: that a process is killed loses nothing, that a machine loses power may.
    """
    path = folder / key
    unfinished = path.with_name(path.name + UNFINISHED)
    for last_try in (False, True):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as file:
                file.writelines(parts)
            unfinished.replace(path)
        except FileNotFoundError:
            # another worker's budget may have removed the empty folder just now
            if last_try:
                raise
        except OSError:
            # half a file on a full disk would only keep it full
            remove(folder, key + UNFINISHED)
            raise
        else:
            return


def remove(folder: Path, key: str) -> None:
    """Remove a file and the folder that it leaves empty, as far as that can be done."""
    path = folder / key
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        if path.parent != folder:
            path.parent.rmdir()
