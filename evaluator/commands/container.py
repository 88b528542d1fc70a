"""container: the work of the image, configured by the files of SageMaker and the environment."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import structlog
import typer

from evaluator import __version__, logs, strict_json
from evaluator.clock import timestamp
from evaluator.commands.base import AfterEndOption, Command, LogStream, Session, session_of
from evaluator.commands.live import configure_logs
from evaluator.commands.run import run_job
from evaluator.commands.signals import Signals
from evaluator.config.job_config import read_after_end
from evaluator.errors import EvaluatorError, InputError, Mistake, OutputError, StorageError
from evaluator.outcome import client_error_text
from evaluator.output_folder import OutputFolder
from evaluator.registry import known_rules
from evaluator.rule import Severity
from evaluator.sagemaker.cluster import follow, leading
from evaluator.sagemaker.processing_job import ContainerReading, read_container
from evaluator.sinks.message_file import prepare_message, write_message
from evaluator.sinks.status_file import FILE_NAME
from evaluator.status import Job, JobStatus, Program, RuleStatus
from evaluator.storage import open_store

SECONDS_TO_REPORT = 30.0
"""For which an output on S3 is asked again when all that is left to do is to say what is wrong."""
log = structlog.get_logger(__name__)


def container(
    context: typer.Context,
    ml_root: Annotated[
        Path, typer.Option("--ml-root", metavar="DIR", help="Where the files are that SageMaker puts below /opt/ml.")
    ] = Path("/opt/ml"),
    after_end: AfterEndOption = "exit",
) -> int:
    """Do the container's work: rules and trial from the files below /opt/ml and from the environment.

    A stop signal is the normal end: what is saved already is evaluated first.
    """
    word, wrong_words = read_after_end(after_end)
    session = session_of(context)
    session.as_logs = True
    logs.configure(session.clock, "info", "json", LogStream(session.err.file))  # type: ignore[arg-type]
    with Signals() as signals:
        # known before anything is read, so that a defect in reading is told there too
        session.message_file = ml_root / "output" / "message"
        reading = read_container(ml_root, session.environment)
        session.message_file = reading.message_file
        try:
            prepare_message(reading.message_file)
        except OutputError as error:
            # said now, when somebody may still look; the job can do without
            log.warning("message_cannot_be_written", error=str(error))
        try:
            if reading.config is None or wrong_words:
                raise InputError([*wrong_words, *reading.mistakes])
            job, arn = reading.config.job, reading.config.arn
            settings = job.settings
            job = replace(job, after_end=word)
            if settings.log_format == "auto":
                job = replace(job, settings=settings.model_copy(update={"log_format": "json"}))
            hosts = reading.config.hosts
            if hosts is not None and not hosts.leads:
                configure_logs(session, job.settings, job.origins["log_level"])
                follow(hosts, session.clock, signals.call)
                return 0
            with leading(hosts) if hosts is not None else nullcontext() as no_cluster:
                if no_cluster is not None:
                    alone = job.settings.model_copy(update={"engine": "local", "scheduler": None})
                    job = replace(job, settings=alone, notes=(*job.notes, no_cluster))
                return run_job(session, job, signals, message_file=reading.message_file, arn=arn).exit_code
        except EvaluatorError as error:
            mistakes = error.mistakes if isinstance(error, InputError) else (error.mistake,)
            _report(session, reading, mistakes)
            raise


def _report(session: Session, reading: ContainerReading, mistakes: Sequence[Mistake]) -> None:
    """Leave what is wrong where SageMaker, and who reads the outputs, look for it."""
    try:
        write_message(reading.message_file, client_error_text(mistakes))
    except OutputError as error:
        log.warning("message_not_written", error=str(error))
    try:
        store = open_store(reading.output, session.clock)
    except InputError:
        # that is among the mistakes
        return
    # on S3 the mistake may be that nobody answers, which was waited for already
    store.wait_at_most(SECONDS_TO_REPORT)
    folder = OutputFolder(store, session.clock, [""])
    try:
        folder.prepare()
        # the status of a job that somebody may want to resume is not ours to replace
        if folder.unfinished() is None:
            folder.start_over()
            document = strict_json.dumps(_status(session, reading, mistakes).document(), pretty=True)
            store.write(FILE_NAME, document + b"\n")
    except (OutputError, StorageError) as error:
        log.warning("status_not_written", error=str(error))
    finally:
        folder.release()


def _status(session: Session, reading: ContainerReading, mistakes: Sequence[Mistake]) -> JobStatus:
    """A status in which every rule that was asked for is in Error."""
    now = timestamp(session.clock.now())
    details = "ClientError: " + "; ".join(str(mistake) for mistake in mistakes)
    status = JobStatus(trial=reading.trial)
    status.job = Job(
        program=Program(version=__version__),
        started_at=now,
        updated_at=now,
        ended_at=now,
        ended_because="failed",
        notes=[str(mistake) for mistake in mistakes],
    )
    status.DebugRuleEvaluationStatuses = [
        RuleStatus(
            RuleConfigurationName=name,
            Rule=rule,
            Severity=severity,
            RuleEvaluationStatus="Error",
            StatusDetails=details,
            LastModifiedTime=now,
        )
        for name, rule, severity in _rules(reading)
    ]
    return status


def _rules(reading: ContainerReading) -> list[tuple[str, str, Severity]]:
    """Configuration, rule and severity of every rule that was asked for; candidates were not."""
    if reading.config is not None:
        return [(one.name, one.rule.name, one.severity) for one in reading.config.job.rules if not one.candidate]
    known = {name.lower(): rule for name, rule in known_rules(with_packs=reading.user_rules).items()}
    found: list[tuple[str, str, Severity]] = []
    for name, use in reading.asked_for:
        rule = known.get(use.strip().lower())
        found.append((name, use if rule is None else rule.name, "error" if rule is None else rule.severity))
    return found


COMMAND = Command("container", container, 9)
