"""Actions: has done what somebody asked for at findings, and keeps what came of it in actions.jsonl."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import structlog
from pydantic import ValidationError

from evaluator import strict_json
from evaluator.actions.base import ActionResult
from evaluator.errors import FormatError, KeyMissing
from evaluator.finding import Finding
from evaluator.sinks._acting import Acting
from evaluator.sinks.base import Outputs, Sink, key_in
from evaluator.status import JobStatus
from evaluator.storage.base import Store

FILE_NAME = "actions.jsonl"
log = structlog.get_logger(__name__)


class Actions(Sink):
    """Writes a line for each action that was done or failed, beside the findings of its configuration.

    What is in the file as done counts as done, whoever wrote it, so a job that is started again does nothing twice.
    One that was cut off between the doing and the line does it again: at least once, with the same finding's id.
    """

    name: ClassVar[str] = "actions"

    def __init__(self, store: Store, folders: Mapping[str, str], acting: Acting) -> None:
        """Args: folders: configuration -> folder, "" for the output folder itself."""
        self._store = store
        # as findings spell them
        self._folders = {strict_json.text(name): folder for name, folder in folders.items()}
        self._acting = acting
        self._read: set[str] = set()

    @classmethod
    def build(cls, outputs: Outputs) -> Self | None:
        """Only a job with actions has one."""
        return None if outputs.acting is None else cls(outputs.store, outputs.folders, outputs.acting)

    def start(self, status: JobStatus) -> None:  # noqa: ARG002 - only the files matter
        """Read what former jobs have done."""
        there = ["", *self._store.folders()]
        for configuration, folder in self._folders.items():
            if folder in there:
                self._know(configuration)

    def finding(self, finding: Finding) -> None:
        """Have begun what is to be done for it."""
        self._know(finding.rule_configuration)
        self._acting.due(finding)

    def status(self, status: JobStatus) -> None:  # noqa: ARG002 - what was done is asked of those who did it
        """Write down what has been done since."""
        unwritten = self._acting.unwritten()
        while unwritten:
            configuration, result = unwritten[0]
            line = strict_json.dumps({"schema": 1, **result.document()}) + b"\n"
            self._store.append(key_in(self._folders[configuration], FILE_NAME), line)
            unwritten.popleft()

    def close(self, status: JobStatus) -> None:
        """Write down the rest."""
        self.status(status)

    def _know(self, configuration: str) -> None:
        """Read what is there of a configuration, once; nothing is done for it before that could be read."""
        if configuration in self._read:
            return
        key = key_in(self._folders[configuration], FILE_NAME)
        data = b""
        with contextlib.suppress(KeyMissing):  # nothing was done yet
            data = self._store.read(key)
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            # a line that was not finished would take the next one along
            self._store.write(key, whole)
        for result in _results(key, whole):
            self._acting.know(configuration, result)
        self._read.add(configuration)


def _results(where: str, data: bytes) -> Iterator[ActionResult]:
    unreadable = 0
    for line in data.splitlines():
        try:
            yield ActionResult.model_validate(strict_json.loads(line))
        except (FormatError, ValidationError):
            unreadable += 1
    if unreadable:
        log.warning("lines_ignored", where=where, lines=unreadable, reason="not the result of an action")


SINK = Actions
