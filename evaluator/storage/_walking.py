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

MOST_FOLDERS = 5
"""Folders that stay open until the next listing, so that the next file in them is reached with one step; few, since
one process can follow hundreds of runs."""

T = TypeVar("T")

# O_NONBLOCK: opening a FIFO returns at once, and reading a regular file is not changed by it
PLAIN_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# O_PATH (Linux): going through a folder needs no right to list it
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)

_MAYBE_A_LINK = (errno.ELOOP, errno.ENOTDIR)
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EISDIR, errno.ENXIO)


class _Folder:
    """A descriptor of an open folder, closed when nobody uses it any more."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


def _open_folder(above: int, name: str) -> _Folder:
    return _Folder(os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above))


class Walker:
    """Finds what is below a root; what it refuses to touch is noted in `refused`, key -> why."""

    def __init__(self, uri: str, refused: dict[str, str]) -> None:
        """Note the path, as messages show it; the folder may not exist yet."""
        self.root = os.path.abspath(uri)  # a later change of the working folder must not move the root
        self.refused = refused
        self._uri = uri
        self._folders: dict[str, _Folder] = {}

    def at(self, key: str, action: Callable[[int, str], T], *, writing: bool = False) -> T:
        """What `action` gives for the folder that the key is in (a descriptor) and the name there."""
        if problem := why_no_key(key):
            check_key(key)
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

    def let_go(self) -> None:
        """Leave no folder open."""
        self._folders.clear()

    @contextmanager
    def afresh(self) -> Iterator[None]:
        """Go by the folders that are there now, others may stand in their places since; leave none open."""
        self.let_go()
        try:
            yield
        finally:
            self.let_go()

    def _walk(self, key: str, action: Callable[[int, str], T], *, make: bool = False) -> T:
        """The same without any link on the way; folders are made when asked for."""
        folder, _, name = key.rpartition("/")
        if make:
            with self.afresh():  # what is written must be found under its name
                os.makedirs(self.root, exist_ok=True)  # raises with the folder's name
                self._make(folder)
                return self._in(folder, name, action)
        remembered = len(self._folders)
        try:
            return self._in(folder, name, action)
        except OSError as error:
            # a remembered folder may have been moved away meanwhile
            if not remembered or error.errno not in (*_NOTHING_THERE, errno.ESTALE):
                raise
            self.let_go()
            return self._in(folder, name, action)

    def _in(self, folder: str, name: str, action: Callable[[int, str], T]) -> T:
        at = self._folder(folder)  # named, since one that is not remembered closes when nobody holds it
        return action(at.number, name)

    def _folder(self, path: str) -> _Folder:
        """A folder below the root, each on the way opened relative to the one above it."""
        known = self._folders.get(path)
        if known is not None:
            return known
        at = self._folders.get("") or self._remember("", _Folder(os.open(self.root, _FOLDER)))
        way = ""
        for name in path.split("/") if path else ():
            way = f"{way}/{name}" if way else name
            at = self._folders.get(way) or self._remember(way, _open_folder(at.number, name))
        return at

    def _remember(self, path: str, folder: _Folder) -> _Folder:
        if len(self._folders) < MOST_FOLDERS:
            self._folders[path] = folder
        return folder

    def _make(self, path: str) -> None:
        """Make what is missing of a folder below the root."""
        at = ""
        for name in path.split("/") if path else ():
            above, at = at, f"{at}/{name}" if at else name
            try:
                self._folder(at)
            except FileNotFoundError:
                with suppress(FileExistsError):  # another process made it meanwhile
                    self._in(above, name, lambda at, name: os.mkdir(name, dir_fd=at))

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
