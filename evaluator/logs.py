"""Log lines: JSON for machines, or pretty for people on a terminal; nothing in a name can steer either."""

from __future__ import annotations

import sys
import unicodedata
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from evaluator import strict_json
from evaluator.clock import Clock, timestamp

LEVELS = ("debug", "info", "warning", "error", "critical")
LogFormat = Literal["auto", "json", "console"]

EVENT_KEYS = frozenset(
    {
        # where
        *(
            "trial",
            "rule",
            "rule_configuration",
            "step",
            "first_step",
            "last_step",
            "worker",
            "tensor",
            "sink",
            "where",
        ),
        # what
        *("measured", "limit", "severity", "message", "status", "details", "reason", "error", "what", "signal"),
        # how many
        *("steps", "steps_met", "tensors", "of", "rules", "findings", "errors", "count", "seconds", "files", "lines"),
        # the job
        *("job", "ended_because", "exit_code", "id", "output", "version", "workers", "setting", "value"),
    }
)
"""Every key that a log line may have beside `event`, `level`, `time` and `exception`; one word for one thing."""

_STEERS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of characters that act instead of being seen: controls, directions, lone surrogates, line ends."""


def printable(text: str) -> str:
    """The text on one line, with characters that a terminal would act on written as backslash escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(character) for character in text)


def configure(clock: Clock, level: str = "info", log_format: LogFormat = "auto", stream: TextIO | None = None) -> None:
    """Set up all logging of the process.

    Args:
        clock: stamps the lines.
        level: one of LEVELS; what is below it is left out.
        log_format: `auto` is `console` on a terminal and `json` elsewhere.
        stream: where to, instead of standard error.

    Raises:
        ValueError: the level is not one of LEVELS.
    """
    if level not in LEVELS:
        raise ValueError(f"log_level: {level!r} is not known; known: {', '.join(LEVELS)}")
    target = sys.stderr if stream is None else stream
    console = log_format == "console" or (log_format == "auto" and target.isatty())

    def add_time(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event["time"] = timestamp(clock.now())
        return event

    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        add_time,
    ]
    if console:
        # the rich traceback would show local variables, which may be secrets
        shown = structlog.dev.ConsoleRenderer(
            colors=target.isatty(), timestamp_key="time", exception_formatter=structlog.dev.plain_traceback
        )
        processors += [_escape, shown]
    else:
        processors += [structlog.processors.format_exc_info, _json]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(target),
        cache_logger_on_first_use=False,
    )


def _escape(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return {key: value if key in ("exc_info", "exception") else _escape_value(value) for key, value in event.items()}


def _escape_value(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    return value if isinstance(value, int | float | None) else printable(str(value))


def _json(_: WrappedLogger, __: str, event: EventDict) -> str:
    first = {"time": event.pop("time", None), "level": event.pop("level", None), "event": event.pop("event", None)}
    try:
        return strict_json.dumps({**first, **event}).decode()
    except TypeError:
        # a log line must not be what ends a job
        return strict_json.dumps({**first, **{key: str(value) for key, value in event.items()}}).decode()


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in _STEERS:
        return character
    return character.encode("unicode_escape").decode("ascii")
