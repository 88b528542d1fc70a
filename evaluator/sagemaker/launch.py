"""The request of a processing job that evaluates rules beside a training job, or over any trial on S3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluator.config.names import folder_name
from evaluator.errors import Mistake
from evaluator.sagemaker.described import RESULTS, TENSORS, Described
from evaluator.sagemaker.images import parse_image
from evaluator.sagemaker.launch_rules import MOST_VARIABLES, Evaluated

LONGEST_NAME = 63
LONGEST_PART = 26
"""Characters of the training job's name, and of the rule's, in the name of a job.

Source: processing-contract.md 3.5, as the hosted service names them.
"""
LONGEST_RUN = 777_600
"""Seconds. Source: SageMaker API, CreateProcessingJob, StoppingCondition."""
A_DAY = 86_400
AFTER_TRAINING = 3600
"""Seconds that rules may still take when training has used up its own time; ours."""
LOCAL_OUTPUT = "/opt/ml/processing/output/rule"
CONFIGURATIONS = "rule-configuration"
"""The folder beside the results in which configuration objects lie; ours."""
ROLE = re.compile(r"arn:aws[a-z\-]*:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+")
"""Source: SageMaker API, CreateProcessingJob, RoleArn."""


@dataclass(frozen=True)
class Machine:
    """What the processing job runs on."""

    instance_type: str = "ml.t3.medium"
    volume_size: int = 30
    max_runtime: int | None = None


@dataclass(frozen=True)
class Place:
    """Where a processing job finds its trial, and what it may use.

    Args:
        trial: s3://...
        role: whose permissions it has.
        output: s3://..., where that was given.
        training_job: that saves the trial, where it is one.
    """

    trial: str
    role: str
    output: str | None = None
    training_job: Described | None = None


@dataclass(frozen=True)
class Launch:
    """What is to be sent.

    Args:
        request: of CreateProcessingJob.
        objects: URI -> content of what has to be on S3 before.
        output: where status and findings will be.
    """

    request: Mapping[str, Any]
    output: str
    objects: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def wrong_place(place: Place, image: str, region: str | None) -> list[Mistake]:
    """What SageMaker would refuse, or what would come to nothing."""
    mistakes = [*_wrong_image(image, region)]
    if not place.trial.startswith("s3://"):
        right = "s3://BUCKET/PREFIX, or a --training-job"
        mistakes.append(Mistake("--trial", f"{place.trial!r} is on no storage that a processing job reaches", right))
    if not ROLE.fullmatch(place.role):
        what = f"{place.role!r} is no role" if place.role else "no role is given"
        mistakes.append(Mistake("--role", what, "for example arn:aws:iam::111122223333:role/NAME"))
    if place.output is not None and not place.output.startswith("s3://"):
        mistakes.append(Mistake("--output", f"{place.output!r} is not on S3", "s3://BUCKET/PREFIX"))
    if place.output is None and _folder(place) is None:
        what = f"the trial {place.trial!r} is a whole bucket, in which results would lie among its files"
        mistakes.append(Mistake("--output", what, "s3://BUCKET/PREFIX"))
    return mistakes


def launch(
    rules: Evaluated, place: Place, image: str, machine: Machine, mark: str, name: str | None = None
) -> Launch | list[Mistake]:
    """The request, or what does not fit into one.

    Args:
        rules: that are to be evaluated.
        place: which `wrong_place` has nothing against.
        image: of ours, in Amazon ECR.
        machine: that it runs on.
        mark: 8 hex digits that no other job has.
        name: of the results, instead of the rule's.
    """
    called = name or rules.name
    training = place.training_job
    job_name = _job_name(training.name if training is not None else "", called, mark)
    folder = _folder(place) or place.output or ""
    output = (place.output or f"{folder}/{RESULTS}/{folder_name(called)}").rstrip("/")
    beside = folder if place.output is None else place.output.rstrip("/")
    settings = {"trial": place.trial}
    if training is not None:
        settings["training_job_name"] = training.name
    environment, objects = rules.environment(f"{beside}/{CONFIGURATIONS}/{job_name}", settings)
    mistakes = [
        Mistake(f"environment {variable}", f"has {len(value)} characters", "at most 256; give a shorter --output")
        for variable, value in environment.items()
        if len(value) > 256
    ]
    if len(environment) > MOST_VARIABLES:
        what = f"there are {len(environment)} variables"
        mistakes.append(Mistake("environment", what, f"at most {MOST_VARIABLES}; use --config"))
    if mistakes:
        return mistakes
    prefix = f"{beside}/{CONFIGURATIONS}/{job_name}"
    request: dict[str, Any] = {
        "ProcessingJobName": job_name,
        "AppSpecification": {"ImageUri": image},
        "Environment": environment,
        "ProcessingOutputConfig": {"Outputs": [_output(output)]},
        "ProcessingResources": {"ClusterConfig": _cluster(machine, training)},
        "RoleArn": place.role,
        "StoppingCondition": {"MaxRuntimeInSeconds": _max_runtime(machine, training)},
    }
    notes = list(rules.notes)
    if training is not None:
        if training.output_key:
            request["ProcessingOutputConfig"]["KmsKeyId"] = training.output_key
        network = _network(training)
        if network:
            request["NetworkConfig"] = network
        if training.isolated:
            notes.append(
                "the training job may reach no network; the processing job may, since it reads the trial from S3"
            )
    return Launch(request, output, {f"{prefix}/{key}": data for key, data in objects.items()}, tuple(notes))


def _output(uri: str) -> dict[str, Any]:
    upload = {"S3Uri": uri, "LocalPath": LOCAL_OUTPUT, "S3UploadMode": "Continuous"}
    return {"OutputName": "rule", "S3Output": upload}


def _cluster(machine: Machine, training: Described | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "InstanceCount": 1,
        "InstanceType": machine.instance_type,
        "VolumeSizeInGB": machine.volume_size,
    }
    if training is not None and training.volume_key:
        found["VolumeKmsKeyId"] = training.volume_key
    return found


def _network(training: Described) -> dict[str, Any]:
    """The training job's own network; it need not be isolated, as the evaluator reads the trial from S3 itself."""
    found: dict[str, Any] = {}
    if training.vpc is not None:
        found["VpcConfig"] = {
            "SecurityGroupIds": list(training.vpc.get("SecurityGroupIds", [])),
            "Subnets": list(training.vpc.get("Subnets", [])),
        }
    if training.encrypted:
        found["EnableInterContainerTrafficEncryption"] = True
    return found


