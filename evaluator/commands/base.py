"""What every command is given and how it speaks: the session, the form of a command, and options that several take."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TextIO, cast

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from evaluator import strict_json
from evaluator.clock import Clock
from evaluator.logs import printable

WIDE = 240
"""Columns of what does not go to a terminal and has no width of its own: long names stay in one piece for grep."""


@dataclass(frozen=True)
class Command:
    """One command.

    Args:
        name: as it is typed.
        function: takes a typer.Context and options, and returns the exit code.
        place: among the others in help.
    """

    name: str
    function: Callable[..., int]
    place: int


@dataclass
class Session:
    """One run of the command line: what it may read, and where it speaks.

    Args:
        environment: all variables; commands pass on what configuration needs of them.
        output: where a traceback may be left, as soon as a job has a folder.
        message_file: of the container.
        as_logs: whether mistakes are told as log lines, because machines read them.
    """

    environment: Mapping[str, str]
    clock: Clock
    out: Console
    err: Console
    output: Path | None = None
    message_file: Path | None = None
    as_logs: bool = False

    def print(self, *renderables: RenderableType, wrap: bool = True) -> None:
        """Show something on standard output; text is passed as `shown`, never as str."""
        for one in renderables:
            self.out.print(one, soft_wrap=not wrap)

    def print_json(self, document: Any) -> None:
        """Write one JSON document to standard output, in UTF-8 whatever the terminal's encoding is."""
        write_bytes(self.out.file, strict_json.dumps(document, pretty=True) + b"\n")


def session_of(context: typer.Context) -> Session:
    """The session that a command runs in."""
    return cast("Session", context.obj)


def shown(text: str, style: str = "") -> Text:
    """Text to show: neither markup nor control characters of a name in it do anything."""
    return Text(printable(text), style=style)


def names(found: list[str], most: int = 3) -> str:
    """The first few of some names, and how many more there are."""
    more = f", ... ({len(found)} in all)" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def count(number: int, word: str) -> str:
    """A number of things: 1 step, 2 steps."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


class PatientConsole(Console):
    """A console whose reader may go away (`| head`) without that being anybody's mistake."""

    def on_broken_pipe(self) -> None:
        """Say nothing more."""
        self.quiet = True
        drop_output(self.file)


def make_console(stream: TextIO, environment: Mapping[str, str]) -> PatientConsole:
    """A console that takes no text for markup."""
    fixed = stream.isatty() or environment.get("COLUMNS", "").isdigit()
    width = None if fixed else WIDE
    return PatientConsole(file=stream, width=width, markup=False, emoji=False, highlight=False)


def write_bytes(stream: Any, data: bytes) -> None:
    """Write bytes to a text stream past its encoding; nobody there to read them is no problem."""
    try:
        stream.flush()
        if hasattr(stream, "buffer"):
            stream.buffer.write(data)
            stream.buffer.flush()
        else:
            stream.write(data.decode())
    except BrokenPipeError:
        drop_output(stream)


def drop_output(stream: Any) -> None:
    """Let what is still written to a closed pipe, also while the interpreter exits, go nowhere."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class LogStream:
    """Where log lines go; a log that cannot be written must not end a job."""

    def __init__(self, stream: Any) -> None:
        """Write to this stream."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a line, if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write through, if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether a person is reading."""
        return bool(self._stream.isatty())


def use_escapes() -> None:
    """Let characters that the terminal's encoding lacks be shown as escapes instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def first_sentence(text: str) -> str:
    """The first sentence of a documentation, on one line."""
    first = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", first, maxsplit=1)[0]


RULES, FOLLOWING, OUTPUT, VERDICT = "Rules", "Following a run", "Output", "Exit code"
ENGINE = "Several machines"

RuleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="NAME[:key=value,...]",
        help="A rule with its parameters; may be given several times. Without any rule every one that is "
        "installed and applies is tried.",
        rich_help_panel=RULES,
    ),
]
RuleFileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rule-file",
        metavar="WHERE.py[:NAME][:k=v,...]",
        help="A rule in a Python file of your own, with its parameters; NAME is its class or RULE, needed where the "
        "file has several. May be given several times.",
        rich_help_panel=RULES,
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="Rules, settings and labels from a .json or .toml file."),
]
ActionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--action",
        metavar="KIND[:key=value,...]",
        help="What to do at a finding, once for each: command, email, rule_file, sms, stop_file, stop_training "
        "or webhook; at_least=SEVERITY says from which severity on (default: error). May be given several times.",
        rich_help_panel=RULES,
    ),
]
OtherTrialOption = Annotated[
    list[str] | None,
    typer.Option(
        "--other-trial",
        metavar="PATH",
        help="Another trial, for rules that compare with one; may be given several times.",
        rich_help_panel=RULES,
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|s3://...",
        help="Where status and findings go, a folder or s3://BUCKET/PREFIX (default: rule-output).",
        rich_help_panel=OUTPUT,
    ),
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="k=v", help="A label for status and findings; may be given several times.", rich_help_panel=OUTPUT
    ),
]
FailOnOption = Annotated[
    str | None,
    typer.Option(
        metavar="SEVERITY",
        help="Exit with 1 for findings of this severity or above: critical, error, warning, info, never "
        "(default: info).",
        rich_help_panel=VERDICT,
    ),
]
ExitZeroOption = Annotated[
    bool,
    typer.Option("--exit-zero", metavar="", help="Findings do not change the exit code.", rich_help_panel=VERDICT),
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The format of the trial, where its content does not tell: smdebug, tensorboard, trainer_state, csv, "
        "json_lines.",
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        metavar="local|dask",
        help="What reads the trial: this process, or the workers of a Dask cluster (default: local).",
        rich_help_panel=ENGINE,
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(metavar="tcp://HOST:PORT", help="With --engine dask: where the scheduler is.", rich_help_panel=ENGINE),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="name=value",
        help="A setting; may be given several times. 'rule-evaluator settings' lists them.",
    ),
]
AfterEndOption = Annotated[
    str,
    typer.Option(
        metavar="exit|wait",
        help="When the job has ended, exit, or stay until a stop signal comes, as a sidecar must; "
        "the exit code is the same.",
        rich_help_panel=FOLLOWING,
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", metavar="", help="Print one JSON document on standard output and nothing else there.")
]
