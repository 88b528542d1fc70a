"""The output, a folder or a prefix of S3: kept to one evaluator, and cleared of what a former job left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from evaluator import strict_json
from evaluator.clock import Clock
from evaluator.config.names import folder_name
from evaluator.errors import FormatError, KeyMissing, OutputError, StorageError
from evaluator.logs import printable
from evaluator.output_lock import lock_of
from evaluator.sinks.actions import FILE_NAME as ACTIONS
from evaluator.sinks.base import key_in
from evaluator.sinks.findings import FILE_NAME as FINDINGS
from evaluator.sinks.status_file import FILE_NAME as STATUS
from evaluator.status import JobStatus
from evaluator.storage.base import Store

TRACEBACK = "traceback.txt"
"""What a rule raised, in its configuration's folder."""
TRACEBACK_BEGINS = b"Traceback "
PRINTED = "output.txt"
"""What a rule of a user's file printed, in the same place."""
PRINTED_BY = b"Printed by the process of rule "
"""How that file begins."""
CHECKPOINT = "checkpoint"
CHECKPOINT_MARK = "rule-evaluator.json"
"""Only a checkpoint folder that holds this file is ours: training scripts like the name too."""

_OURS = re.compile(rb'\s*\{\s*"schema"\s*:')


class OutputFolder:
    """What is below the root of a store, held by this process from `prepare` until `release`."""

    def __init__(self, store: Store, clock: Clock, folders: Iterable[str] = ()) -> None:
        """Touch nothing yet.

        Args:
            store: its root need not exist yet.
            clock: tells how old a lock is.
            folders: those of the configurations, "" for the output folder itself.
        """
        self._store = store
        self._folders = list(dict.fromkeys(folders))
        self._lock = lock_of(store, clock, self._folders)

    @property
    def where(self) -> str:
        """The output as a message shows it."""
        return printable(self._store.uri)

    def prepare(self) -> None:
        """See that it can be written, and keep other evaluators out.

        Raises:
            OutputError: it cannot be written, or another evaluator is at work in it.
        """
        self._lock.take()

    def refresh(self) -> None:
        """Show now and then that somebody is at work in it. Raises OutputTaken when that is another evaluator."""
        self._lock.refresh()

    def release(self) -> None:
        """Let other evaluators in."""
        self._lock.release()

    def former(self) -> JobStatus | None:
        """What the last job left as its status; None when there is none that can be understood.

        Raises:
            OutputError: there may be one that cannot be read now; what it wrote must not be taken for nobody's.
        """
        try:
            with _told():
                data = self._store.read(STATUS)
            return JobStatus.model_validate(strict_json.loads(data, STATUS))
        except (KeyMissing, FormatError, ValidationError):
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
        with _told():
            own = list(self._own_keys())
            for key in own:
                if key.rpartition("/")[2] in (STATUS, FINDINGS, ACTIONS) and not self._is_ours(key):
                    where = printable(f"{self._store.uri.rstrip('/')}/{key}")
                    right = f"an output folder without a {key} of others"
                    raise OutputError(where, "was not written by rule-evaluator", right)
            # the status last: should this be interrupted, it still names the rest
            removed = sorted(own, key=lambda key: key == STATUS)
            for key in removed:
                self._store.delete(key)
        for folder in dict.fromkeys(key.rpartition("/")[0] for key in removed):
            # a folder that still holds something is not ours alone
            if folder:
                self._store.drop_empty(folder)
        return removed

    def _own_keys(self) -> Iterator[str]:
        """The files of the former job, and those with the names of the coming job's, that are there."""
        former = self.former()
        rules = former.rules if former else []
        folders = dict.fromkeys(["", *self._folders, *(folder_name(rule.RuleConfigurationName) for rule in rules)])
        # a status is not to be trusted with keys: it names files that are looked for in these folders only
        pages = {rule.Report for rule in rules if rule.Report and rule.Report.endswith(".html")}
        there = ["", *self._store.folders()]
        for folder in (one for one in folders if one in there):
            for name in (entry.key.rpartition("/")[2] for entry in self._store.files(folder)):
                key = key_in(folder, name)
                if key in (STATUS, *pages) or name in (FINDINGS, ACTIONS) or self._is_text_of_ours(key, name):
                    yield key
        if CHECKPOINT in there:
            keys = [entry.key for entry in self._store.files(CHECKPOINT)]
            mark = key_in(CHECKPOINT, CHECKPOINT_MARK)
            if mark in keys:
                # the mark last: should this be interrupted, the rest is still known as ours
                yield from sorted(keys, key=lambda key: key == mark)

    def _is_text_of_ours(self, key: str, name: str) -> bool:
        """Whether a text was written for a rule; others may use the names too, and nothing of ours needs them."""
        beginning = {TRACEBACK: TRACEBACK_BEGINS, PRINTED: PRINTED_BY}.get(name)
        return beginning is not None and self._begins(key).startswith(beginning)

    def _is_ours(self, key: str) -> bool:
        """Whether a file begins as all of ours do; one that was cut at once is empty."""
        start = self._begins(key)
        return not start or _OURS.match(start) is not None

    def _begins(self, key: str) -> bytes:
        try:
            return self._store.read_range(key, 0, 100)
        except KeyMissing:  # gone since it was listed
            return b""


@contextmanager
def _told() -> Iterator[None]:
    """What a store cannot do is an output that does not work; that something is missing is no such thing."""
    try:
        yield
    except KeyMissing:
        raise
    except StorageError as error:
        mistake = error.mistake
        right = mistake.would_be_right or "an output folder that can be read and written"
        raise OutputError(mistake.where, mistake.what, right) from error
