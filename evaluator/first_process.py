"""Stands before the program where that is the first process of a container, which has duties of its own.

The first process inherits every process whose parent is gone, and must take note of its end; and a signal that it
does not handle is dropped. Both are done here, by a process that does nothing else, so that they cannot get in the
way of the program's own children.

Source:
    pid_namespaces(7) of Linux, "The namespace init process".
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress

PASSED_ON = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2),
)
"""The signals that others send to make a program do something."""

KILLED = 128
"""What a shell adds to the number of the signal that ended a program."""


def is_first() -> bool:
    """Whether this is the first process of a container."""
    return os.getpid() == 1


def stand_before() -> None:
    """Start the program's own process and return in it; this one stays, and ends as that one does.

    To be called before there are threads and before anything large is imported.
    """
    # a parent that ignores its children's ends hands that down, and would leave nothing to wait for
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # what is blocked is kept, also for a first process, until it is asked for; so nothing is lost around the fork
    watched = {signal.SIGCHLD, *PASSED_ON}
    former = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    program = os.fork()
    if program == 0:
        # a terminal sends its signals to a whole session: they would come twice, and twice means "at once"
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
        return
    os._exit(_watch(program, watched))


def _watch(program: int, watched: Iterable[signal.Signals]) -> int:
    """Pass signals on and take note of ends until the program itself has ended; its exit code."""
    while True:
        number = signal.sigwait(watched)
        if number == signal.SIGCHLD:
            code = _take_note(program)
            if code is not None:
                return code
        else:
            with suppress(ProcessLookupError):
                os.kill(program, number)


def _take_note(program: int) -> int | None:
    """Let all that has ended go; the exit code of the program, if it is among that."""
    code = None
    # one signal may stand for several ends
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if not ended:
            return code
        if ended == program:
            exited = os.waitstatus_to_exitcode(status)
            code = exited if exited >= 0 else KILLED - exited
