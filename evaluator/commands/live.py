"""How a job tells people and log files how far it is: a live line on a terminal, log lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import structlog

from evaluator import __version__, logs
from evaluator.commands.base import LogStream, Session, count
from evaluator.config.job_config import JobConfig
from evaluator.config.settings import Origin, Settings
from evaluator.logs import printable
from evaluator.status import JobStatus

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

LINE_EVERY = 60.0
"""Seconds between two log lines about how far a job is."""

log = structlog.get_logger(__name__)


class Live:
    """Shows how a job goes on while it runs; on a terminal the line goes away at the end."""

    def __init__(self, session: Session, config: JobConfig) -> None:
        """Show nothing yet."""
        self._clock = session.clock
        self._config = config
        self._started = False
        self._progress = _live_line(session.err) if session.err.is_terminal else None
        self._task: TaskID | None = None
        self._told_at = session.clock.monotonic()
        self._told: tuple[int, int] | None = None
        self._following = config.settings.follow

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._progress is not None:
            self._task = self._progress.add_task("waiting for steps" if self._following else "reading", total=None)
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        if self._progress is not None:
            self._progress.stop()

    def tell(self, status: JobStatus, waiting: int) -> None:
        """The job went on."""
        if not self._started:
            self._started = True
            config = self._config
            log.info(
                "job_started",
                trial=config.trial,
                output=config.settings.output,
                rules=len(config.rules),
                version=__version__,
            )
        steps = status.job.steps.complete + status.job.steps.partial
        findings = sum(rule.Findings for rule in status.rules)
        if self._progress is not None and self._task is not None:
            # nobody knows how long a run that is followed will be
            total = None if self._following else steps + waiting
            self._progress.update(
                self._task, description=_line(status, steps, waiting, findings), completed=steps, total=total
            )
            return
        now = self._clock.monotonic()
        if now - self._told_at >= LINE_EVERY and (steps, findings) != self._told:
            self._told_at, self._told = now, (steps, findings)
            log.info("steps_taken", steps=steps, last_step=status.job.steps.last, findings=findings)


def configure_logs(session: Session, settings: Settings, origin: Origin) -> None:
    """Set up logging as the settings say.

    On a terminal the live line and the table of verdicts tell what the lines below a warning would, so those are
    left out there unless a level was asked for.
    """
    terminal = session.err.is_terminal and settings.log_format != "json"
    level = "warning" if terminal and origin == "default" else settings.log_level
    stream: Any = LogStream(session.err.file)
    if terminal:
        from rich.file_proxy import FileProxy  # noqa: PLC0415 - only a terminal needs it

        # through the console, so that the live line stays below
        stream = FileProxy(session.err, session.err.file)
    logs.configure(session.clock, level, settings.log_format, stream)


def _live_line(console: Console) -> Progress:
    """What goes on, on one line; gone at the end."""
    # only a terminal needs it
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    text = TextColumn("{task.description}", markup=False)
    return Progress(SpinnerColumn(), text, BarColumn(20), TimeElapsedColumn(), console=console, transient=True)


def _line(status: JobStatus, steps: int, waiting: int, findings: int) -> str:
    parts = [count(steps, "step")]
    if status.job.steps.last is not None:
        parts[0] += f", last {status.job.steps.last}"
    if waiting:
        parts.append(f"{waiting} waiting")
    if status.job.workers.silent:
        parts.append(f"silent: {', '.join(status.job.workers.silent[:3])}")
    parts.append(count(len(status.rules), "rule"))
    if findings:
        parts.append(count(findings, "finding"))
    return printable(" | ".join(parts))
