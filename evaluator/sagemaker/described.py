"""What DescribeTrainingJob says of a training job, as far as rules beside it need that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluator.aws import Refused, Service
from evaluator.errors import InputError, Mistake
from evaluator.status import JobStatus, RuleStatus

TENSORS, RESULTS = "debug-output", "rule-output"
"""Source: processing-contract.md 2.5: where hook and rules of a training job write, below its own folder."""


@dataclass(frozen=True)
class Described:
    """A training job.

    Args:
        status: SageMaker's word for how it stands.
        region: where it is.
        folder: where the results of hook and rules are, s3://...; None where it has no hook.
        role: whose permissions it has.
        vpc: subnets and security groups.
        isolated: whether it may not reach any network.
        encrypted: whether what its instances tell each other is.
        output_key: that its outputs on S3 are encrypted with.
        volume_key: that its disks are encrypted with.
        max_runtime: seconds that it may take.
        rules: of the hosted service, with their statuses.
        profiler_rules: the same of profiler rules.
    """

    name: str
    status: str
    region: str
    folder: str | None
    role: str
    vpc: Mapping[str, Any] | None = None
    isolated: bool = False
    encrypted: bool = False
    output_key: str | None = None
    volume_key: str | None = None
    max_runtime: int | None = None
    rules: tuple[RuleStatus, ...] = field(default=())
    profiler_rules: tuple[RuleStatus, ...] = field(default=())

    @property
    def trial(self) -> str | None:
        """Where its hook saves."""
        return None if self.folder is None else f"{self.folder}/{TENSORS}"

    @property
    def results(self) -> str | None:
        """Where rules write."""
        return None if self.folder is None else f"{self.folder}/{RESULTS}"

    @property
    def hosted(self) -> JobStatus:
        """The hosted rules as the status of a job."""
        return JobStatus(
            trial=self.trial or "",
            DebugRuleEvaluationStatuses=list(self.rules),
            ProfilerRuleEvaluationStatuses=list(self.profiler_rules),
        )


def describe(name: str, sagemaker: Service) -> Described:
    """The training job of that name.

    Raises:
        InputError: there is none, or SageMaker does not say.
    """
    try:
        return described(sagemaker.ask("DescribeTrainingJob", TrainingJobName=name))
    except Refused as error:
        where = f"training job {name!r}"
        if error.code in ("ValidationException", "ResourceNotFound"):
            what = f"there is none of that name in {sagemaker.region}"
            raise InputError([Mistake(where, what, "the name of a training job in this account and region")]) from error
        raise InputError([Mistake(where, error.what, error.would_be_right)]) from error


def described(answer: Mapping[str, Any]) -> Described:
    """What an answer of DescribeTrainingJob says."""
    name = str(answer["TrainingJobName"])
    hook = str((answer.get("DebugHookConfig") or {}).get("S3OutputPath") or "")
    resources, stopping = answer.get("ResourceConfig") or {}, answer.get("StoppingCondition") or {}
    return Described(
        name=name,
        status=str(answer.get("TrainingJobStatus", "")),
        region=(str(answer.get("TrainingJobArn", "")).split(":") + [""] * 4)[3],
        folder=f"{hook.rstrip('/')}/{name}" if hook else None,
        role=str(answer.get("RoleArn", "")),
        vpc=answer.get("VpcConfig") or None,
        isolated=bool(answer.get("EnableNetworkIsolation")),
        encrypted=bool(answer.get("EnableInterContainerTrafficEncryption")),
        output_key=(answer.get("OutputDataConfig") or {}).get("KmsKeyId") or None,
        volume_key=resources.get("VolumeKmsKeyId") or None,
        max_runtime=stopping.get("MaxRuntimeInSeconds"),
        rules=_rules(answer, "Debug"),
        profiler_rules=_rules(answer, "Profiler"),
    )


def _rules(answer: Mapping[str, Any], kind: str) -> tuple[RuleStatus, ...]:
    """The statuses of the hosted rules; which rule each runs, its configuration says."""
    uses = {
        one.get("RuleConfigurationName"): (one.get("RuleParameters") or {}).get("rule_to_invoke")
        for one in answer.get(f"{kind}RuleConfigurations") or []
    }
    found = []
    for one in answer.get(f"{kind}RuleEvaluationStatuses") or []:
        name, at = str(one.get("RuleConfigurationName", "")), one.get("LastModifiedTime")
        values = {
            "RuleConfigurationName": name,
            "Rule": uses.get(name) or name,
            # the hosted service does not tell how severe a finding is
            "Severity": "error",
            "RuleEvaluationJobArn": one.get("RuleEvaluationJobArn"),
            "RuleEvaluationStatus": one.get("RuleEvaluationStatus", "InProgress"),
            "StatusDetails": (one.get("StatusDetails") or "").strip() or None,
            "LastModifiedTime": at.isoformat() if hasattr(at, "isoformat") else str(at or ""),
        }
        found.append(RuleStatus.model_validate(values))
    return tuple(found)
