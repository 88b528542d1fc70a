"""What rule files may import but cannot use in this version, each ending with an error that says so."""

from __future__ import annotations

from typing import NoReturn

from evaluator.user_rules.exceptions import SMDebugNotImplementedError
from evaluator.user_rules.trial import Trial


def absent(what: str, why: str) -> NoReturn:
    """Say what is not there."""
    raise SMDebugNotImplementedError(f"{what}: {why}")


class S3Trial(Trial):
    """A trial on S3."""

    def __init__(self, name: str, bucket_name: str, prefix_name: str, *_: object, **__: object) -> None:
        """Say that it is not there yet."""
        absent(f"trial {name!r} at s3://{bucket_name}/{prefix_name}", "it comes with the S3 store")


class S3Handler:
    """Requests to S3."""

    @staticmethod
    def get_object(*_: object, **__: object) -> NoReturn:
        """Say that it is not there yet."""
        absent("S3Handler.get_object", "it comes with the S3 store")

    @staticmethod
    def get_objects(*_: object, **__: object) -> NoReturn:
        """Say that it is not there yet."""
        absent("S3Handler.get_objects", "it comes with the S3 store")

    @staticmethod
    def list_prefix(*_: object, **__: object) -> NoReturn:
        """Say that it is not there yet."""
        absent("S3Handler.list_prefix", "it comes with the S3 store")

    @staticmethod
    def list_prefixes(*_: object, **__: object) -> NoReturn:
        """Say that it is not there yet."""
        absent("S3Handler.list_prefixes", "it comes with the S3 store")

    @staticmethod
    def delete_prefix(*_: object, **__: object) -> NoReturn:
        """Say that it is not there yet."""
        absent("S3Handler.delete_prefix", "it comes with the S3 store")


class ReadObjectRequest:
    """What part of which object to read."""

    def __init__(self, path: str, start: int | None = None, length: int | None = None) -> None:
        """Note what is asked for."""
        self.path = path
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
