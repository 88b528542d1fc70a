"""S3, and every server that speaks like it: keys are what follows the prefix.

It asks for List on the prefix and for Get, and where something is written for Put.

Assumptions:
    One writer per key where something is added to an object (an object is replaced as a whole).
    Modification times are whole seconds: a change within the second that keeps the size is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import ClassVar

from evaluator.clock import Clock, SystemClock
from evaluator.errors import InputError, KeyMissing, KeyRefused, Mistake
from evaluator.storage._s3_bucket import Bucket
from evaluator.storage._s3_connection import Connection, missing_packages
from evaluator.storage._sharing import shared_here
from evaluator.storage.base import Entry, Store, check_key, is_unfinished, why_no_key

LARGEST = 2**50
"""No object has so many bytes, and servers may not understand larger numbers. Source: S3 user guide (50 TB)."""

_BUCKET = re.compile(r"[A-Za-z0-9._-]{3,255}")
"""Source: botocore's own check, with the least length of S3's naming rules."""


def open_store(uri: str, clock: Clock | None = None) -> S3Store:
    """The store at s3://BUCKET/PREFIX; the prefix may be empty, and a slash at its end means nothing.

    Nothing in it is decoded: a key may hold "%", "+", "?" and "#".
    """
    if find_spec("boto3") is None:
        raise missing_packages(uri)
    bucket, prefix = split_uri(uri)
    return S3Store(uri, bucket, prefix, Connection(SystemClock() if clock is None else clock, shared_here()))


def split_uri(uri: str) -> tuple[str, str]:
    """Bucket and prefix of a URI.

    Raises:
        InputError: it names no bucket.
    """
    bucket, _, prefix = uri.partition("://")[2].partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise InputError([Mistake(repr(uri), f"{bucket!r} is not the name of a bucket", "s3://BUCKET/PREFIX")])
    return bucket, prefix


class S3Store(Store):
    """The objects whose keys start with a prefix.

    Attributes:
        refused: key -> why a listing left it out: names that cannot be keys (with empty parts, or ".." as one).
            It grows with every listing.
    """

    is_local: ClassVar[bool] = False

    def __init__(self, uri: str, bucket: str, prefix: str, connection: Connection) -> None:
        """Note where; nothing is asked yet."""
        super().__init__(uri)
        self.bucket = Bucket(connection, bucket, self.requests)
        bare = prefix.rstrip("/")
        self._root = f"{bare}/" if bare else ""

    def below(self, folder: str) -> S3Store:
        """The store of a folder, over the same connection."""
        uri = f"{self.uri.rstrip('/')}/{folder}"
        return S3Store(uri, self.bucket.name, f"{self._root}{check_key(folder)}", self.bucket.connection)

    def wait_at_most(self, seconds: float) -> None:
        """All stores over the same connection."""
        self.bucket.connection.patience = seconds

    def root_problem(self) -> str | None:
        """A prefix without an object is not there: S3 has no empty folders."""
        page = next(self.bucket.pages(self._root, most=1))
        return None if page.objects else "holds no object"

    def folders(self, prefix: str = "") -> list[str]:
        """What stands between `prefix` and the next "/" of a key, as S3 finds it."""
        base = f"{check_key(prefix).rstrip('/')}/".lstrip("/")
        if not _can_be_asked(base):
            return []
        start = self._root + base
        found = []
        for page in self.bucket.pages(start, delimiter="/"):
            names = (folder.removeprefix(start).rstrip("/") for folder in page.folders)
            found += [name for name in names if self._may_be(f"{base}{name}")]
        return sorted(found)

    def files(self, folder: str = "") -> list[Entry]:
        """The keys directly below a folder, as S3 finds them."""
        base = f"{check_key(folder).rstrip('/')}/".lstrip("/")
        if not _can_be_asked(base):
            return []
        entries = [entry for page in self.bucket.pages(self._root + base, delimiter="/") for entry in page.objects]
        return sorted((one for one in self._own(entries) if not is_unfinished(one.key)), key=lambda entry: entry.key)

    def unfinished(self) -> list[str]:
        """All keys with such names."""
        entries = (entry for page in self.bucket.pages(self._root) for entry in page.objects)
        return sorted(entry.key for entry in self._own(entries) if is_unfinished(entry.key))

    def stat(self, key: str) -> Entry | None:
        """Size and time of an object."""
        if is_unfinished(check_key(key)) or why_no_key(key, self._root):
            return None
        return self._look(key)

    def read(self, key: str) -> bytes:
        """The whole object."""
        return self.bucket.get(self._full(key))

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of an object."""
        if start < 0 or length < 0:
            raise ValueError(f"a range starts at 0 or later and is not negative; got start {start}, length {length}")
        full = self._full(key)
        end = min(start + length, LARGEST)
        if start < end:
            return self.bucket.get(full, start, end - start)
        # there is no way to ask for nothing, but what is absent must be told apart
        if self._look(key) is None:
            raise KeyMissing(self.bucket.where(full), "nothing is stored there")
        return b""

    def write(self, key: str, data: bytes) -> None:
        """Replace the object; S3 shows the old one until the new one is whole."""
        self.bucket.put(self._full(key, writing=True), bytes(data))

    def append(self, key: str, data: bytes) -> None:
        """Read the object and write it anew with the data at its end; there is no other way on S3."""
        full = self._full(key, writing=True)
        try:
            before = self.bucket.get(full)
        except KeyMissing:
            before = b""
        self.bucket.put(full, before + data)

    def delete(self, key: str) -> None:
        """Remove the object."""
        if not why_no_key(check_key(key), self._root):
            self.bucket.delete(self._root + key)

    # after every method whose annotations mean the builtin
    def list(self, prefix: str = "", start_after: str = "") -> list[Entry]:
        """Page through the keys after the last one that is known; some servers do not sort them as S3 does."""
        if not _can_be_asked(check_key(prefix) + start_after):
            return []
        after = self._root + start_after if start_after else ""
        entries = [entry for page in self.bucket.pages(self._root + prefix, after) for entry in page.objects]
        wanted = (one for one in self._own(entries) if one.key > start_after and not is_unfinished(one.key))
        return sorted(wanted, key=lambda entry: entry.key)

    def _own(self, entries: Iterable[Entry]) -> Iterable[Entry]:
        """The entries with the store's own keys, without those that cannot be keys."""
        for entry in entries:
            key = entry.key.removeprefix(self._root)
            # consoles mark a folder by an object of its name
            if not key.endswith("/") and key and self._may_be(key):
                yield Entry(key, entry.size, entry.modified)

    def _may_be(self, key: str) -> bool:
        problem = why_no_key(key, self._root)
        if problem:
            self.refused[key] = problem
        return not problem

    def _look(self, key: str) -> Entry | None:
        found = self.bucket.look(self._root + key)
        return None if found is None else Entry(key, found.size, found.modified)

    def _full(self, key: str, *, writing: bool = False) -> str:
        """The whole key in the bucket."""
        if problem := why_no_key(check_key(key), self._root):
            raise (KeyRefused if writing else KeyMissing)(repr(key[:100]), problem)
        return self._root + key


def _can_be_asked(text: str) -> bool:
    """Whether a text can be sent; no key starts with one that cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
