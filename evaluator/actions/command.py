"""command: runs a program of one's own, which gets the finding as JSON on its standard input."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Annotated

from pydantic import BeforeValidator, Field

from evaluator.actions._told import short
from evaluator.actions.base import ActionParameters, Call, Kind, NotDone, Surroundings

END_OF_ERRORS = 2000
"""Bytes of what it wrote to standard error last that are looked at."""
LONGEST_ERROR = 200


def _words(value: object) -> object:
    """A list as it is; a text, which a command line gives, by its words: no shell ever sees it."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.lstrip().startswith("[") else shlex.split(value)
    except ValueError as error:
        raise ValueError(f"a JSON list, or words as a shell takes them ({error})") from None


class CommandParameters(ActionParameters):
    """What to run."""

    argv: Annotated[Sequence[str], BeforeValidator(_words)] = Field(
        min_length=1, description="The program and its arguments, a list; no shell looks at them."
    )
    timeout: float = Field(default=60, gt=0, le=3600, description="Seconds after which it is ended.")


def act(call: Call[CommandParameters]) -> Mapping[str, object]:
    """Run it, and wait for its end within the time that it has."""
    argv, timeout = list(call.parameters.argv), call.parameters.timeout
    # files instead of pipes: what it leaves running behind could hold a pipe open for ever
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
        given.write(call.finding.line())
        given.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603 - it is what was asked for
                argv, stdin=given, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise NotDone(f"{argv[0]!r} cannot be started: {reason}") from error
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            raise NotDone(f"{argv[0]!r} was ended after {timeout:g} s") from None
        if code != 0:
            said = _last_line(errors)
            how = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
            raise NotDone(f"{argv[0]!r}: {how}" + (f": {said}" if said else ""))
    return {"exit_code": 0}


def check(parameters: CommandParameters, around: Surroundings) -> Sequence[tuple[str, str]]:
    """A program that is not there now is rather a misspelling than one that will come."""
    del around
    program = parameters.argv[0]
    if shutil.which(program) is not None:
        return ()
    return [(f"there is no program {program!r} that may be run", "the path or name of a program, first in argv")]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it, and what it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _last_line(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - END_OF_ERRORS))
    lines = errors.read().decode("utf-8", "backslashreplace").strip().splitlines()
    return short(lines[-1].strip(), LONGEST_ERROR) if lines else ""


ACTION = Kind("command", CommandParameters, act, check)
