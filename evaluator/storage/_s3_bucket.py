"""The few requests that are made to a bucket, and what their answers mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from evaluator.errors import KeyMissing, KeyRefused, StorageError, StorageUnavailable
from evaluator.storage._s3_connection import Connection, Kind
from evaluator.storage._s3_errors import NotAnAnswer, Refused, unavailable
from evaluator.storage.base import Entry, Requests

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".txt": "text/plain; charset=utf-8",
}

_FORBIDDEN = 403
_NOT_FOUND = 404
_NOT_SATISFIABLE = 416
_PART = 206


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to a listing: at most a thousand objects and folders, by their full keys."""

    objects: list[Entry]
    folders: list[str]


class Bucket:
    """One bucket; keys are full ones."""

    def __init__(self, connection: Connection, name: str, requests: Requests) -> None:
        """Ask nothing yet."""
        self.name = name
        self.connection = connection
        self._requests = requests
        self._mute = False
        """Whether a HEAD cannot tell what is absent from what is forbidden."""

    def pages(self, prefix: str, start_after: str = "", delimiter: str = "", most: int = 1000) -> Iterator[Page]:
        """What there is under a prefix, page by page, at most so much on each.

        Raises:
            StorageUnavailable: it may not be listed, or S3 does not answer.
        """
        how: dict[str, Any] = {"Bucket": self.name, "Prefix": prefix, "MaxKeys": most}
        if delimiter:
            how["Delimiter"] = delimiter
        if start_after:
            how["StartAfter"] = start_after
        while True:
            answer = self._page(how)
            objects = [
                Entry(one["Key"], one["Size"], _seconds(one["LastModified"])) for one in answer.get("Contents", ())
            ]
            yield Page(objects, [one["Prefix"] for one in answer.get("CommonPrefixes", ())])
            if not answer["IsTruncated"]:
                return
            token = answer.get("NextContinuationToken")
            if token is None or token == how.get("ContinuationToken"):
                raise StorageUnavailable(self.where(prefix), "S3 lists a part and does not say how to go on")
            how["ContinuationToken"] = token

    def look(self, key: str) -> Entry | None:
        """What a listing shows for one key, or None. Asks for the object, which costs less than a listing."""
        if not self._mute:
            try:
                return self.connection.ask(
                    self.where(key), self._requests, "get", lambda client: _entry(client, self.name, key)
                )
            except Refused as refused:
                if refused.trouble.status == _NOT_FOUND:
                    return None
                # This answer has no body that says why. S3 also forbids what is absent to those who may list a prefix
                # only, so the listing has to tell, now and from now on.
                found = self.listed(key)
                self._mute = found is None and refused.trouble.status == _FORBIDDEN
                return found
        return self.listed(key)

    def listed(self, key: str) -> Entry | None:
        """The same by a listing."""
        page = next(self.pages(key, most=1))
        return next((entry for entry in page.objects if entry.key == key), None)

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """An object, or a part of it that is not empty.

        Raises:
            KeyMissing: S3 says that there is no such key.
            KeyRefused: it is there and may not be read.
            StorageUnavailable: S3 does not answer.
        """
        part = {} if start == 0 and length is None else {"Range": f"bytes={start}-{_end(start, length)}"}

        def fetch(client: Any) -> bytes:
            answer = client.get_object(Bucket=self.name, Key=key, **part)
            if "ETag" not in answer:
                raise NotAnAnswer("the answer for an object has no tag")
            data: bytes = answer["Body"].read()
            if part and answer["ResponseMetadata"]["HTTPStatusCode"] != _PART:
                # a server that knows no ranges gives everything
                return data[start : None if length is None else start + length]
            return data

        try:
            return self.connection.ask(self.where(key), self._requests, "get", fetch)
        except Refused as refused:
            if refused.trouble.status == _NOT_SATISFIABLE:
                return b""
            raise self._unread(key, refused) from refused

    def put(self, key: str, data: bytes) -> None:
        """Write an object as a whole; its ending says what browsers are told that it is."""
        at = self._at(key)
        if kind := CONTENT_TYPES.get(key[key.rfind(".") :]):
            at["ContentType"] = kind
        self._change(key, "put", "written", "s3:PutObject", lambda client: client.put_object(Body=data, **at))

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""
        at = self._at(key)
        self._change(key, "delete", "removed", "s3:DeleteObject", lambda client: client.delete_object(**at))

    def where(self, key: str) -> str:
        """A key as a message shows it; what could steer a terminal is escaped."""
        uri = f"s3://{self.name}/{key}"
        return uri if uri.isprintable() else repr(uri)

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self.name, "Key": key}

    def _change(self, key: str, kind: Kind, done: str, action: str, change: Callable[[Any], Any]) -> None:
        try:
            self.connection.ask(self.where(key), self._requests, kind, change)
        except Refused as refused:
            if refused.trouble.status == _FORBIDDEN:
                what = f"may not be {done} ({refused.trouble.code})"
                raise StorageUnavailable(self.where(key), what, f"allow {action} for this key") from refused
            raise unavailable(self.where(key), refused.trouble) from refused

    def _page(self, how: dict[str, Any]) -> dict[str, Any]:
        where = self.where(how["Prefix"])
        try:
            return self.connection.ask(where, self._requests, "list", lambda client: _listing(client, how))
        except Refused as refused:
            if refused.trouble.status == _FORBIDDEN:
                right = f"allow s3:ListBucket on the bucket {self.name!r} for the prefix {how['Prefix']!r}"
                raise StorageUnavailable(where, f"may not be listed ({refused.trouble.code})", right) from refused
            raise unavailable(where, refused.trouble) from refused

    def _unread(self, key: str, refused: Refused) -> StorageError:
        trouble = refused.trouble
        if trouble.code == "NoSuchKey":
            return KeyMissing(self.where(key), "nothing is stored there")
        if trouble.status != _FORBIDDEN:
            return unavailable(self.where(key), trouble)
        # see `look`: what is absent is forbidden, too, to those who may list a prefix only
        if self.listed(key) is None:
            return KeyMissing(self.where(key), "nothing is stored there")
        if trouble.code == "InvalidObjectState":
            return KeyRefused(self.where(key), "is archived (InvalidObjectState)", "restore the object")
        action = "kms:Decrypt on its key" if "kms:" in trouble.text else "s3:GetObject for this key"
        return KeyRefused(self.where(key), f"may not be read ({trouble.code})", f"allow {action}")


def _listing(client: Any, how: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = client.list_objects_v2(**how)
    if "IsTruncated" not in answer:
        # an answer from somebody else in between must not look like an empty prefix
        raise NotAnAnswer("the answer to a listing does not say whether it is whole")
    return answer


def _entry(client: Any, bucket: str, key: str) -> Entry:
    answer = client.head_object(Bucket=bucket, Key=key)
    if "LastModified" not in answer:
        raise NotAnAnswer("the answer for an object does not say when it was written")
    return Entry(key, answer["ContentLength"], _seconds(answer["LastModified"]))


def _seconds(modified: Any) -> float:
    """A modification time in whole seconds: some servers list fractions, and none tells them of a single object."""
    return float(math.floor(modified.timestamp()))


def _end(start: int, length: int | None) -> str:
    return "" if length is None else str(start + length - 1)
