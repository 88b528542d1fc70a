"""launch: starts a processing job that evaluates rules beside a training job."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import typer

from evaluator.aws import Refused, Service
from evaluator.commands.base import (
    ActionOption,
    Command,
    ConfigOption,
    LabelOption,
    OtherTrialOption,
    RuleFileOption,
    RuleOption,
    Session,
    SetOption,
    session_of,
    shown,
)
from evaluator.errors import InputError, Mistake
from evaluator.outcome import NOTHING_FOUND
from evaluator.sagemaker.described import Described, describe
from evaluator.sagemaker.launch import LONGEST_RUN, Launch, Machine, Place, launch, wrong_place
from evaluator.sagemaker.launch_rules import Wanted, evaluated
from evaluator.storage import open_store

JOB = "The processing job"


def launch_job(
    context: typer.Context,
    image: Annotated[str, typer.Option(metavar="URI", help="Our image, in a repository of Amazon ECR.")],
    training_job: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The training job whose tensors are evaluated while it saves them."),
    ] = None,
    trial: Annotated[
        str | None, typer.Option(metavar="s3://...", help="The trial, instead of a training job; needs --role.")
    ] = None,
    rule: RuleOption = None,
    rule_file: RuleFileOption = None,
    config: ConfigOption = None,
    action: ActionOption = None,
    other_trial: OtherTrialOption = None,
    settings: SetOption = None,
    label: LabelOption = None,
    role: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="Of the job (default: the training job's).", rich_help_panel=JOB),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="s3://...",
            help="Where status and findings go (default: rule-output/NAME beside the tensors).",
            rich_help_panel=JOB,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Of the results (default: that of the rule, or 'rules').", rich_help_panel=JOB
        ),
    ] = None,
    instance_type: Annotated[
        str, typer.Option(metavar="TYPE", help="What it runs on.", rich_help_panel=JOB)
    ] = Machine.instance_type,
    volume_size: Annotated[
        int, typer.Option(metavar="GB", min=1, max=16384, help="Of its disk.", rich_help_panel=JOB)
    ] = Machine.volume_size,
    max_runtime: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            max=LONGEST_RUN,
            help="How long it may take (default: an hour more than the training job, or a day).",
            rich_help_panel=JOB,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Print the request as JSON, and start nothing.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", metavar="", help="Print one JSON document with the request and what goes to S3."),
    ] = False,
) -> int:
    """Start a processing job that evaluates rules beside a training job.

    Role, network, keys, tensors and results are those of the training job.
    Rules that its environment does not hold go to S3 as a configuration.
    """
    session = session_of(context)
    if (training_job is None) == (trial is None):
        both = "a training job and a trial are given"
        what = both if trial is not None else "neither a training job nor a trial is given"
        raise InputError([Mistake("launch", what, "give --training-job NAME, or --trial s3://BUCKET/PREFIX")])
    region = session.environment.get("AWS_REGION", "").strip() or None
    # a request that is only shown needs nothing of AWS, unless a training job has to be described
    service = None if dry_run and training_job is None else _sagemaker(region)
    described = _described(training_job, service)
    place = _place(trial, described, role, output)
    mistakes: list[Mistake] = []
    if place.trial:
        there = described.region if described is not None else None
        mistakes += wrong_place(place, image, there or (service.region if service is not None else None))
    else:
        right = "one with a DebugHookConfig, or --trial with where its script saves"
        mistakes.append(Mistake(f"training job {training_job!r}", "has no hook, so it saves no tensors", right))
    wanted = Wanted(
        rules=rule or (),
        rule_files=rule_file or (),
        config=config,
        actions=action or (),
        other_trials=other_trial or (),
        set=settings or (),
        labels=label or (),
    )
    rules, wrong = evaluated(wanted, place.trial, training_job)
    mistakes += wrong
    if mistakes:
        raise InputError(mistakes)
    machine = Machine(instance_type, volume_size, max_runtime)
    made = launch(rules, place, image, machine, secrets.token_hex(4), name)
    if isinstance(made, list):
        raise InputError(made)
    arn = None if dry_run or service is None else _start(made, service, session)
    _tell(made, arn, session, as_json=as_json)
    return NOTHING_FOUND


def _place(trial: str | None, described: Described | None, role: str | None, output: str | None) -> Place:
    """What was given, and of the training job what was not."""
    if described is None:
        return Place(trial or "", role or "", output)
    return Place(described.trial or "", role or described.role, output, described)


def _sagemaker(region: str | None) -> Service:
    try:
        return Service("sagemaker", region)
    except Refused as error:
        raise InputError([Mistake("SageMaker", error.what, error.would_be_right)]) from error


def _described(training_job: str | None, service: Service | None) -> Described | None:
    return None if training_job is None or service is None else describe(training_job, service)


def _start(made: Launch, service: Service, session: Session) -> str:
    """Put everything where it belongs, and start the job; its ARN."""
    for uri, data in made.objects.items():
        folder, _, key = uri.rpartition("/")
        open_store(folder, session.clock).write(key, data)
    try:
        return str(service.ask("CreateProcessingJob", **made.request)["ProcessingJobArn"])
    except Refused as error:
        raise InputError([Mistake("CreateProcessingJob", error.what, error.would_be_right)]) from error


def _tell(made: Launch, arn: str | None, session: Session, *, as_json: bool) -> None:
    """Say what was started, or what would be."""
    if as_json:
        document: dict[str, Any] = {
            "schema": 1,
            "processing_job_arn": arn,
            "output": made.output,
            "objects": {uri: data.decode("utf-8", "backslashreplace") for uri, data in made.objects.items()},
            "notes": list(made.notes),
            "request": made.request,
        }
        session.print_json(document)
        return
    for note in made.notes:
        session.err.print(shown(f"note: {note}"), soft_wrap=True)
    if arn is None:
        for uri in made.objects:
            session.err.print(shown(f"note: {uri} has to be there before; --json shows what is in it"), soft_wrap=True)
        session.print_json(made.request)
        return
    session.print(shown(f"started: {made.request['ProcessingJobName']}"), wrap=False)
    session.print(shown(f"output: {made.output}"), wrap=False)
    session.print(shown(f"see how it goes on: rule-evaluator status {made.output}"), wrap=False)


COMMAND = Command("launch", launch_job, 14)
