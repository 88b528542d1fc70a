"""What a request or description says of a training job beyond Debugger: where it runs, on what, and how it stands.

Source:
    Amazon SageMaker API, CreateTrainingJob and DescribeTrainingJob (service model of botocore 1.43);
    sagemaker-python-sdk 2.257.6, sagemaker/estimator.py, for the arguments of estimators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.sagemaker.diagnose._values import moment, table, tables, text, texts, whole
from evaluator.sagemaker.training_job import OVER

MOST_CHARACTERS = 1024
"""Of the reason of a failure. Source: SageMaker API, FailureReason."""


@dataclass(frozen=True)
class JobFacts:
    """A training job.

    Args:
        groups: the security groups that it is to run in; empty for SageMaker's own network.
        file_systems: the FSx file systems that it reads from.
        status: TrainingJobStatus; None where this is a request only.
        started: when the training began, in seconds since the epoch.
        ended: when it ended.
        failure: why it failed, as SageMaker says it.
        region: by its ARN, or as an estimator has it; partition: by its role.
        tensors: where Debugger saves.
    """

    name: str | None = None
    instance_type: str | None = None
    instances: int | None = None
    groups: tuple[str, ...] = ()
    file_systems: tuple[str, ...] = ()
    status: str | None = None
    started: float | None = None
    ended: float | None = None
    failure: str | None = None
    region: str | None = None
    partition: str | None = None
    image: str | None = None
    tensors: str | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.status in OVER


def job_facts(document: Mapping[str, object]) -> JobFacts:
    """The facts of a document in either shape."""
    resources = table(document.get("ResourceConfig"))
    network = table(document.get("VpcConfig"))
    algorithm = table(document.get("AlgorithmSpecification"))
    groups = [table(one) for one in tables(resources.get("InstanceGroups"))]
    kinds = {kind for one in groups if (kind := text(one.get("InstanceType")))}
    counts = [count for one in groups if (count := whole(one.get("InstanceCount"))) is not None]
    one_kind = kinds.pop() if len(kinds) == 1 else None
    systems = []
    for channel in tables(document.get("InputDataConfig")):
        source = table(table(channel.get("DataSource")).get("FileSystemDataSource"))
        system = text(source.get("FileSystemId"))
        if system is not None and source.get("FileSystemType") != "EFS":
            systems.append(system)
    arn = (text(document.get("TrainingJobArn")) or "").split(":")
    role = (text(document.get("RoleArn")) or text(document.get("role")) or "").split(":")
    name = text(document.get("TrainingJobName"))
    hook, path = table(document.get("DebugHookConfig")), None
    if (prefix := text(hook.get("S3OutputPath"))) is not None and name is not None and len(arn) > 3:
        path = f"{prefix.rstrip('/')}/{name}/debug-output"
    return JobFacts(
        name=name,
        instance_type=text(resources.get("InstanceType")) or text(document.get("instance_type")) or one_kind,
        instances=whole(resources.get("InstanceCount")) or whole(document.get("instance_count")) or sum(counts) or None,
        groups=texts(network.get("SecurityGroupIds")) or texts(document.get("security_group_ids")),
        file_systems=tuple(dict.fromkeys(systems)),
        status=text(document.get("TrainingJobStatus")),
        started=moment(document.get("TrainingStartTime")),
        ended=moment(document.get("TrainingEndTime")),
        failure=(text(document.get("FailureReason")) or "")[:MOST_CHARACTERS] or None,
        region=arn[3] if len(arn) > 3 else text(document.get("region")),
        partition=role[1] if len(role) > 1 else None,
        image=text(algorithm.get("TrainingImage")) or text(document.get("image_uri")),
        tensors=path,
    )
