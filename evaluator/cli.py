"""The command line: from arguments to an exit code, whatever happens on the way.

Without arguments the help is printed and the exit code is 2, as with all programs made with click.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import structlog
import typer

import evaluator
from evaluator import strict_json
from evaluator.clock import SystemClock
from evaluator.commands import commands, commands_for
from evaluator.commands.base import LogStream, Session, drop_output, make_console, session_of, use_escapes, write_bytes
from evaluator.errors import EvaluatorError, InputError, Mistake, did_you_mean
from evaluator.logs import configure, printable
from evaluator.outcome import (
    NOTHING_FOUND,
    OUR_DEFECT,
    SECOND_SIGNAL,
    WRONG_INPUT,
    input_error_document,
    internal_error_text,
)
from evaluator.output_folder import TRACEBACK
from evaluator.sinks.message_file import write_message

PROGRAM = "rule-evaluator"
OUTPUT_IS_FULL = {errno.ENOSPC, errno.EDQUOT}
_HELP = ("-h", "--help")

log = structlog.get_logger(__name__)


def run_command_line(argv: list[str]) -> int:
    """Do what the arguments say; gives the exit code, and raises nothing."""
    use_escapes()
    environment = dict(os.environ)
    clock = SystemClock()
    configure(clock, stream=LogStream(sys.stderr))  # type: ignore[arg-type]
    session = Session(environment, clock, make_console(sys.stdout, environment), make_console(sys.stderr, environment))
    try:
        code = _outcome(argv, session)
    except Exception as error:  # noqa: BLE001 - the one place where a defect of ours ends, so that it never ends as a verdict
        code = _defect(error, session)
    _flush()
    return code


def _outcome(argv: list[str], session: Session) -> int:
    """The exit code of everything that is no defect."""
    try:
        return _run(argv, session)
    except typer.Exit as end:
        # who asked for nothing is shown the help, and did it wrong
        return end.exit_code if argv else WRONG_INPUT
    except (KeyboardInterrupt, typer.Abort):
        return SECOND_SIGNAL
    except InputError as error:
        return _wrong_input(error.mistakes, argv, session)
    except EvaluatorError as error:
        return _wrong_input([error.mistake], argv, session)
    except typer.TyperException as error:
        return _wrong_input([_usage_mistake(error, argv)], argv, session)
    except (BrokenPipeError, SystemExit):
        # somebody who closes a pipe has read enough; a console of rich ends the program then
        return NOTHING_FOUND
    except OSError as error:
        if error.errno not in OUTPUT_IS_FULL:
            raise
        return _wrong_input([Mistake("standard output", str(error.strerror), "somewhere with room")], [], session)


def _run(argv: list[str], session: Session) -> int:
    """Run the command; what help prints goes through typer's own console."""
    command = typer.main.get_command(_make_app(argv))
    with command.make_context(PROGRAM, [*argv] or ["--help"], obj=session) as context:
        code: Any = command.invoke(context)
    return int(code)


def _make_app(argv: list[str]) -> typer.Typer:
    app = typer.Typer(
        name=PROGRAM, add_completion=False, rich_markup_mode="rich", context_settings={"help_option_names": list(_HELP)}
    )
    app.callback()(_about)
    for command in commands_for(argv):
        app.command(command.name)(command.function)
    return app


def _version(context: typer.Context, wanted: bool) -> None:
    if wanted:
        session_of(context).out.print(f"{PROGRAM} {evaluator.__version__}")
        raise typer.Exit


def _about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, metavar="", help="Print the version and exit."),
    ] = False,
) -> None:
    """Evaluates rules over the tensors that a training run saved, in the format of SageMaker Debugger.

    Start with 'rule-evaluator show TRIAL', then 'rule-evaluator run TRIAL'.
    """


def _wrong_input(mistakes: Any, argv: list[str], session: Session) -> int:
    """Tell everything that is wrong, one line each."""
    if "--json" in argv:
        document = strict_json.dumps(input_error_document(mistakes), pretty=True)
        write_bytes(sys.stdout, document + b"\n")
    for mistake in mistakes:
        if session.as_logs:
            log.error("input_is_wrong", where=mistake.where, what=mistake.what, reason=mistake.would_be_right)
        else:
            _say(str(mistake))
    return WRONG_INPUT


def _defect(error: Exception, session: Session) -> int:
    """Leave the traceback in a file, and say where."""
    text = "".join(traceback.format_exception(error))
    path = _leave_traceback(text, session.output)
    where = f"the traceback is in {path}" if path is not None else f"the traceback could not be written:\n{text}"
    if session.as_logs:
        log.critical("internal_error", error=type(error).__name__, where=str(path or text))
    else:
        _say(f"internal error: {type(error).__name__}; {where}" if path else f"internal error; {where}")
    if session.message_file is not None:
        with suppress(EvaluatorError):
            # the exit code says it too
            write_message(session.message_file, internal_error_text(error))
    return OUR_DEFECT


def _leave_traceback(text: str, output: Path | None) -> Path | None:
    """Write a traceback into the output folder, or where temporary files go."""
    data = text.encode("utf-8", "backslashreplace")
    if output is not None and output.is_dir():
        path = output / TRACEBACK
        with suppress(OSError):
            path.write_bytes(data)
            return path
    try:
        with tempfile.NamedTemporaryFile(prefix=f"{PROGRAM}-", suffix=".txt", delete=False) as file:
            file.write(data)
    except OSError:
        return None
    return Path(file.name)


def _usage_mistake(error: typer.TyperException, argv: list[str]) -> Mistake:
    """A mistake of usage in our form; the classes of click are inside typer and may not be named."""
    context = getattr(error, "ctx", None)
    names = [command.name for command in commands()]
    where = f"{PROGRAM} {argv[0]}" if argv and argv[0] in names else PROGRAM
    option = getattr(error, "option_name", None)
    text = " ".join(str(getattr(error, "message", error)).split())
    if context is not None and option is not None and "no such option" in text.lower():
        known = [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
        return Mistake(where, f"option {option!r} is not known", did_you_mean(option, [*known, "--help"], "options"))
    parameter = getattr(error, "param", None)
    if parameter is not None:
        name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar or parameter.name
        what = f"{name} is missing" if not text else f"{name}: {_decapitalised(text)}"
        return Mistake(where, what, f"see '{where} --help'")
    if text.lower().startswith("no such command"):
        name = text.split("'")[1] if "'" in text else text
        return Mistake(where, f"command {name!r} is not known", did_you_mean(name, names, "commands"))
    return Mistake(where, _decapitalised(text), f"see '{where} --help'")


def _decapitalised(text: str) -> str:
    return (text[:1].lower() + text[1:]).rstrip(".")


def _say(text: str) -> None:
    """A line on standard error, whoever reads it or not."""
    with suppress(OSError, ValueError):
        sys.stderr.write("\n".join(printable(line) for line in text.splitlines()) + "\n")


def _flush() -> None:
    """Write out what is left, and let what nobody reads any more go nowhere."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            drop_output(stream)
