"""A local folder: keys are paths below it, and nothing outside of it is ever read or written.

What a training job leaves in the folder is untrusted.
Every folder on the way to a key is opened relative to the one before, without following links;
a link is resolved only on second thought, and only when it stays inside.
So a link that is put in place between a check and its use leads nowhere.

Assumptions:
    POSIX (relative opens, `pread`). Root itself is the user's choice: it may be a link, or not exist yet.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from evaluator.errors import InputError, KeyMissing, KeyRefused, Mistake, StorageError, StorageUnavailable
from evaluator.storage.base import Entry, Store, check_key, is_unfinished

T = TypeVar("T")

LONGEST_KEY = 1024
"""Longer keys are not listed, so that a very deep tree costs nothing.

Source: Amazon S3 user guide, "Naming Amazon S3 objects": a key has at most 1,024 bytes.
"""

# O_NONBLOCK: opening a FIFO returns at once, and reading a regular file is not changed by it
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# O_PATH (Linux): going through a folder needs no right to list it
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)

_MAYBE_A_LINK = (errno.ELOOP, errno.ENOTDIR)
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EISDIR, errno.ENXIO)
# a file that is itself a mount point cannot be replaced, and beside it there may be no right to make another one
_NOT_REPLACEABLE = (errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES, errno.EROFS)


def open_store(uri: str) -> FileStore:
    """The folder that a plain path or a file:// URI names."""
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
        self._root = os.path.abspath(root)  # a later change of the working folder must not move the root

    def root_problem(self) -> str | None:
        """Whether the root is missing or is no folder."""
        if os.path.isdir(self._root):
            return None
        return "is not a folder" if os.path.lexists(self._root) else "does not exist"

    def folders(self, prefix: str = "") -> list[str]:
        """The real folders in a folder; links to folders are refused."""
        self.requests.list += 1
        base = f"{check_key(prefix).rstrip('/')}/".lstrip("/")
        names = []
        with self._scan(base, given=True) as entries:
            for key, entry in self._keys(base, entries):
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                elif entry.is_symlink():
                    self._entry(key, entry)
        return sorted(names)

    def stat(self, key: str) -> Entry | None:
        """Size and time of a regular file."""
        self.requests.get += 1
        try:
            info = self._at(key, _status)
        except KeyMissing:
            return None
        if is_unfinished(key) or not stat.S_ISREG(info.st_mode):
            return None
        return Entry(key, info.st_size, info.st_mtime)

    def read(self, key: str) -> bytes:
        """The whole file."""
        with self._reading(key) as (file, _), open(file, "rb", buffering=0, closefd=False) as stream:
            return stream.readall()

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of a file; a length beyond its end costs no memory."""
        if start < 0 or length < 0:
            raise ValueError(f"a range starts at 0 or later and is not negative; got start {start}, length {length}")
        with self._reading(key) as (file, size):
            end = min(start + length, size)
            data = b""
            while start + len(data) < end:
                more = os.pread(file, end - start - len(data), start + len(data))
                if not more:  # the file was cut meanwhile
                    break
                data += more
            return data

    def write(self, key: str, data: bytes) -> None:
        """Make a file beside the old one and put it in its place; where that is a mount, write into it."""
        self.requests.put += 1
        self._at(key, lambda folder, name: _replace(folder, name, data), writing=True)

    def append(self, key: str, data: bytes) -> None:
        """Add to the file as a whole: what was added in part, because the disk is full, is taken back."""
        self.requests.put += 1
        self._at(key, lambda folder, name: _append(folder, name, data), writing=True)

    def delete(self, key: str) -> None:
        """Remove the file, or the link itself; folders stay."""
        with suppress(KeyMissing):
            self._at(key, lambda folder, name: os.unlink(name, dir_fd=folder))

    # after every method whose annotations mean the builtin
    def list(self, prefix: str = "", start_after: str = "") -> list[Entry]:
        """Walk the folders in which such keys can be, and no others."""
        self.requests.list += 1
        base = check_key(prefix)[: prefix.rfind("/") + 1]
        found = []
        waiting = [base]
        while waiting:
            folder = waiting.pop()
            with self._scan(folder, given=folder == base) as entries:
                for key, entry in self._keys(folder, entries, prefix):
                    if entry.is_dir(follow_symlinks=False):
                        below = f"{key}/"
                        # all keys below start so: they sort before start_after unless it lies among them
                        if below > start_after or start_after.startswith(below):
                            waiting.append(below)
                    elif key > start_after and not is_unfinished(key):
                        found.append(self._entry(key, entry))
        return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.key)

    def _keys(
        self, folder: str, entries: Iterable[os.DirEntry[str]], prefix: str = ""
    ) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """The entries whose names can be keys that start with `prefix`."""
        for entry in entries:
            key = folder + entry.name
            if not key.startswith(prefix):
                continue
            if problem := _not_a_key(key):
                self.refused[key] = problem
            else:
                yield key, entry

    def _entry(self, key: str, entry: os.DirEntry[str]) -> Entry | None:
        """What stands for one file in a listing; None when it has vanished or is refused."""
        try:
            linked = entry.is_symlink()
            info = self._walk(self._resolved(key), _status) if linked else entry.stat(follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except KeyRefused as error:
            self.refused[key] = error.mistake.what
            return None
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EACCES, errno.EPERM):
                raise
            self.refused[key] = str(error.strerror)
            return None
        if stat.S_ISREG(info.st_mode):
            return Entry(key, info.st_size, info.st_mtime)
        self.refused[key] = "is a link to a folder" if stat.S_ISDIR(info.st_mode) else "is not a regular file"
        return None

    @contextmanager
    def _scan(self, folder: str, *, given: bool) -> Iterator[Iterable[os.DirEntry[str]]]:
        """The entries of a folder ("" or ending in "/"); none when it is absent, vanishes, or may not be read."""
        entries: Iterable[os.DirEntry[str]] = ()
        opened = -1
        try:
            try:
                opened = self._walk(folder, lambda at, _: os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at))
                with os.scandir(opened) as scan:
                    entries = list(scan)
            except OSError as error:
                self._unscanned(folder, error, given=given)
            yield entries  # their status is asked of the open folder
        except OSError as error:
            raise self._error(folder, error) from error
        finally:
            if opened >= 0:
                os.close(opened)

    def _unscanned(self, folder: str, error: OSError, *, given: bool) -> None:
        """Note or raise why a folder was not listed."""
        if error.errno in _MAYBE_A_LINK:
            parts = folder.rstrip("/").split("/")
            ways = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
            links = [way for way in ways if os.path.islink(os.path.join(self._root, way))]
            self.refused.update(dict.fromkeys(links[:1], "is a link to a folder"))
        elif error.errno in (errno.EACCES, errno.EPERM) and not given:
            # one folder of somebody else's (lost+found on a fresh volume) must not cost the rest
            self.refused[folder] = str(error.strerror)
        elif error.errno not in _NOTHING_THERE:
            raise self._error(folder, error) from error

    @contextmanager
    def _reading(self, key: str) -> Iterator[tuple[int, int]]:
        """A descriptor of a regular file, and its size."""
        self.requests.get += 1
        file = self._at(key, lambda folder, name: os.open(name, os.O_RDONLY | _FILE, dir_fd=folder))
        try:
            info = os.fstat(file)
            if not stat.S_ISREG(info.st_mode):
                raise KeyMissing(self._where(key), "is not a regular file")
            yield file, info.st_size
        except StorageError:
            raise
        except OSError as error:
            raise self._error(key, error) from error
        finally:
            os.close(file)

    def _at(self, key: str, action: Callable[[int, str], T], *, writing: bool = False) -> T:
        """What `action` gives for the folder that the key is in (a descriptor) and the name there."""
        check_key(key)
        if problem := _not_a_key(key):
            raise (KeyRefused if writing else KeyMissing)(repr(key[:100]), problem)
        try:
            try:
                return self._walk(key, action, make=writing)
            except OSError as error:
                if error.errno not in _MAYBE_A_LINK:
                    raise
                return self._walk(self._resolved(key), action, make=writing)
        except OSError as error:
            raise self._error(key, error, writing=writing) from error

    def _walk(self, key: str, action: Callable[[int, str], T], *, make: bool = False) -> T:
        """The same without any link on the way; folders are made when asked for."""
        *folders, name = key.split("/")
        if make:
            os.makedirs(self._root, exist_ok=True)  # raises with the folder's name
        at = os.open(self._root, _FOLDER)
        try:
            for folder in folders:
                try:
                    inner = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
                except FileNotFoundError:
                    if not make:
                        raise
                    with suppress(FileExistsError):  # another process made it meanwhile
                        os.mkdir(folder, dir_fd=at)
                    inner = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = inner
            return action(at, name)
        finally:
            os.close(at)

    def _resolved(self, key: str) -> str:
        """The key of what the links in `key` lead to. Raises KeyRefused when that is outside."""
        root = os.path.realpath(self._root)
        inside = f"{root.rstrip('/')}/"
        target = os.path.realpath(os.path.join(root, key))  # Path would drop a trailing slash
        if not target.startswith(inside):
            raise KeyRefused(self._where(key), "is a link that leads out of the folder")
        return target.removeprefix(inside)

    def _error(self, key: str, error: OSError, *, writing: bool = False) -> StorageError:
        """Our word for what the system said."""
        # the root's own path is whole; names opened relative to a folder are not
        named = writing and isinstance(error.filename, str) and error.filename.startswith("/")
        where, what = error.filename if named else self._where(key), str(error.strerror or error)
        if error.errno == errno.ELOOP:
            return KeyRefused(where, what)
        if error.errno in _NOTHING_THERE and not writing:
            return KeyMissing(where, what)
        return StorageUnavailable(where, what)

    def _where(self, key: str) -> str:
        """The path as a message shows it; what could steer a terminal is escaped."""
        path = os.path.join(self.uri, key)  # as it was given, not made nicer
        return path if path.isprintable() else repr(path)


def _not_a_key(key: str) -> str:
    """Why a name on disk cannot be a key; empty when it can."""
    try:
        check_key(key)
        length = len(key.encode())
    except KeyRefused as error:
        return error.mistake.what
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if length > LONGEST_KEY:
        return f"is longer than {LONGEST_KEY} bytes"
    return "is not the name of a file" if {"", "."}.intersection(key.split("/")) else ""


def _status(folder: int, name: str) -> os.stat_result:
    """The status of a name that is not a link; a link is an error like any other open of one."""
    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return info


def _replace(folder: int, name: str, data: bytes) -> None:
    """Put a new file in the place of `name`, or write into it where that is not possible."""
    temporary = f"{secrets.token_hex(8)}.tmp"
    try:
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o666, dir_fd=folder)
        with os.fdopen(opened, "wb") as stream:
            stream.write(data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        with suppress(OSError):  # it may never have been made
            os.unlink(temporary, dir_fd=folder)
        if error.errno not in _NOT_REPLACEABLE:
            raise
        try:
            opened = os.open(name, os.O_WRONLY | _FILE, dir_fd=folder)
        except FileNotFoundError:  # nothing to write into, so the first error is the one to tell
            raise error from None
        with os.fdopen(opened, "wb") as stream:
            _must_be_regular(opened)
            stream.write(data)
            stream.truncate()


def _append(folder: int, name: str, data: bytes) -> None:
    """Add to the end of `name`, all or nothing."""
    file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _FILE, 0o666, dir_fd=folder)
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
