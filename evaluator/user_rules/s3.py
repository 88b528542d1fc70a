"""Requests to S3 as rule files make them, over the store's connection: asked again where that helps.

Source:
    smdebug-api.md, sections 8 and 12. Unlike the reference, an outage is never an empty list.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from evaluator.errors import EvaluatorError, KeyMissing, StorageError
from evaluator.storage import open_store
from evaluator.storage.s3 import S3Store
from evaluator.user_rules.core_utils import is_s3
from evaluator.user_rules.exceptions import SMDebugError, SMDebugValueError
from evaluator.user_rules.surroundings import surroundings

AT_ONCE = 8
"""Objects that are read at the same time, by threads: processes that are forked can hang."""


class ReadObjectRequest:
    """What part of which object to read; a start without a length means to the end."""

    def __init__(self, path: str, start: int | None = None, length: int | None = None) -> None:
        """Note what is asked for."""
        found, bucket, key = is_s3(path)
        if not found:
            raise SMDebugValueError(f"path: {path!r} is not on S3; s3://BUCKET/KEY would be right")
        if length is not None and start is None:
            raise SMDebugValueError(f"length: {length} is given without a start")
        self.path = path
        self.bucket = bucket
        self.key = key
        self.start = start
        self.length = length


class ListRequest:
    """Which objects to list."""

    def __init__(self, Bucket: str, Prefix: str = "", Delimiter: str = "", StartAfter: str = "") -> None:  # noqa: N803
        """Note what is asked for."""
        self.Bucket = Bucket
        self.Prefix = Prefix
        self.Delimiter = Delimiter
        self.StartAfter = StartAfter


class S3Handler:
    """Requests to S3; whatever is wrong with one is an SMDebugError."""

    @staticmethod
    def get_object(object_request: ReadObjectRequest) -> bytes | None:
        """The object, or a part of it; None when it is not there."""
        return _read(_bucket(str(object_request.bucket)), object_request)

    @staticmethod
    def get_objects(
        object_requests: Sequence[ReadObjectRequest], use_multiprocessing: bool = True, n_process: int | None = None
    ) -> list[bytes | None]:
        """Several of them, in the same order; how many are read at once is ours to choose."""
        del use_multiprocessing, n_process
        stores = {one.bucket: _bucket(str(one.bucket)) for one in object_requests}
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="get-objects") as pool:
            return list(pool.map(lambda one: _read(stores[one.bucket], one), object_requests))

    @staticmethod
    def list_prefix(lr: ListRequest) -> list[str]:
        """The keys; with a delimiter the common prefixes stand first."""
        try:
            pages = list(_bucket(lr.Bucket).bucket.pages(lr.Prefix, lr.StartAfter, lr.Delimiter))
        except StorageError as error:
            raise SMDebugError(error) from error
        folders = [folder for page in pages for folder in page.folders]
        return folders + [entry.key for page in pages for entry in page.objects]

    @staticmethod
    def list_prefixes(list_requests: Sequence[ListRequest]) -> list[list[str]]:
        """Several listings, in the same order."""
        return [S3Handler.list_prefix(one) for one in list_requests]

    @staticmethod
    def delete_prefix(path: str | None = None, delete_request: ListRequest | None = None) -> None:
        """Remove every object whose key starts so."""
        found, bucket, prefix = is_s3(path) if path is not None else (delete_request is not None, None, None)
        if delete_request is not None:
            bucket, prefix = delete_request.Bucket, delete_request.Prefix
        if not found or not bucket:
            raise SMDebugValueError(f"path: {path!r} is not on S3; s3://BUCKET/PREFIX would be right")
        store = _bucket(bucket)
        try:
            for key in S3Handler.list_prefix(ListRequest(bucket, prefix or "")):
                store.bucket.delete(key)
        except StorageError as error:
            raise SMDebugError(error) from error


def _bucket(name: str) -> S3Store:
    """A whole bucket."""
    try:
        store = open_store(f"s3://{name}", surroundings().clock)
    except EvaluatorError as error:
        raise SMDebugError(error) from error
    if not isinstance(store, S3Store):
        raise TypeError(f"s3://{name} was opened as {type(store).__name__}")
    return store


def _read(store: S3Store, request: ReadObjectRequest) -> bytes | None:
    """One object, by its full key; an empty part costs no request."""
    if request.length == 0:
        return b""
    try:
        return store.bucket.get(str(request.key), request.start or 0, request.length)
    except KeyMissing:
        return None
    except StorageError as error:
        raise SMDebugError(error) from error
