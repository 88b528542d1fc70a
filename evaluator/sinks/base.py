"""Sink: one place where statuses and findings go; one module per sink, each with its class as `SINK`."""

# ruff: noqa: B027 - a sink overrides what concerns it; nothing to do is the right default

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from evaluator.clock import Clock
from evaluator.finding import Finding
from evaluator.outcome import FailOn
from evaluator.sinks._acting import Acting
from evaluator.status import JobStatus
from evaluator.storage.base import Store


@dataclass(frozen=True)
class Outputs:
    """What a job gives its sinks to work with; a sink that has nothing to do takes no part.

    Args:
        store: the output, a folder or a prefix of S3.
        folders: configuration -> its folder below the output folder, "" for the output folder itself.
        message_file: where SageMaker looks for the message; None outside a container.
        fail_on: the least severity that counts, `never` with `--exit-zero`.
        acting: does what is to be done at findings; None where nothing is.
    """

    store: Store
    clock: Clock
    folders: Mapping[str, str] = field(default_factory=dict)
    status_interval: float = 1.0
    message_file: Path | None = None
    fail_on: FailOn = "info"
    acting: Acting | None = None


class Sink(ABC):
    """Is told what happens; a sink that raises OutputError or StorageError is told the same again later.

    So a sink must bear being told a finding twice, and takes from a status what is new by itself.
    """

    name: ClassVar[str]
    """How notes and log lines call it."""
    essential: ClassVar[bool] = False
    """Whether a job that cannot reach it at its start is refused."""

    @classmethod
    @abstractmethod
    def build(cls, outputs: Outputs) -> Self | None:
        """The sink for this job, or None where it has nothing to do."""

    def start(self, status: JobStatus) -> None:
        """The job is about to begin."""

    def finding(self, finding: Finding) -> None:
        """A condition was met, or is met no longer."""

    def status(self, status: JobStatus) -> None:
        """The job went on; called after every step and every poll, so it must be cheap when nothing changed."""

    def report(self, folder: str, file_name: str, text: str) -> None:
        """A rule made a page; a later one of the same name takes its place."""

    def keep(self, key: str, data: bytes, beginning: bytes) -> None:
        """A rule left a text; one that is there and does not begin so is somebody else's and stays."""

    def close(self, status: JobStatus) -> None:
        """The job has ended with this status; nothing is told after it."""


def key_in(folder: str, file_name: str) -> str:
    """The key of a configuration's file below the output folder."""
    return f"{folder}/{file_name}" if folder else file_name
