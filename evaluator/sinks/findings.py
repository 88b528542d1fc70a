"""findings.jsonl: every finding of a configuration as one line, never two lines with the same id and event."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import ClassVar, Self

import structlog

from evaluator import strict_json
from evaluator.errors import FormatError, KeyMissing
from evaluator.finding import Finding
from evaluator.sinks.base import Outputs, Sink, key_in
from evaluator.status import JobStatus
from evaluator.storage.base import Store

FILE_NAME = "findings.jsonl"
log = structlog.get_logger(__name__)


class FindingsFile(Sink):
    """Appends findings to the file in their configuration's folder; on S3 that writes the object anew.

    What is in the file counts as written, whoever wrote it.
    After a failed append nobody knows how much arrived, so the file is read again before the next one.
    """

    name: ClassVar[str] = "findings file"

    def __init__(self, store: Store, folders: Mapping[str, str]) -> None:
        """Args: folders: configuration -> folder, "" for the output folder itself."""
        self._store = store
        # as findings spell them
        self._folders = {strict_json.text(name): folder for name, folder in folders.items()}
        self._written: dict[str, set[tuple[str, str]]] = {}

    @classmethod
    def build(cls, outputs: Outputs) -> Self:
        """Every job has one."""
        return cls(outputs.store, outputs.folders)

    def start(self, status: JobStatus) -> None:  # noqa: ARG002 - only the files matter
        """Read what former jobs left, and cut off lines that were not finished."""
        there = ["", *self._store.folders()]
        for folder in set(self._folders.values()).intersection(there):
            self._known(key_in(folder, FILE_NAME))

    def finding(self, finding: Finding) -> None:
        """Append the line, unless it is there."""
        key = key_in(self._folders[finding.rule_configuration], FILE_NAME)
        known = self._known(key)
        if (finding.id, finding.event) in known:
            return
        del self._written[key]
        self._store.append(key, finding.line())
        self._written[key] = known | {(finding.id, finding.event)}

    def _known(self, key: str) -> set[tuple[str, str]]:
        """The (id, event) pairs that the file holds, read once."""
        if key not in self._written:
            self._written[key] = self._read(key)
        return self._written[key]

    def _read(self, key: str) -> set[tuple[str, str]]:
        data = b""
        with contextlib.suppress(KeyMissing):  # no finding yet
            data = self._store.read(key)
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            self._store.write(key, whole)
        pairs = {pair for line in whole.splitlines() if (pair := _pair(line))}
        if unreadable := sum(_pair(line) is None for line in whole.splitlines()):
            log.warning("lines_ignored", where=key, lines=unreadable, reason="not a finding")
        return pairs


def _pair(line: bytes) -> tuple[str, str] | None:
    """The id and event of a line; None when it holds no finding."""
    try:
        document = strict_json.loads(line)
    except FormatError:
        return None
    if not isinstance(document, dict):
        return None
    found, event = document.get("id"), document.get("event")
    return (found, event) if isinstance(found, str) and isinstance(event, str) else None


SINK = FindingsFile
