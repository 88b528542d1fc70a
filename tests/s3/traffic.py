"""A proxy in front of an S3 server that counts what is asked, and answers some of it wrongly."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request."""

    kind: str
    """LIST, GET, HEAD, PUT or DELETE."""
    number: int
    """Counts all requests from 1."""
    key: str
    """Of the object; of a listing the prefix."""
    access_key: str
    """With which it is signed."""


@dataclass(frozen=True)
class Wrong:
    """What is answered instead."""

    status: int = 503
    code: str = "SlowDown"
    way: Literal["error", "reset", "cut", "silence", "page"] = "error"
    """An error of S3; a connection that is reset; half of the right answer; none at all; somebody else's web page."""


RESET, CUT, SILENCE, PAGE = (Wrong(way=way) for way in ("reset", "cut", "silence", "page"))
Fault = Callable[[Asked], Wrong | None]

_KEY = re.compile(r"Credential=([^/]+)/")
_HOP = {"transfer-encoding", "connection", "content-length"}


@dataclass
class Traffic:
    """The requests that went through, and what happens to the next ones."""

    url: str = ""
    target: str = ""
    fault: Fault = lambda _: None
    asked: list[Asked] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, key: str, access_key: str) -> Asked:
        with self._lock:
            one = Asked(kind, len(self.asked) + 1, key, access_key)
            self.asked.append(one)
        return one

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(one.kind for one in self.asked))

    def forget(self) -> None:
        self.asked.clear()


@contextmanager
def traffic(target: str) -> Iterator[Traffic]:
    """A proxy before the server at this URL."""
    flow = Traffic(target=target)
    handler = type("Handler", (_Handler,), {"flow": flow})
    with serving(handler) as url:
        flow.url = url
        try:
            yield flow
        finally:
            flow.over.set()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """A server in threads of this process; gives its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def kind_of(method: str, url: str) -> tuple[str, str]:
    """What kind of request it is, and for which key or prefix, of a bucket that is named in the path."""
    parts = urlsplit(url)
    key = unquote(parts.path.lstrip("/").partition("/")[2])
    if method == "GET" and not key:
        return "LIST", parse_qs(parts.query).get("prefix", [""])[0]
    return method, key


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # head and body go out together: sent apart, the second one waits for an acknowledgement of the first
    wbufsize = -1
    disable_nagle_algorithm = True
    flow: Traffic

    def _any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        signed = _KEY.search(self.headers.get("Authorization", ""))
        asked = self.flow.note(*kind_of(self.command, self.path), signed[1] if signed else "")
        wrong = self.flow.fault(asked)
        if wrong is None or wrong.way == "cut":
            self._forward(body, cut=wrong is not None)
        elif wrong.way == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
        elif wrong.way == "silence":
            self.flow.over.wait(60)
            self.close_connection = True
        elif wrong.way == "page":
            self._answer(200, {"Content-Type": "text/html"}, b"<html><body>Please log in</body></html>")
        else:
            text = f"<Error><Code>{wrong.code}</Code><Message>as the test wants it</Message></Error>"
            self._answer(wrong.status, {"Content-Type": "application/xml"}, text.encode())

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _any  # noqa: N815

    def _forward(self, body: bytes, *, cut: bool) -> None:
        connection = HTTPConnection(urlsplit(self.flow.target).netloc, timeout=30)
        try:
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
        length = int(answer.getheader("Content-Length") or len(data))
        self._answer(answer.status, headers, data, length, cut=cut)

    def _answer(
        self, status: int, headers: dict[str, Any], data: bytes, length: int | None = None, *, cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if cut else data)
        self.close_connection = self.close_connection or cut

    def handle_expect_100(self) -> bool:
        on = super().handle_expect_100()
        self.wfile.flush()
        return on

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""
