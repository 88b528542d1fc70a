"""Receivers of webhooks, and a stand-in for the one call of SageMaker that the server of the other tests lacks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from evaluator.actions.base import Call, Kind, Secret, Surroundings
from evaluator.finding import Finding
from evaluator.testing import FakeClock
from tests.s3.traffic import serving
from tests.sinks.made import make_finding


@dataclass
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The JSON value in it."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """Takes what is sent to it, and answers with these, the last of them for ever.

    Args:
        answers: a status, with headers and a body where they matter; None is an answer that does not come.
    """

    answers: list[int | tuple[int, dict[str, str], bytes] | None] = field(default_factory=lambda: [200])
    url: str = ""
    received: list[Received] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)
    """Ends the waiting of those that got no answer."""


@contextmanager
def receiver(*answers: int | tuple[int, dict[str, str], bytes] | None) -> Iterator[Receiver]:
    """A receiver that ends with the block."""
    one = Receiver(list(answers) or [200])
    with serving(type("Handler", (_Handler,), {"receiver": one})) as url:
        one.url = url
        yield one
        one.let_go.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    receiver: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        one = self.receiver
        one.received.append(Received(self.path, dict(self.headers.items()), body))
        answer = one.answers.pop(0) if len(one.answers) > 1 else one.answers[0]
        if answer is None:
            one.let_go.wait(60)
            self.close_connection = True
            return
        status, headers, text = (answer, {}, b"{}") if isinstance(answer, int) else answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:
        self.receiver.received.append(Received(self.path, dict(self.headers.items()), b""))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def aws_error(code: str, message: str, status: int = 400) -> tuple[int, dict[str, str], bytes]:
    """An error as services with a JSON protocol tell it."""
    return status, {"x-amzn-errortype": code}, json.dumps({"__type": code, "message": message}).encode()


def do(
    kind: Kind[Any],
    *,
    finding: Finding | None = None,
    around: Surroundings | None = None,
    clock: FakeClock | None = None,
    secrets: dict[str, str] | None = None,
    **parameters: object,
) -> dict[str, object]:
    """Do an action for a finding, and give its details."""
    given = {name: Secret.of_variable("SOME_TOKEN", text) for name, text in (secrets or {}).items()}
    call = Call(
        kind.parameters(**parameters),
        finding or make_finding(),
        around or Surroundings("/trials/one"),
        clock or FakeClock(),
        given,
    )
    return dict(kind.act(call))


def operations(received: Sequence[Received]) -> list[tuple[str, Any]]:
    """(operation, arguments) of requests to a service with a JSON protocol."""
    return [(one.headers["X-Amz-Target"].rpartition(".")[2], one.document) for one in received]
