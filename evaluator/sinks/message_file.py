"""The message file: the text that SageMaker shows as the exit message of a processing job."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from evaluator.errors import OutputError
from evaluator.outcome import FailOn, message_text
from evaluator.sinks.base import Outputs, Sink
from evaluator.status import JobStatus


class MessageFile(Sink):
    """Writes the file when the job ends, and leaves none when there is nothing to say."""

    name: ClassVar[str] = "message file"

    def __init__(self, path: Path, fail_on: FailOn = "info") -> None:
        """The path lies outside of the output folder: SageMaker fixes it."""
        self._path = path
        self._fail_on = fail_on

    @classmethod
    def build(cls, outputs: Outputs) -> Self | None:
        """Only a container has one."""
        return None if outputs.message_file is None else cls(outputs.message_file, outputs.fail_on)

    def close(self, status: JobStatus) -> None:
        """Write what the job came to."""
        write_message(self._path, message_text(status, self._fail_on))


def prepare_message(path: Path) -> None:
    """Leave no message of a process before, and find out whether one could be written.

    Raises:
        OutputError: none could be.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # not emptied by opening it: where it cannot be written, what is there stays whole
        with path.open("ab"):
            pass
        _take_away(path)
    except OSError as error:
        raise OutputError(str(path), f"cannot be written: {error.strerror or error}") from error


def write_message(path: Path, text: str) -> None:
    """Put the text in the file; when there is no text, take the file away, or empty it where it is a mount.

    Raises:
        OutputError: the file cannot be written.
    """
    try:
        if text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "backslashreplace"))
        else:
            _take_away(path)
    except OSError as error:
        raise OutputError(str(path), f"cannot be written: {error.strerror or error}") from error


def _take_away(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        # a file that is a mount, as the termination message of Kubernetes is, can be emptied only
        path.write_bytes(b"")


SINK = MessageFile
