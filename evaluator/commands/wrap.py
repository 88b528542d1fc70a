"""wrap: runs a training script and evaluates what it saves while it runs."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import structlog
import typer

from evaluator.commands.base import (
    ActionOption,
    Command,
    ConfigOption,
    ExitZeroOption,
    FailOnOption,
    LabelOption,
    OtherTrialOption,
    OutputOption,
    RuleFileOption,
    RuleOption,
    SetOption,
    session_of,
)
from evaluator.commands.run import run_job
from evaluator.commands.signals import Signals
from evaluator.config.load import Arguments, load
from evaluator.errors import InputError, Mistake
from evaluator.job import Result
from evaluator.rule import SEVERITIES
from evaluator.saving.stop_file import AGREED, STOP
from evaluator.status import JobStatus
from evaluator.table import print_verdicts

log = structlog.get_logger(__name__)

SCRIPT = "The script"


def wrap(
    context: typer.Context,
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", show_default=False, help="The script, after two dashes.")
    ],
    trial: Annotated[str, typer.Option(metavar="DIR", help="The folder that the script saves under.")],
    stop_on: Annotated[
        str | None,
        typer.Option(
            metavar="SEVERITY",
            help="Stop the script at a finding of this severity or above: SIGTERM, and the file STOP in the trial.",
            rich_help_panel=SCRIPT,
        ),
    ] = None,
    rule: RuleOption = None,
    rule_file: RuleFileOption = None,
    config: ConfigOption = None,
    action: ActionOption = None,
    other_trial: OtherTrialOption = None,
    settings: SetOption = None,
    output: OutputOption = None,
    label: LabelOption = None,
    fail_on: FailOnOption = None,
    exit_zero: ExitZeroOption = False,
) -> int:
    """Run a training script, and evaluate rules over what it saves until it ends.

    The exit code is the script's where it failed by itself, otherwise that of the verdict (see `run`). A stop signal
    is passed on to the script; what it saves until its end is still evaluated.
    """
    session = session_of(context)
    least = _severity(stop_on)
    arguments = Arguments(
        trial=trial,
        rules=rule or (),
        rule_files=rule_file or (),
        config=config,
        actions=action or (),
        other_trials=other_trial or (),
        output=output,
        set=settings or (),
        labels=label or (),
        follow=True,
        fail_on=fail_on,
        exit_zero=exit_zero,
    )
    with Signals() as signals:
        checked = load(arguments, session.environment)
        script = Script(command, Path(trial))
        try:
            checked = replace(checked, until_pid=script.pid)

            def watch(status: JobStatus, _: int) -> None:
                if least is not None and _found(status, least):
                    script.stop()

            def show(result: Result) -> None:
                # standard output is the script's
                print_verdicts(result.status, session.err, checked.settings.output)

            result = run_job(session, checked, signals, show=show, watch=watch, on_signal=script.terminate)
        except BaseException:
            script.terminate()
            raise
        code = script.wait()
    return result.exit_code if script.stopped or not code else code


class Script:
    """The training script, as a process of ours."""

    def __init__(self, command: Sequence[str], trial: Path) -> None:
        """Start it.

        Raises:
            InputError: there is no such program.
        """
        for name in (STOP, AGREED):
            # what stopped an earlier run in the same folder must not stop this one
            (trial / name).unlink(missing_ok=True)
        self._trial = trial
        self.stopped = False
        """Whether it was stopped because of a finding."""
        try:
            self._process = subprocess.Popen(list(command))  # noqa: S603 - it is what was asked for
        except OSError as error:
            right = "the command that starts the training, after two dashes"
            raise InputError([Mistake(command[0], f"cannot be started: {error.strerror}", right)]) from error
        # who is not waited for stays in the list of processes, and would never seem to end
        self._waiter = threading.Thread(target=self._process.wait, daemon=True)
        self._waiter.start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def stop(self) -> None:
        """Stop it because of a finding, once."""
        if self.stopped or self._process.poll() is not None:
            return
        self.stopped = True
        log.warning("script_stopped")
        self.terminate()
        with suppress(OSError):
            # a script that goes on in spite of the signal may look for this
            (self._trial / STOP).touch()

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Its exit code, when it has ended; 128 and the number of the signal that ended it."""
        code = self._process.wait()
        return 128 - code if code < 0 else code


def _severity(word: str | None) -> str | None:
    """The least severity that stops the script."""
    if word is None or word.lower() in SEVERITIES:
        return word and word.lower()
    raise InputError([Mistake("--stop-on", f"{word!r} does not fit", f"expected one of {', '.join(SEVERITIES)}")])


def _found(status: JobStatus, least: str) -> bool:
    """Whether a rule has found something that is severe enough."""
    enough = SEVERITIES[: SEVERITIES.index(least) + 1]
    return any(rule.Finding is not None and rule.Finding.severity in enough for rule in status.rules)


COMMAND = Command("wrap", wrap, 15)
