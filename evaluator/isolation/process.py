"""The process of one rule: started with a clean environment, given so much time for each answer, and ended for good."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.errors import FormatError
from evaluator.isolation.channel import Closed, JobSide, TooLong, Unwanted
from evaluator.isolation.environment import clean_environment

MOST_OUTPUT = 2**20
"""Bytes of what a rule prints that are kept; the rest is counted."""

NO_ANSWER = "its process sent what is no answer"

PATIENCE = 2.0
"""Seconds that a process that closed its side, or was killed, has for its end."""

_ROOT = str(Path(__file__).parents[2])

# Ours is imported before anything of the user's can stand in its way; afterwards the path is as it would be.
_PROGRAM = (
    # what is imported stays, so nothing in it is looked through for garbage
    "import gc, sys; gc.disable(); sys.path.insert(0, sys.argv[1]); from evaluator.hosting.main import main; "
    "del sys.path[0]; gc.freeze(); gc.enable(); main()"
)


class ProcessEnded(Exception):
    """The process is gone, and the message says how that came about, in one line."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Seconds for the import of a file, and for each step."""

    importing: float = 60.0
    step: float = 60.0


class Abandoned(ProcessEnded):
    """It was ended because the job was stopped, which is nobody's fault."""


def never() -> bool:
    """No, what is waited for is always wanted."""
    return False


class RuleProcess:
    """The process, as the job sees it; what it is asked must be answered in time, or it is ended."""

    def __init__(self) -> None:
        """Start it; it waits for its first message."""
        ours, theirs = socket.socketpair()
        self._channel = JobSide(ours)
        self.output = Output()
        with theirs:
            command = [sys.executable, "-P", "-c", _PROGRAM, _ROOT, str(theirs.fileno()), str(os.getpid())]
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own words
                command, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
        self._reader = threading.Thread(target=self.output.take, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def fileno(self) -> int:
        """For waiting until it says something."""
        return self._channel.fileno()

    def tell(self, message: object, seconds: float, unwanted: Callable[[], bool] = never) -> None:
        """Send a message, unless it is no longer wanted.

        Raises:
            ProcessEnded: it did not take it in time; it is ended by now.
        """
        try:
            self._channel.send(message, seconds, unwanted)
        except Unwanted:
            self.close()
            raise Abandoned from None
        except TooLong:
            self.close()
            raise ProcessEnded(f"did not take what it was sent within {seconds:.0f} s") from None
        except Closed:
            raise self._gone() from None

    def hear(self) -> dict[str, Any]:
        """What it says, once it has begun to.

        Raises:
            ProcessEnded: it is gone, or said nothing that makes sense; it is ended by now.
        """
        try:
            return self._channel.receive(PATIENCE)
        except Closed:
            raise self._gone() from None
        except (TooLong, FormatError) as error:
            self.close()
            raise ProcessEnded(f"{NO_ANSWER} ({error or 'only a part of it came'})") from None

    def answer(self, seconds: float, limit: str) -> dict[str, Any]:
        """Wait for what it says, when it is the only one that is waited for.

        Raises:
            ProcessEnded: it said nothing in time (`limit` names the setting that says how long that is).
        """
        if not select.select([self], [], [], seconds)[0]:
            self.close()
            raise ProcessEnded(too_long(seconds, limit))
        return self.hear()

    def close(self) -> None:
        """End it, with all that it started."""
        self._channel.close()
        self._kill()

    def _gone(self) -> ProcessEnded:
        """How a process ended that was not told to."""
        self._channel.close()
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(PATIENCE)
        self._kill()
        return ProcessEnded(_how(code))

    def _kill(self) -> None:
        # the group, which is there as long as anything of it is
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)


def too_long(seconds: float, limit: str) -> str:
    """That an answer did not come in time, and what says how long that is."""
    return f"took longer than {seconds:g} s, which is the setting {limit}"


def _how(code: int | None) -> str:
    """How a process ended that was not told to."""
    if code is None:
        return "its process closed the connection to the job"
    if code >= 0:
        return f"its process ended by itself, with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"its process was ended by {name}"


class Output:
    """What a rule prints: the first of it is kept, all of it is taken, so that printing never holds it up."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._kept = bytearray()
        self._dropped = 0

    def take(self, stream: Any) -> None:
        """Read to the end; runs in a thread of its own."""
        with stream:
            while chunk := stream.read1(2**16):
                room = MOST_OUTPUT - len(self._kept)
                self._kept += chunk[:room]
                self._dropped += max(len(chunk) - room, 0)

    def text(self) -> bytes:
        """What was kept, and how much was not."""
        kept = bytes(self._kept)
        return kept + f"\n... and {self._dropped} bytes more\n".encode() if self._dropped else kept
