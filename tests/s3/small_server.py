"""A small S3 server in this process: ten thousand objects are there at once, and it cuts its pages as S3 does.

Source:
    Amazon S3 API reference: ListObjectsV2, GetObject, HeadObject, PutObject, DeleteObject.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.s3.traffic import serving

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass
class SmallServer:
    """The objects of all its buckets: "bucket/key" -> bytes. Any bucket is there."""

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    at: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    _sorted: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        """All names in S3's order; sorted anew only when there is another number of them."""
        if len(self._sorted) != len(self.objects):
            self._sorted = sorted(self.objects, key=str.encode)
        return self._sorted


@contextmanager
def small_server() -> Iterator[SmallServer]:
    """A server that ends with the block."""
    server = SmallServer()
    with serving(type("Handler", (_Handler,), {"server_": server})) as url:
        server.url = url
        yield server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # head and body go out together: sent apart, the second one waits for an acknowledgement of the first
    wbufsize = -1
    disable_nagle_algorithm = True
    server_: SmallServer

    def do_GET(self) -> None:
        bucket, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        if not key:
            self._list(bucket)
            return
        data = self.server_.objects.get(f"{bucket}/{key}")
        if data is None:
            self._error(404, "NoSuchKey")
            return
        part = _RANGE.fullmatch(self.headers.get("Range", ""))
        if part is None:
            self._send(200, data, self._about(data))
        elif int(part[1]) >= len(data):
            self._error(416, "InvalidRange")
        else:
            piece = data[int(part[1]) : int(part[2]) + 1 if part[2] else None]
            self._send(206, piece, self._about(data))

    def do_HEAD(self) -> None:
        data = self.server_.objects.get(unquote(urlsplit(self.path).path).lstrip("/"))
        if data is None:
            self._send(404, b"", {})
        else:
            self._send(200, data, self._about(data))

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server_.objects[unquote(urlsplit(self.path).path).lstrip("/")] = data
        self._send(200, b"", self._about(data))

    def do_DELETE(self) -> None:
        self.server_.objects.pop(unquote(urlsplit(self.path).path).lstrip("/"), None)
        self._send(204, b"", {})

    def _list(self, bucket: str) -> None:
        query = {
            name: values[0] for name, values in parse_qs(urlsplit(self.path).query, keep_blank_values=True).items()
        }
        prefix, most = query.get("prefix", ""), int(query.get("max-keys", 1000))
        after = query.get("continuation-token") or query.get("start-after", "")
        start = f"{bucket}/"
        names = self.server_.names()
        at = bisect_right(names, f"{start}{after}".encode(), key=str.encode)
        found: list[str] = []
        folders: list[str] = []
        last, more = "", False
        for name in names[at:]:
            key = name.removeprefix(start)
            if not name.startswith(start) or not key.startswith(prefix):
                if name.encode() > f"{start}{prefix}".encode():
                    break
                continue
            head, slash, _ = key.removeprefix(prefix).partition(query.get("delimiter") or "\0")
            folder = prefix + head + slash if query.get("delimiter") and slash else ""
            if folder and (folder in folders or after.startswith(folder)):
                last = key
                continue
            if len(found) + len(folders) == most:
                more = True
                break
            last = key
            if folder:
                folders.append(folder)
            else:
                found.append(key)
        self._send(200, self._page(bucket, found, folders, last if more else None), {"Content-Type": "application/xml"})

    def _page(self, bucket: str, found: list[str], folders: list[str], token: str | None) -> bytes:
        time = self.server_.at.strftime("%Y-%m-%dT%H:%M:%S.123Z")
        contents = "".join(
            f"<Contents><Key>{escape(quote(key))}</Key><LastModified>{time}</LastModified>"
            f"<Size>{len(self.server_.objects[f'{bucket}/{key}'])}</Size></Contents>"
            for key in found
        )
        common = "".join(f"<CommonPrefixes><Prefix>{escape(quote(one))}</Prefix></CommonPrefixes>" for one in folders)
        more = f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" if token is not None else ""
        return (
            f"<ListBucketResult><Name>{bucket}</Name><EncodingType>url</EncodingType>"
            f"<IsTruncated>{str(token is not None).lower()}</IsTruncated>{more}{contents}{common}</ListBucketResult>"
        ).encode()

    def _about(self, data: bytes) -> dict[str, str]:
        tag = hashlib.md5(data, usedforsecurity=False).hexdigest()
        return {"ETag": f'"{tag}"', "Last-Modified": format_datetime(self.server_.at, usegmt=True)}

    def _error(self, status: int, code: str) -> None:
        self._send(status, f"<Error><Code>{code}</Code></Error>".encode(), {"Content-Type": "application/xml"})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def handle_expect_100(self) -> bool:
        on = super().handle_expect_100()
        self.wfile.flush()
        return on

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""
