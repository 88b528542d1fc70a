"""Going through a local folder: to the place of a key, and through the entries of a folder, never following a link out.

What a training job leaves in the folder is untrusted.
Every folder on the way to a key is opened relative to the one before, without following links;
a link is resolved only on second thought, and only when it stays inside.
So a link that is put in place between a check and its use leads nowhere.

Assumptions:
    POSIX (relative opens). Root itself is the user's choice: it may be a link, or not exist yet.
"""

# works on descriptors, where pathlib has no say
# ruff: noqa: PTH100, PTH103, PTH114, PTH118

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from evaluator.errors import KeyMissing, KeyRefused, StorageError, StorageUnavailable
from evaluator.storage.base import Entry, check_key, why_no_key

T = TypeVar("T")

# O_NONBLOCK: opening a FIFO returns at once, and reading a regular file is not changed by it
PLAIN_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# O_PATH (Linux): going through a folder needs no right to list it
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)

_MAYBE_A_LINK = (errno.ELOOP, errno.ENOTDIR)
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EISDIR, errno.ENXIO)


class Walker:
    """Finds what is below a root; what it refuses to touch is noted in `refused`, key -> why."""

    def __init__(self, uri: str, refused: dict[str, str]) -> None:
        """Note the path, as messages show it; the folder may not exist yet."""
        self.root = os.path.abspath(uri)  # a later change of the working folder must not move the root
        self.refused = refused
        self._uri = uri

    def at(self, key: str, action: Callable[[int, str], T], *, writing: bool = False) -> T:
        """What `action` gives for the folder that the key is in (a descriptor) and the name there."""
        check_key(key)
        if problem := why_no_key(key):
            raise (KeyRefused if writing else KeyMissing)(repr(key[:100]), problem)
        try:
            try:
                return self._walk(key, action, make=writing)
            except OSError as error:
                if error.errno not in _MAYBE_A_LINK:
                    raise
                return self._walk(self._resolved(key), action, make=writing)
        except OSError as error:
            raise self.error(key, error, writing=writing) from error

    def keys(
        self, folder: str, entries: Iterable[os.DirEntry[str]], prefix: str = ""
    ) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """The entries whose names can be keys that start with `prefix`."""
        for entry in entries:
            key = folder + entry.name
            if not key.startswith(prefix):
                continue
            if problem := why_no_key(key):
                self.refused[key] = problem
            else:
                yield key, entry

    def entry(self, key: str, entry: os.DirEntry[str]) -> Entry | None:
        """What stands for one file in a listing; None when it has vanished or is refused."""
        try:
            linked = entry.is_symlink()
            info = self._walk(self._resolved(key), status_of) if linked else entry.stat(follow_symlinks=False)
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
    def scan(self, folder: str, *, given: bool) -> Iterator[Iterable[os.DirEntry[str]]]:
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
            raise self.error(folder, error) from error
        finally:
            if opened >= 0:
                os.close(opened)

    def _unscanned(self, folder: str, error: OSError, *, given: bool) -> None:
        """Note or raise why a folder was not listed."""
        if error.errno in _MAYBE_A_LINK:
            parts = folder.rstrip("/").split("/")
            ways = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
            links = [way for way in ways if os.path.islink(os.path.join(self.root, way))]
            self.refused.update(dict.fromkeys(links[:1], "is a link to a folder"))
        elif error.errno in (errno.EACCES, errno.EPERM) and not given:
            # one folder of somebody else's (lost+found on a fresh volume) must not cost the rest
            self.refused[folder] = str(error.strerror)
        elif error.errno not in _NOTHING_THERE:
            raise self.error(folder, error) from error

    def _walk(self, key: str, action: Callable[[int, str], T], *, make: bool = False) -> T:
        """The same without any link on the way; folders are made when asked for."""
        *folders, name = key.split("/")
        if make:
            os.makedirs(self.root, exist_ok=True)  # raises with the folder's name
        at = os.open(self.root, _FOLDER)
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
        root = os.path.realpath(self.root)
        inside = f"{root.rstrip('/')}/"
        target = os.path.realpath(os.path.join(root, key))  # Path would drop a trailing slash
        if not target.startswith(inside):
            raise KeyRefused(self.where(key), "is a link that leads out of the folder")
        return target.removeprefix(inside)

    def error(self, key: str, error: OSError, *, writing: bool = False) -> StorageError:
        """Our word for what the system said."""
        # the root's own path is whole; names opened relative to a folder are not
        named = writing and isinstance(error.filename, str) and error.filename.startswith("/")
        where, what = error.filename if named else self.where(key), str(error.strerror or error)
        if error.errno == errno.ELOOP:
            return KeyRefused(where, what)
        if error.errno in _NOTHING_THERE and not writing:
            return KeyMissing(where, what)
        return StorageUnavailable(where, what)

    def where(self, key: str) -> str:
        """The path as a message shows it; what could steer a terminal is escaped."""
        path = os.path.join(self._uri, key)  # as it was given, not made nicer
        return path if path.isprintable() else repr(path)


def status_of(folder: int, name: str) -> os.stat_result:
    """The status of a name that is not a link; a link is an error like any other open of one."""
    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return info
