"""watch: follows all trials that match a pattern, new ones as they appear, in one process."""

from __future__ import annotations

import math
import resource
from contextlib import suppress
from typing import Annotated

import structlog
import typer

from evaluator.commands.base import (
    FOLLOWING,
    OUTPUT,
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
    SourceOption,
    session_of,
    shown,
)
from evaluator.commands.live import configure_logs
from evaluator.commands.signals import Signals
from evaluator.config.job_config import JobConfig
from evaluator.config.load import Arguments, load
from evaluator.errors import InputError, Mistake
from evaluator.watching.followed import Followed
from evaluator.watching.patterns import Pattern
from evaluator.watching.summary import print_rows, rows_document, worst_code
from evaluator.watching.watcher import Watcher, Watching

TOGETHER = "All trials together"
FILES_PER_TRIAL = 2
"""Open files that it cannot do without: the lock of its output, and one that is read."""
FILES_AT_MOST = 12
"""Open files that it may have: folders that are read, and the sockets of a rule's process, too."""
FILES_BESIDE = 100

log = structlog.get_logger(__name__)


def watch(
    context: typer.Context,
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="PATTERN",
            show_default=False,
            help="The trials, a path or URI with wildcards in quotes: 'runs/*/debug-output', 's3://bucket/job-*'.",
        ),
    ],
    rule: RuleOption = None,
    rule_file: RuleFileOption = None,
    config: ConfigOption = None,
    action: ActionOption = None,
    other_trial: OtherTrialOption = None,
    settings: SetOption = None,
    source: SourceOption = None,
    output: OutputOption = None,
    label: LabelOption = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            metavar="",
            help="Print one document at the end, as 'status --json' does, and nothing else on standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    max_trials: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Trials that are followed at the same time; others wait in line.",
            rich_help_panel=TOGETHER,
        ),
    ] = Watching.most,
    max_requests_per_second: Annotated[
        float,
        typer.Option(
            metavar="N",
            help="Requests to S3, and looks for new steps, of all trials together.",
            rich_help_panel=TOGETHER,
        ),
    ] = Watching.requests_per_second,
    look_every: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="How often new trials are looked for.", rich_help_panel=TOGETHER),
    ] = Watching.look_every,
    until_idle: Annotated[
        bool,
        typer.Option(
            "--until-idle",
            metavar="",
            help="Exit once all trials that were found have ended; without it only a stop signal ends watching.",
            rich_help_panel=FOLLOWING,
        ),
    ] = False,
    on_sigterm: Annotated[
        str,
        typer.Option(
            metavar="drain|stop",
            help="At a stop signal take what is saved already, or stop at once; a second signal exits with 130.",
            rich_help_panel=FOLLOWING,
        ),
    ] = "drain",
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            metavar="",
            help="Evaluate trials anew whose output holds a job already, ended or not.",
            rich_help_panel=FOLLOWING,
        ),
    ] = False,
    fail_on: FailOnOption = None,
    exit_zero: ExitZeroOption = False,
) -> int:
    """Follow all trials that match a pattern, and pick up new ones as they appear.

    Each trial has its own output, OUTPUT/NAME, as if `run --follow` were
    started for it; what is wrong with one does not end the others. One that a
    former job has followed to its end is not evaluated again. `memory_budget`
    is for all trials together; a rule file has a process for each, beside it.

    Exit codes as of `run`: 4, 1, 2, 3, the first of these that any trial has.
    """
    session = session_of(context)
    arguments = Arguments(
        trial=pattern,
        rules=rule or (),
        rule_files=rule_file or (),
        config=config,
        actions=action or (),
        other_trials=other_trial or (),
        output=output,
        set=settings or (),
        labels=label or (),
        follow=True,
        on_sigterm=on_sigterm,
        fail_on=fail_on,
        exit_zero=exit_zero,
        own={"source": source},
    )
    with Signals() as signals:
        mistakes = _mistakes(max_trials, max_requests_per_second, look_every)
        try:
            checked = load(arguments, session.environment)
            mistakes += _settings_of_one_job(checked)
            found = Pattern(pattern, session.clock)
        except InputError as error:
            raise InputError([*error.mistakes, *mistakes]) from error
        if mistakes:
            raise InputError(mistakes)
        configure_logs(session, checked.settings, checked.origins["log_level"])

        def tell(one: Followed) -> None:
            if one.state == "followed":
                log.info("trial_found", trial=one.match.uri, output=one.output)
            elif not as_json:
                session.print(shown(one.line()), wrap=False)

        how = Watching(max_trials, max_requests_per_second, look_every, until_idle, restart)
        watcher = Watcher(checked, found, how, session.clock, tell)
        signals.call(watcher.stop)
        trials = watcher.run()
    rows = [one.row(checked) for one in trials if one.status is not None or one.code is not None]
    if until_idle and not rows and not watcher.stopped:
        raise watcher.nothing_found()
    now = session.clock.now()
    code = worst_code(row.exit_code(checked.fail_on, now) for row in rows)
    if as_json:
        session.print_json(rows_document(rows, code, now))
    else:
        print_rows(rows, session.out, now)
        for line in watcher.left():
            session.print(shown(line, "yellow"), wrap=False)
    return code


def _settings_of_one_job(config: JobConfig) -> list[Mistake]:
    """Settings that mean nothing for many jobs."""
    mistakes = []
    if config.settings.training_job_name is not None:
        mistakes.append(Mistake("training_job_name", "is one job's, and many are watched", "leave it out"))
    if config.settings.engine != "local":
        mistakes.append(Mistake("engine", f"{config.settings.engine!r} is for one trial", "local, or use run"))
    return mistakes


def _mistakes(max_trials: int, max_requests_per_second: float, look_every: float) -> list[Mistake]:
    """What is wrong with the numbers."""
    given = {
        "--max-trials": max_trials,
        "--max-requests-per-second": max_requests_per_second,
        "--look-every": look_every,
    }
    mistakes = [
        Mistake(option, f"{value:g} does not fit", "expected a number above 0")
        for option, value in given.items()
        if not 0 < value < math.inf
    ]
    room = _room_for_files(max_trials * FILES_AT_MOST + FILES_BESIDE)
    if max_trials * FILES_PER_TRIAL + FILES_BESIDE > room:
        most = max(int(room - FILES_BESIDE) // FILES_PER_TRIAL, 1)
        what = f"{max_trials} trials need more open files than the {room:g} that the system allows"
        mistakes.append(Mistake("--max-trials", what, f"at most {most}, or a higher limit (ulimit -n)"))
    return mistakes


def _room_for_files(files: int) -> float:
    """Ask the system for so many open files; how many there may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return math.inf
    if soft < files:
        soft = files if hard == resource.RLIM_INFINITY else min(files, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


COMMAND = Command("watch", watch, 16)
