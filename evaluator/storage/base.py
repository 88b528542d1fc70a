"""Store: bytes under keys below one root, whatever holds them."""

# ruff: noqa: B027 - a store overrides what concerns it; nothing to do is the right default

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from evaluator.errors import KeyRefused

UNFINISHED = (".tmp", ".sagemaker-uploading", ".sagemaker-uploaded")
"""Names that end so are being written or moved by somebody else and are never listed.

Source: saved format of smdebug 1.0.34 (temporary files) and SageMaker's uploader (user report 67).
"""

LONGEST_KEY = 1024
"""Longer keys are not listed, so that a very deep tree costs nothing.

Source: Amazon S3 user guide, "Naming Amazon S3 objects": a key has at most 1,024 bytes.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored object as a listing shows it."""

    key: str
    size: int
    modified: float
    """Seconds since the epoch, by the store's own clock."""


@dataclass(slots=True)
class Requests:
    """How often a store was asked, for the status file and for cost: repeats are counted among the others, too."""

    list: int = 0
    get: int = 0
    put: int = 0
    retries: int = 0


@dataclass
class Store(ABC):
    """Bytes under keys. Keys are relative to the root, parts joined by "/", never "..", never absolute.

    Raises, from every method:
        KeyRefused: the key would leave the root (also through a symbolic link), or may not be read.
        StorageUnavailable: the store did not answer, or refused all.
    """

    uri: str
    requests: Requests = field(default_factory=Requests)
    refused: dict[str, str] = field(default_factory=dict)
    """Key -> why a listing left it out, where somebody should know: links that lead out, folders not to be read, ..."""
    is_local: ClassVar[bool] = True
    """Whether a request costs microseconds, not milliseconds: small reads are then not worth a thread."""

    @abstractmethod
    def below(self, folder: str) -> Store:
        """The store of a folder directly below the root."""

    @abstractmethod
    def folders(self, prefix: str = "") -> list[str]:
        """The names of the folders directly below `prefix` (a folder itself, or "" for the root), sorted."""

    @abstractmethod
    def unfinished(self) -> list[str]:
        """The keys that a listing leaves out because somebody is still writing or moving what is there, sorted."""

    def files(self, folder: str = "") -> list[Entry]:
        """What a listing shows directly in a folder (or "" for the root), and nothing of the folders in it.

        A store that can leave those out of the listing itself does it here.
        """
        prefix = f"{check_key(folder).rstrip('/')}/".lstrip("/")
        return [entry for entry in self.list(prefix) if "/" not in entry.key[len(prefix) :]]

    @abstractmethod
    def list(self, prefix: str = "", start_after: str = "") -> list[Entry]:
        """Every object whose key starts with `prefix` and sorts after `start_after`, sorted by key.

        Unfinished names are left out, an absent prefix is an empty list, and what vanishes meanwhile is left out.
        """

    @abstractmethod
    def stat(self, key: str) -> Entry | None:
        """What a listing would show for this key now, or None."""

    @abstractmethod
    def read(self, key: str) -> bytes:
        """The whole object. Raises KeyMissing."""

    @abstractmethod
    def read_range(self, key: str, start: int, length: int) -> bytes:
        """`length` bytes from `start`, fewer where the object ends before. Raises KeyMissing."""

    @abstractmethod
    def write(self, key: str, data: bytes) -> None:
        """Replace the object as a whole: a reader sees the old or the new one, never a part."""

    @abstractmethod
    def append(self, key: str, data: bytes) -> None:
        """Add to the end of the object, making it if it is absent."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove the object; absent is fine."""

    def drop_empty(self, folder: str) -> None:
        """Remove a folder in which nothing is left; where folders are no more than parts of keys there is none."""

    def rest(self) -> None:
        """Nothing will be asked for a while: let go of what is held open, since one process can follow many runs."""

    def wait_at_most(self, seconds: float) -> None:
        """From now on, repeat a request that is not answered for no longer than this; a local store repeats nothing."""

    def root_problem(self) -> str | None:
        """Why nothing can be below the root ("does not exist", "is a file"), or None where it may be there."""
        return None


_ORDINARY = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""What nearly all keys look like; whatever else there is is looked at more closely."""


def check_key(key: str) -> str:
    """The key itself, when it can only name something below a root. Raises KeyRefused."""
    parts = key.split("/")
    if key.startswith("/") or "\\" in key or "\0" in key or ".." in parts:
        raise KeyRefused(repr(key), "leaves the folder it is in", "keys are relative and have no '..'")
    return key


def why_no_key(key: str, root: str = "") -> str:
    """Why a name in a store cannot be a key; empty when it can. `root` counts for the length where it is stored too."""
    if len(root) + len(key) <= LONGEST_KEY // 4 and _ORDINARY.fullmatch(key):
        return ""
    try:
        check_key(key)
        length = len((root + key).encode())
    except KeyRefused as error:
        return error.mistake.what
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if length > LONGEST_KEY:
        return f"is longer than {LONGEST_KEY} bytes"
    return "is not the name of a file" if {"", "."}.intersection(key.split("/")) else ""


def is_unfinished(key: str) -> bool:
    """Whether somebody else is still writing or moving what is under this key."""
    return key.endswith(UNFINISHED)
