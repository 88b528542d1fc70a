"""Reads one file by its URI, for what is not polled: a configuration, a rule file."""

from __future__ import annotations

from evaluator.errors import KeyMissing, KeyRefused, StorageError, StorageUnavailable
from evaluator.storage._s3_connection import is_elsewhere, make_client, missing_packages
from evaluator.storage._s3_errors import request_errors, trouble_of, unavailable
from evaluator.storage.s3 import split_uri


def read_uri(uri: str) -> bytes:
    """The content of the one object at an s3:// URI.

    Raises:
        InputError: the URI names no bucket, or packages for S3 are not installed.
        StorageError: there is no such object, it may not be read, or S3 does not answer.
    """
    bucket, key = split_uri(uri)
    try:
        import s3fs  # noqa: PLC0415 - optional, imported when needed
    except ImportError as error:
        raise missing_packages(uri) from error
    here = make_client(uri).meta
    how = {"addressing_style": "path"} if is_elsewhere(here.endpoint_url) else {}
    # Its cache of listings never expires, so that a file written after the first look would never be seen. The file
    # system itself is not kept either: it would keep the credentials that it began with.
    files = s3fs.S3FileSystem(
        use_listings_cache=False,
        skip_instance_cache=True,
        client_kwargs={"region_name": here.region_name},
        config_kwargs={"s3": how},
    )
    try:
        content: bytes = files.cat_file(f"{bucket}/{key}")
    except request_errors() as error:
        raise _said(uri, error) from error
    return content


def _said(uri: str, error: Exception) -> StorageError:
    """Our word for what s3fs said: it has put Python's own in the place of S3's codes."""
    if isinstance(error, FileNotFoundError):
        return KeyMissing(uri, "there is no such object")
    if isinstance(error, PermissionError):
        return KeyRefused(uri, "may not be read (AccessDenied)", "allow s3:GetObject for this key")
    if isinstance(error, OSError):
        return StorageUnavailable(uri, f"cannot be read: {error.strerror or error}")
    return unavailable(uri, trouble_of(error))


__all__ = ["read_uri"]
