"""The program of a rule's own process: imports the file, judges the steps that are sent, says what came of them."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from evaluator.hosting.host import Host
from evaluator.isolation.channel import Closed, RuleSide
from evaluator.isolation.messages import Look, Start

if TYPE_CHECKING:
    from evaluator.hosting.bench import Bench

PR_SET_PDEATHSIG = 1
"""Source: prctl(2) of Linux."""


def main() -> None:
    """Serve one job until it closes the channel."""
    _, number, parent = sys.argv[1:4]
    sys.argv[1:] = []
    _end_with(int(parent))
    # what the terminal or the container sends is for the job, which ends its rules itself
    for one in (signal.SIGINT, signal.SIGTERM):
        # not ignored, which what a rule starts would inherit
        signal.signal(one, _nothing)
    connection = socket.socket(fileno=int(number))
    os.register_at_fork(after_in_child=_leave_signals)
    # a process that a rule forks is not the rule: it answers nothing
    os.register_at_fork(after_in_child=connection.close)
    channel = RuleSide(connection)
    try:
        start: Start | Look = channel.receive()
        _limit_memory(start.memory)
        host = Host(start, channel) if isinstance(start, Start) else _bench(start)
        channel.send(host.introduce())
        while True:
            channel.send(host.answer(channel.receive()))
    except (Closed, BrokenPipeError, ConnectionError):
        # the job is gone, and with it the reason to be
        os._exit(0)


def _bench(look: Look) -> Bench:
    """What serves a command instead of a job; jobs need not wait for it to be imported."""
    from evaluator.hosting.bench import Bench  # noqa: PLC0415 - see above

    return Bench(look)


def _nothing(_: int, __: FrameType | None) -> None:
    """Handle a signal by being there."""


def _leave_signals() -> None:
    """A process that a rule forks ends at signals as any other does."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)


def _end_with(parent: int) -> None:
    """Have the system end this process when the job does, however that comes about."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def _limit_memory(allowed: int) -> None:
    """Allow so many bytes of address space beyond what is used already."""
    if not allowed:
        return
    used = 0
    status = Path("/proc/self/statm")
    if status.exists():
        used = int(status.read_text().split()[0]) * resource.getpagesize()
    limit = used + allowed
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
