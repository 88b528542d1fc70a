"""The channel between the job and the process of a rule: messages as frames over a pair of sockets.

The job trusts nothing that comes back: it sends pickled objects, and gets JSON. Arrays travel beside the pickle, so
that their bytes are copied by the kernel alone.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Callable
from typing import Any

from evaluator import strict_json
from evaluator.clock import SystemClock
from evaluator.errors import FormatError

_COUNT = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")

SLICE = 0.25
"""Seconds after which a wait looks whether it is still wanted."""

MOST_REPLY = 64 * 2**20
"""Bytes of a reply; a rule that says more than this is broken."""


class Closed(Exception):
    """The other side is gone."""


class TooLong(Exception):
    """The other side did not answer in time."""


class Unwanted(Exception):
    """Nobody waits for it any more."""


class JobSide:
    """What the job holds of the channel; no call takes longer than its limit."""

    def __init__(self, connection: socket.socket) -> None:
        """Take over the socket."""
        self._socket = connection
        # a process takes the machine's time, whatever clock the job goes by
        self._clock = SystemClock()

    def fileno(self) -> int:
        """For waiting until there is something to receive."""
        return self._socket.fileno()

    def send(self, message: object, seconds: float, unwanted: Callable[[], bool]) -> None:
        """Send an object with the arrays in it; `unwanted` says whether that is to be given up.

        Raises:
            Closed, TooLong, Unwanted.
        """
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
        parts = [memoryview(head), *(buffer.raw() for buffer in buffers)]
        sizes = _COUNT.pack(len(parts)) + b"".join(_LENGTH.pack(part.nbytes) for part in parts)
        until = self._clock.monotonic() + seconds
        for part in (memoryview(sizes), *parts):
            self._send(part, until, unwanted)

    def receive(self, seconds: float) -> dict[str, Any]:
        """The next reply.

        Raises:
            Closed, TooLong.
            FormatError: it is no reply.
        """
        until = self._clock.monotonic() + seconds
        (size,) = _LENGTH.unpack(self._exactly(_LENGTH.size, until))
        if size > MOST_REPLY:
            raise FormatError("reply", f"has {size} bytes", f"a reply has at most {MOST_REPLY}")
        reply = strict_json.loads(bytes(self._exactly(size, until)))
        if not isinstance(reply, dict):
            raise FormatError("reply", "is no JSON object")
        return reply

    def close(self) -> None:
        """Let go of the socket; the other side sees the end."""
        self._socket.close()

    def _send(self, part: memoryview, until: float, unwanted: Callable[[], bool]) -> None:
        """Send some bytes, looking now and then whether they are still wanted."""
        sent = 0
        while sent < part.nbytes:
            left = until - self._clock.monotonic()
            if left <= 0:
                raise TooLong
            self._socket.settimeout(min(left, SLICE))
            try:
                sent += self._socket.send(part[sent:])
            except TimeoutError:
                if unwanted():
                    raise Unwanted from None
            except OSError as error:
                raise Closed from error

    def _exactly(self, size: int, until: float) -> bytearray:
        data = bytearray(size)
        view, filled = memoryview(data), 0
        while filled < size:
            self._socket.settimeout(max(until - self._clock.monotonic(), 0.001))
            try:
                got = self._socket.recv_into(view[filled:])
            except TimeoutError as error:
                raise TooLong from error
            except OSError as error:
                raise Closed from error
            if not got:
                raise Closed
            filled += got
        return data


class RuleSide:
    """What the process of the rule holds of the channel; it waits as long as the job lives."""

    def __init__(self, connection: socket.socket) -> None:
        """Take over the socket."""
        self._socket = connection

    def receive(self) -> Any:
        """The next message.

        Raises:
            Closed: the job is gone.
        """
        (count,) = _COUNT.unpack(self._exactly(_COUNT.size))
        sizes = [_LENGTH.unpack(self._exactly(_LENGTH.size))[0] for _ in range(count)]
        head, *buffers = [self._exactly(size) for size in sizes]
        return pickle.loads(head, buffers=buffers)  # noqa: S301 - it comes from our own parent process

    def send(self, reply: dict[str, Any]) -> None:
        """Send a reply."""
        data = strict_json.dumps(reply)
        self._socket.sendall(_LENGTH.pack(len(data)) + data)

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view, filled = memoryview(data), 0
        while filled < size:
            got = self._socket.recv_into(view[filled:])
            if not got:
                raise Closed
            filled += got
        return data
