"""run: evaluates rules over a trial."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from evaluator.commands.base import (
    FOLLOWING,
    OUTPUT,
    ActionOption,
    AfterEndOption,
    Command,
    ConfigOption,
    EngineOption,
    ExitZeroOption,
    FailOnOption,
    LabelOption,
    OtherTrialOption,
    OutputOption,
    RuleFileOption,
    RuleOption,
    SchedulerOption,
    Session,
    SetOption,
    SourceOption,
    session_of,
)
from evaluator.commands.live import Live, configure_logs
from evaluator.commands.signals import Signals
from evaluator.config.job_config import JobConfig
from evaluator.config.load import Arguments, load
from evaluator.errors import InputError, Mistake
from evaluator.job import Job, Result, Watch
from evaluator.table import print_verdicts


def run(
    context: typer.Context,
    trial: Annotated[
        str | None,
        typer.Argument(metavar="TRIAL", show_default=False, help="The folder that one training run saved under."),
    ] = None,
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
            help="Print the final status.json on standard output and nothing else there.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    follow: Annotated[
        bool | None,
        typer.Option(
            "--follow", metavar="", help="Wait for further steps until the run ends.", rich_help_panel=FOLLOWING
        ),
    ] = None,
    until_pid: Annotated[
        int | None,
        typer.Option(
            metavar="PID", help="With --follow: the run ends when this process does.", rich_help_panel=FOLLOWING
        ),
    ] = None,
    training_job: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --follow: the run ends when this SageMaker training job does.",
            rich_help_panel=FOLLOWING,
        ),
    ] = None,
    on_sigterm: Annotated[
        str,
        typer.Option(
            metavar="drain|stop",
            help="At a stop signal take what is saved already, or stop at once; a second signal exits with 130.",
            rich_help_panel=FOLLOWING,
        ),
    ] = "drain",
    after_end: AfterEndOption = "exit",
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            metavar="",
            help="With --follow: begin anew where the output folder holds an unfinished job.",
            rich_help_panel=FOLLOWING,
        ),
    ] = False,
    engine: EngineOption = None,
    scheduler: SchedulerOption = None,
    fail_on: FailOnOption = None,
    exit_zero: ExitZeroOption = False,
) -> int:
    """Evaluate rules over a trial, as it stands or (with --follow) while it grows.

    Exit codes: 0 no finding, 1 findings, 2 wrong input,
    3 a named rule was not evaluated, 4 a defect of the program.
    """
    session = session_of(context)
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
        follow=follow,
        until_pid=until_pid,
        training_job=training_job,
        on_sigterm=on_sigterm,
        after_end=after_end,
        fail_on=fail_on,
        exit_zero=exit_zero,
        own={"source": source, "engine": engine, "scheduler": scheduler},
    )
    with Signals() as signals:
        job_config = load(arguments, session.environment)
        if restart and not job_config.settings.follow:
            raise InputError([Mistake("--restart", "has no meaning when nothing is followed", "add --follow")])

        def show(result: Result) -> None:
            if as_json:
                session.print_json(result.status.document())
            else:
                print_verdicts(result.status, session.out, job_config.settings.output)

        return run_job(session, job_config, signals, show=show, restart=restart).exit_code


def run_job(
    session: Session,
    config: JobConfig,
    signals: Signals,
    *,
    show: Callable[[Result], None] | None = None,
    message_file: Path | None = None,
    restart: bool = False,
    arn: str | None = None,
    watch: Watch | None = None,
    on_signal: Callable[[], None] | None = None,
) -> Result:
    """Run a job that shows how it goes on and that stops at a signal.

    Args:
        session: where it speaks.
        config: the job.
        signals: that may stop it.
        show: told what it came to.
        message_file: of a container.
        restart: whether to begin anew over the output of an unfinished job.
        arn: of the processing job.
        watch: told how it goes on, instead of a live line.
        on_signal: called at a signal, instead of stopping the job.
    """
    configure_logs(session, config.settings, config.origins["log_level"])
    with nullcontext() if watch is not None else Live(session, config) as live:
        told = live.tell if live is not None else watch
        job = Job(config, session.clock, message_file=message_file, watch=told, restart=restart, arn=arn)
        session.output = Path(config.settings.output)
        signals.call(on_signal or job.stop.request)
        result = job.run()
    if show is not None:
        # before the process stays on: what it came to is known
        show(result)
    job.stay()
    return result


COMMAND = Command("run", run, 1)
