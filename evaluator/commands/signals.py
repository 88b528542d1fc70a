"""Turns SIGTERM and SIGINT into a request to stop, and a second one into the end of the process."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

import structlog

from evaluator.outcome import SECOND_SIGNAL

log = structlog.get_logger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SHOW_CURSOR = b"\x1b[?25h\n"


class Signals:
    """Listens for signals from `with` to its end.

    A thread does the work: a handler runs between two instructions of the main thread and would wait for ever for a
    lock that the main thread holds there; and it never runs while the main thread hangs in a read.
    """

    def __init__(self) -> None:
        """Listen to nothing yet."""
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self._came = 0
        self._former: dict[signal.Signals, Any] = {}
        self._former_wakeup = -1
        self._reader, self._writer = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, name="signals", daemon=True)

    def __enter__(self) -> Self:
        """Listen from now on; a process whose main thread is busy elsewhere keeps its own handlers."""
        if threading.current_thread() is not threading.main_thread():
            return self
        self._writer.setblocking(False)
        self._thread.start()
        self._former_wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for one in SIGNALS:
            self._former[one] = signal.signal(one, _nothing)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave signals to whom they belonged before."""
        if self._former:
            signal.set_wakeup_fd(self._former_wakeup)
            for one, handler in self._former.items():
                signal.signal(one, handler)
            self._writer.close()
            self._thread.join()
        else:
            self._writer.close()
        self._reader.close()

    def call(self, stop: Callable[[], None]) -> None:
        """Call this at the first signal; at once if it has come already."""
        with self._lock:
            self._stop = stop
            if self._came:
                stop()

    def _listen(self) -> None:
        while received := self._reader.recv(16):
            for number in received:
                if number in SIGNALS:
                    self._take(number)

    def _take(self, number: int) -> None:
        with self._lock:
            self._came += 1
            if self._came > 1:
                _leave()
            log.info("signal_received", signal=signal.Signals(number).name)
            if self._stop is not None:
                self._stop()


def _leave() -> None:
    """End the process now, without locks or clean-up that could hang; a live line may have hidden the cursor."""
    if sys.__stderr__ is not None and sys.__stderr__.isatty():
        os.write(2, _SHOW_CURSOR)
    os._exit(SECOND_SIGNAL)


def _nothing(_: int, __: FrameType | None) -> None:
    """Handle a signal by being there: the interpreter then reports it to the listening thread."""
