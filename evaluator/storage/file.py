"""A local folder: keys are paths below it, and nothing outside of it is ever read or written.

Assumptions:
    POSIX (`pread`, renaming over a file).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from evaluator.clock import Clock
from evaluator.errors import InputError, KeyMissing, KeyRefused, Mistake, StorageError
from evaluator.storage._walking import PLAIN_FILE, Walker, status_of
from evaluator.storage.base import LONGEST_KEY, Entry, Store, check_key, is_unfinished

# a file that is itself a mount point cannot be replaced, and beside it there may be no right to make another one
_NOT_REPLACEABLE = (errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES, errno.EROFS)


def open_store(uri: str, clock: Clock | None = None) -> FileStore:
    """The folder that a plain path or a file:// URI names; the system's clock stamps the files."""
    del clock
    if uri[:7].lower() != "file://":
        return FileStore(uri)
    host, slash, path = uri[7:].partition("/")
    if not slash or host not in {"", "localhost"}:
        raise InputError([Mistake(repr(uri), "does not name a local folder", "file:///absolute/path, or a plain path")])
    return FileStore(unquote(slash + path))


class FileStore(Store):
    """The files below `root`; `uri` is the path as it was given.

    Attributes:
        refused: key -> why a listing left it out: links that lead out and links to folders (what such a folder holds
            is listed under its own name if it is inside), what is not a regular file, folders that may not be read,
            names that cannot be keys. It grows with every listing.
    """

    def __init__(self, root: Path | str) -> None:
        """Note the path; the folder may not exist yet."""
        super().__init__(os.fspath(root))
        self._walker = Walker(self.uri, self.refused)

    def root_problem(self) -> str | None:
        """Whether the root is missing or is no folder."""
        if os.path.isdir(self._walker.root):
            return None
        return "is not a folder" if os.path.lexists(self._walker.root) else "does not exist"

    def below(self, folder: str) -> FileStore:
        """The folder below."""
        return FileStore(f"{self.uri.rstrip('/')}/{check_key(folder)}")

    def folders(self, prefix: str = "") -> list[str]:
        """The real folders in a folder; links to folders are refused."""
        self.requests.list += 1
        base = f"{check_key(prefix).rstrip('/')}/".lstrip("/")
        names = []
        with self._walker.afresh(), self._walker.scan(base, given=True) as entries:
            for key, entry in self._walker.keys(base, entries):
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                elif entry.is_symlink():
                    self._walker.entry(key, entry)
        return sorted(names)

    def files(self, folder: str = "") -> list[Entry]:
        """The files in one folder; no other is gone through."""
        self.requests.list += 1
        base = f"{check_key(folder).rstrip('/')}/".lstrip("/")
        found = []
        with self._walker.afresh(), self._walker.scan(base, given=True) as entries:
            for key, entry in self._walker.keys(base, entries):
                if not (is_unfinished(key) or entry.is_dir(follow_symlinks=False)):
                    found.append(self._walker.entry(key, entry))
        return sorted((one for one in found if one is not None), key=lambda one: one.key)

    def unfinished(self) -> list[str]:
        """Walk all folders."""
        with self._walker.afresh():
            return sorted(entry.key for entry in self._found("", "", unfinished=True))

    def stat(self, key: str) -> Entry | None:
        """Size and time of a regular file."""
        self.requests.get += 1
        try:
            info = self._walker.at(key, status_of)
        except KeyMissing:
            return None
        if is_unfinished(key) or not stat.S_ISREG(info.st_mode):
            return None
        return Entry(key, info.st_size, info.st_mtime)

    def read(self, key: str) -> bytes:
        """The whole file."""
        return self._read(key, _whole)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of a file; a length beyond its end costs no memory."""
        if start < 0 or length < 0:
            raise ValueError(f"a range starts at 0 or later and is not negative; got start {start}, length {length}")
        return self._read(key, lambda file, size: _up_to(file, start, min(length, size - start)))

    def write(self, key: str, data: bytes) -> None:
        """Make a file beside the old one and put it in its place; where that is a mount, write into it."""
        self.requests.put += 1
        self._walker.at(key, lambda folder, name: _replace(folder, name, data), writing=True)

    def append(self, key: str, data: bytes) -> None:
        """Add to the file as a whole: what was added in part, because the disk is full, is taken back."""
        self.requests.put += 1
        self._walker.at(key, lambda folder, name: _append(folder, name, data), writing=True)

    def rest(self) -> None:
        """Close the folders that stayed open."""
        self._walker.let_go()

    def delete(self, key: str) -> None:
        """Remove the file, or the link itself; folders stay."""
        with suppress(KeyMissing):
            self._walker.at(key, lambda folder, name: os.unlink(name, dir_fd=folder))

    def drop_empty(self, folder: str) -> None:
        """Remove a real folder; one that still holds something stays."""
        with suppress(StorageError):
            self._walker.at(folder, lambda above, name: os.rmdir(name, dir_fd=above))

    # after every method whose annotations mean the builtin
    def list(self, prefix: str = "", start_after: str = "") -> list[Entry]:
        """Walk the folders in which such keys can be, and no others."""
        with self._walker.afresh():
            return sorted(self._found(prefix, start_after, unfinished=False), key=lambda entry: entry.key)

    def _found(self, prefix: str, start_after: str, *, unfinished: bool) -> Iterator[Entry]:
        """The files with such keys, in no order."""
        self.requests.list += 1
        base = check_key(prefix)[: prefix.rfind("/") + 1]
        waiting = [base]
        while waiting:
            folder = waiting.pop()
            with self._walker.scan(folder, given=folder == base) as entries:
                for key, entry in self._walker.keys(folder, entries, prefix):
                    if entry.is_dir(follow_symlinks=False):
                        below = f"{key}/"
                        # all keys below start so: they sort before start_after unless it lies among them
                        if below > start_after or start_after.startswith(below):
                            waiting.append(below)
                    elif key > start_after and is_unfinished(key) == unfinished:
                        found = self._walker.entry(key, entry)
                        if found is not None:
                            yield found

    def _open(self, key: str, folder: int, name: str) -> int:
        """A file that may not be read costs only itself."""
        try:
            return os.open(name, os.O_RDONLY | PLAIN_FILE, dir_fd=folder)
        except PermissionError as error:
            right = f"a file that user {os.geteuid()} may read"
            raise KeyRefused(self._walker.where(key), f"may not be read: {error.strerror}", right) from error

    def _read(self, key: str, take: Callable[[int, int], bytes]) -> bytes:
        """What `take` gives for a descriptor of a regular file and its size."""
        self.requests.get += 1
        file = self._walker.at(key, lambda folder, name: self._open(key, folder, name))
        try:
            info = os.fstat(file)
            if not stat.S_ISREG(info.st_mode):
                raise KeyMissing(self._walker.where(key), "is not a regular file")
            return take(file, info.st_size)
        except StorageError:
            raise
        except OSError as error:
            raise self._walker.error(key, error) from error
        finally:
            os.close(file)


def _up_to(file: int, start: int, length: int) -> bytes:
    """So many bytes of a file; fewer where it ends before."""
    if length <= 0:
        return b""
    data = os.pread(file, length, start)
    while len(data) < length:
        more = os.pread(file, length - len(data), start + len(data))
        if not more:  # the file ends, or was cut meanwhile
            break
        data += more
    return data


def _whole(file: int, size: int) -> bytes:
    """All bytes of a file, also of one that grows, and of those of the system, which say that they have none."""
    data = _up_to(file, 0, size + 1)
    if 0 < len(data) <= size:
        return data
    with open(file, "rb", buffering=0, closefd=False) as stream:
        return stream.readall()


def _replace(folder: int, name: str, data: bytes) -> None:
    """Put a new file in the place of `name`, or write into it where that is not possible."""
    temporary = f"{secrets.token_hex(8)}.tmp"
    try:
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN_FILE, 0o666, dir_fd=folder)
        with os.fdopen(opened, "wb") as stream:
            stream.write(data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        with suppress(OSError):  # it may never have been made
            os.unlink(temporary, dir_fd=folder)
        if error.errno not in _NOT_REPLACEABLE:
            raise
        try:
            opened = os.open(name, os.O_WRONLY | PLAIN_FILE, dir_fd=folder)
        except FileNotFoundError:  # nothing to write into, so the first error is the one to tell
            raise error from None
        with os.fdopen(opened, "wb") as stream:
            _must_be_regular(opened)
            stream.write(data)
            stream.truncate()


def _append(folder: int, name: str, data: bytes) -> None:
    """Add to the end of `name`, all or nothing."""
    file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | PLAIN_FILE, 0o666, dir_fd=folder)
    try:
        size = _must_be_regular(file)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
        except OSError:
            # half a line would run into the next one
            os.ftruncate(file, size)
            raise
    finally:
        os.close(file)


def _must_be_regular(file: int) -> int:
    """The size of a regular file."""
    info = os.fstat(file)
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")
    return info.st_size


__all__ = ["LONGEST_KEY", "FileStore", "open_store"]