def _max_runtime(machine: Machine, training: Described | None) -> int:
    if machine.max_runtime is not None:
        return machine.max_runtime
    longest = None if training is None else training.max_runtime
    return A_DAY if longest is None else min(longest + AFTER_TRAINING, LONGEST_RUN)


def _folder(place: Place) -> str | None:
    """The folder that the trial and the results are in; None where the trial is a whole bucket."""
    if place.training_job is not None and place.training_job.folder is not None:
        return place.training_job.folder
    bucket, _, key = place.trial.removeprefix("s3://").strip("/").partition("/")
    if not key:
        return None
    above, _, last = key.rpartition("/")
    # beside the hook's folder, as the service does it; beside any other folder, in one that is called like it
    inside = above if last == TENSORS else f"{key}-rules"
    return f"s3://{bucket}/{inside}".rstrip("/")


def _job_name(training_job: str, called: str, mark: str) -> str:
    """As the hosted service names its jobs; what no name may have in it is left out."""
    parts = [re.sub(r"[^a-zA-Z0-9]+", "-", part)[:LONGEST_PART].strip("-") for part in (training_job, called)]
    return "-".join([*filter(None, parts), mark])[-LONGEST_NAME:].lstrip("-")


def _wrong_image(image: str, region: str | None) -> list[Mistake]:
    found = parse_image(image)
    right = "'rule-evaluator image-uri REGION --account ID --repository NAME' prints where one of your own is"
    if found is None:
        return [Mistake("--image", f"{image!r} is in no registry of Amazon ECR", right)]
    if found.registry is not None and found.account in found.registry.accounts.values():
        return [Mistake("--image", f"{image!r} is the hosted service's own, which takes other requests", right)]
    if region and found.region != region:
        return [Mistake("--image", f"{image!r} is in another region than the job, {region}", "an image in that region")]
    return []
