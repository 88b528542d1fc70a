"""Keeps a second evaluator out of an output: by a lock of the system in a folder, by an object with a time on S3.

Assumptions:
    Where there are no locks (S3): the clocks of two machines differ by less than STALE.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import socket
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from evaluator import strict_json
from evaluator.clock import Clock, timestamp
from evaluator.errors import FormatError, KeyMissing, OutputError, OutputTaken, StorageError
from evaluator.logs import printable
from evaluator.storage.base import Store
from evaluator.storage.file import FileStore

LOCK = ".lock"
REFRESH = 60.0
"""Seconds after which the holder writes again that it is there."""
STALE = 900.0
"""Seconds after which a holder that did not is taken for gone: longer than it may wait for S3, or for a rule."""

_HELD: set[str] = set()
"""The tokens of this process, which tell its own locks from those of a former process of the same number."""


class OutputLock(ABC):
    """Held from `take` until `release`; a crash releases it too, at once or after a while."""

    @abstractmethod
    def take(self) -> None:
        """Keep other evaluators out.

        Raises:
            OutputError: the output cannot be written, or another evaluator is at work in it.
        """

    def refresh(self) -> None:  # noqa: B027 - a lock of the system needs none
        """Show that the holder lives, where that is due. Raises OutputTaken when another evaluator has come."""

    @abstractmethod
    def release(self) -> None:
        """Let other evaluators in."""


def lock_of(store: Store, clock: Clock, folders: Iterable[str]) -> OutputLock:
    """The lock for this kind of output; `folders` are those of the configurations."""
    return FolderLock(Path(store.uri), folders) if isinstance(store, FileStore) else ObjectLock(store, clock)


class FolderLock(OutputLock):
    """A lock of the system on a file, which ends with the process; the folder is made when it is taken."""

    def __init__(self, root: Path, folders: Iterable[str]) -> None:
        """Touch nothing yet."""
        self._root = root
        self._folders = folders
        self._lock: BinaryIO | None = None

    def take(self) -> None:
        """Make the folder, see that it and those in it can be written, and lock it."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            for folder in [self._root, *(self._root / name for name in self._folders)]:
                if folder.exists():
                    # the name ends like those that listings leave out
                    with tempfile.NamedTemporaryFile(dir=folder, prefix=".writable-", suffix=".tmp"):
                        pass
            # links are not followed: the text is written into what is opened here
            opened = os.open(self._root / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise self._unwritable(error) from error
        self._hold(os.fdopen(opened, "r+b", buffering=0))

    def release(self) -> None:
        """Unlock; the file stays, because removing it could remove another one's lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _hold(self, lock: BinaryIO) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _noted(lock) or "which one is not known"
            lock.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                # a file system without locks must not keep the first evaluator out
                return
            raise _in_use(str(self._root), holder) from error
        self._lock = lock
        # a lock file of some other program serves as well, but keeps its text
        if _noted(lock) or not os.fstat(lock.fileno()).st_size:
            try:
                lock.seek(0)
                lock.truncate()
                lock.write(strict_json.dumps({"pid": os.getpid(), "host": socket.gethostname()}) + b"\n")
            except OSError as error:
                self.release()
                raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> OutputError:
        reason = "is not a folder" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        right = f"a folder that user {os.getuid()} can write to"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            right = "a folder with room"
        return OutputError(printable(str(self._root)), f"cannot be written: {reason}", right)


@dataclass(frozen=True, slots=True)
class _Holder:
    """Who holds a lock object, as it says."""

    pid: int
    host: str
    token: str
    at: str
    """When it said so last; empty when it has let go."""

    def lives(self, now: float) -> bool:
        """Whether it may still be at work."""
        if not self.at or abs(now - datetime.fromisoformat(self.at).timestamp()) >= STALE:
            return False
        if self.host != socket.gethostname():
            return True
        if self.pid == os.getpid():
            # a container that is started again has the same name, and its processes the same numbers
            return self.token in _HELD
        return _runs(self.pid)


class ObjectLock(OutputLock):
    """An object that says who is at work and when it said so last.

    It is no lock in the strict sense, since not every server can write an object only where there is none: two that
    begin in the same instant are told apart by who wrote last, at once or with the next refresh.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        """Ask nothing yet."""
        self._store = store
        self._clock = clock
        self._token = secrets.token_hex(8)
        self._at = 0.0

    def take(self) -> None:
        """Write the object, unless one is there whose writer may be at work."""
        try:
            holder = self._read()
            if holder is not None and holder.lives(self._clock.now()):
                raise self._taken_by(holder)
            self._write(held=True)
            self._refuse_others()
        except StorageError as error:
            mistake = error.mistake
            right = mistake.would_be_right or "an output that can be written"
            raise OutputError(mistake.where, mistake.what, right) from error
        _HELD.add(self._token)

    def refresh(self) -> None:
        """Write the object again, unless it is another one's by now."""
        if self._token not in _HELD or self._clock.monotonic() - self._at < REFRESH:
            return
        # without an answer the status cannot be written either, and says so itself
        with suppress(StorageError):
            self._refuse_others()
            self._write(held=True)
        self._at = self._clock.monotonic()

    def release(self) -> None:
        """Write that nobody holds it, which needs no right to remove anything."""
        if self._token in _HELD:
            _HELD.discard(self._token)
            # a lock that stays is given up when it is old enough
            with suppress(StorageError, OutputTaken):
                self._refuse_others()
                self._write(held=False)

    def _refuse_others(self) -> None:
        holder = self._read()
        if holder is not None and holder.token != self._token:
            _HELD.discard(self._token)
            raise self._taken_by(holder)

    def _taken_by(self, holder: _Holder) -> OutputTaken:
        who = f"pid {holder.pid} on {holder.host}, seen at {holder.at or 'its end'}"
        return _in_use(self._store.uri, printable(who), f"; one that crashed is given up {STALE:.0f} s after that")

    def _read(self) -> _Holder | None:
        try:
            data = self._store.read(LOCK)
        except KeyMissing:
            return None
        try:
            written = strict_json.loads(data, LOCK)
            at = written["at"] and timestamp(datetime.fromisoformat(written["at"]).timestamp())
            return _Holder(int(written["pid"]), str(written["host"]), str(written["token"]), str(at))
        except (FormatError, LookupError, TypeError, ValueError, OverflowError) as error:
            right = f"an output without a {LOCK} of others"
            raise OutputError(
                printable(f"{self._store.uri.rstrip('/')}/{LOCK}"), "was not written by rule-evaluator", right
            ) from error

    def _write(self, *, held: bool) -> None:
        at = timestamp(self._clock.now()) if held else ""
        holder = _Holder(os.getpid(), socket.gethostname(), self._token, at)
        self._store.write(LOCK, strict_json.dumps(asdict(holder)) + b"\n")
        self._at = self._clock.monotonic()


def _in_use(where: str, who: str, more: str = "") -> OutputTaken:
    what = f"another evaluator is writing to it ({who})"
    return OutputTaken(printable(where), what, f"one output folder for each evaluator{more}")


def _noted(lock: BinaryIO) -> str:
    """Who took the lock last, as the lock file says; empty when it says nothing of the kind."""
    lock.seek(0)
    try:
        written = strict_json.loads(lock.read(1000), LOCK)
        return printable(f"pid {written['pid']} on {written['host']}")
    except (FormatError, LookupError, TypeError):
        return ""


def _runs(pid: int) -> bool:
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except PermissionError:
        # somebody else's process is a process all the same
        return True
    return True
