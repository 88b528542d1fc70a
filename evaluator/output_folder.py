"""The output folder on disk: made ready, kept to one evaluator, and cleared of what a former job left."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from evaluator import strict_json
from evaluator.config.names import folder_name
from evaluator.errors import FormatError, KeyRefused, OutputError
from evaluator.logs import printable
from evaluator.sinks.base import key_in
from evaluator.sinks.findings import FILE_NAME as FINDINGS
from evaluator.sinks.status_file import FILE_NAME as STATUS
from evaluator.status import JobStatus
from evaluator.storage.base import check_key

LOCK = ".lock"
TRACEBACK = "traceback.txt"
"""What a rule raised, in its configuration's folder."""
PRINTED = "output.txt"
"""What a rule of a user's file printed, in the same place."""
PRINTED_BY = b"Printed by the process of rule "
"""How that file begins."""
CHECKPOINT = "checkpoint"
CHECKPOINT_MARK = "rule-evaluator.json"
"""Only a checkpoint folder that holds this file is ours: training scripts like the name too."""

_OURS = re.compile(rb'\s*\{\s*"schema"\s*:')


class OutputFolder:
    """A local output folder, held by this process from `prepare` until `release`."""

    def __init__(self, root: Path, folders: Iterable[str] = ()) -> None:
        """Touch nothing yet.

        Args:
            root: need not exist yet.
            folders: those of the configurations, "" for the output folder itself.
        """
        self.root = root
        self._folders = list(dict.fromkeys(folders))
        self._lock: BinaryIO | None = None

    def prepare(self) -> None:
        """Make the folder, see that it can be written, and keep other evaluators out.

        Raises:
            OutputError: it cannot be written, or another evaluator is at work in it.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            for folder in [self.root, *(self.root / name for name in self._folders)]:
                if folder.exists():
                    # the name ends like those that listings leave out
                    with tempfile.NamedTemporaryFile(dir=folder, prefix=".writable-", suffix=".tmp"):
                        pass
        except OSError as error:
            raise self._unwritable(error) from error
        self._take_lock()

    def release(self) -> None:
        """Let other evaluators in; the lock file stays, because removing it could remove another one's lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def former(self) -> JobStatus | None:
        """What the last job left as its status; None when there is none that can be read."""
        try:
            document = strict_json.loads((self.root / STATUS).read_bytes(), STATUS)
            return JobStatus.model_validate(document)
        except (OSError, FormatError, ValidationError):
            # a folder without a status that we understand is a folder without a former job
            return None

    def unfinished(self) -> JobStatus | None:
        """The former job, if it never came to its end: the caller resumes it, refuses, or starts over."""
        former = self.former()
        return former if former is not None and former.job.ended_at is None else None

    def start_over(self) -> list[str]:
        """Remove what former jobs wrote, and nothing else; gives the keys that were removed.

        Raises:
            OutputError: a file that is not ours has the name of one that will be written, or one cannot be removed.
        """
        own = list(self._own_files())
        for path in own:
            if path.name in (STATUS, FINDINGS) and not _is_ours(path):
                key = path.relative_to(self.root)
                raise OutputError(
                    _shown(path), "was not written by rule-evaluator", f"an output folder without a {key} of others"
                )
        removed = []
        # the status last: should this be interrupted, it still names the rest
        for path in sorted(own, key=lambda path: path.name == STATUS):
            try:
                path.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise OutputError(_shown(path), f"cannot be removed: {error.strerror}") from error
            removed.append(path.relative_to(self.root).as_posix())
        for folder in {path.parent for path in own} - {self.root, self.root / CHECKPOINT}:
            # a folder of a former configuration that still holds something is not ours alone
            with suppress(OSError):
                folder.rmdir()
        checkpoint = self.root / CHECKPOINT
        if any(key.startswith(f"{CHECKPOINT}/") for key in removed) and not any(checkpoint.iterdir()):
            checkpoint.rmdir()
        return removed

    def _own_files(self) -> Iterator[Path]:
        """The files of the former job, and those with the names of the coming job's, that are there."""
        former = self.former()
        rules = former.rules if former else []
        folders = ["", *self._folders, *(folder_name(rule.RuleConfigurationName) for rule in rules)]
        reports = [rule.Report for rule in rules if rule.Report and rule.Report.endswith(".html")]
        keys = dict.fromkeys([STATUS, *(key_in(folder, FINDINGS) for folder in folders), *reports])
        yield from (self.root / key for key in keys if self._holds(key))
        for name, beginning in ((TRACEBACK, b"Traceback "), (PRINTED, PRINTED_BY)):
            there = [key for folder in dict.fromkeys(folders) if self._holds(key := key_in(folder, name))]
            # others may use the name too, and nothing of ours stands in their way
            yield from (self.root / key for key in there if _begins(self.root / key).startswith(beginning))
        if self._holds(f"{CHECKPOINT}/{CHECKPOINT_MARK}"):
            names = [path.name for path in (self.root / CHECKPOINT).iterdir()]
            # the mark last: should this be interrupted, the rest is still known as ours
            for name in sorted(names, key=lambda name: name == CHECKPOINT_MARK):
                if self._holds(f"{CHECKPOINT}/{name}"):
                    yield self.root / CHECKPOINT / name

    def _holds(self, key: str) -> bool:
        """Whether that is a file in the folder itself, reached by no link: a status is not to be trusted with paths."""
        try:
            path = self.root / check_key(key)
            reached = path.parent.resolve() == self.root.resolve() / path.parent.relative_to(self.root)
            return reached and path.is_file() and not path.is_symlink()
        except (KeyRefused, OSError):
            # a name that cannot be a file is no file
            return False

    def _take_lock(self) -> None:
        try:
            # links are not followed: the text is written into what is opened here
            opened = os.open(self.root / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise self._unwritable(error) from error
        lock = os.fdopen(opened, "r+b")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(lock) or "which one is not known"
            lock.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                # a file system without locks must not keep the first evaluator out
                return
            what = f"another evaluator is writing to it ({holder})"
            raise OutputError(_shown(self.root), what, "one output folder for each evaluator") from error
        self._lock = lock
        # a lock file of some other program serves as well, but keeps its text
        if _holder(lock) or not os.fstat(opened).st_size:
            lock.seek(0)
            lock.truncate()
            lock.write(strict_json.dumps({"pid": os.getpid(), "host": socket.gethostname()}) + b"\n")
            lock.flush()

    def _unwritable(self, error: OSError) -> OutputError:
        reason = "is not a folder" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        return OutputError(
            _shown(self.root), f"cannot be written: {reason}", f"a folder that user {os.getuid()} can write to"
        )


def _holder(lock: BinaryIO) -> str:
    """Who took the lock last, as the lock file says; empty when it says nothing of the kind."""
    lock.seek(0)
    try:
        written = strict_json.loads(lock.read(1000), LOCK)
        return printable(f"pid {written['pid']} on {written['host']}")
    except (FormatError, LookupError, TypeError):
        return ""


def _is_ours(path: Path) -> bool:
    """Whether a file begins as all of ours do; one that was cut at once is empty."""
    start = _begins(path)
    return not start or _OURS.match(start) is not None


def _begins(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(100)


def _shown(path: Path) -> str:
    return printable(str(path))
