"""Reads requests in the shape of CreateTrainingJob; what DescribeTrainingJob answers has the same.

Source:
    Amazon SageMaker API, CreateTrainingJob (service model of botocore 1.43).
"""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.sagemaker.check_job import _reading as reading
from evaluator.sagemaker.check_job._request import Collection, Hook, RuleEntry, TrainingRequest
from evaluator.sagemaker.images import parse_image
from evaluator.sagemaker.regions import partition_named, partition_of

READ = (
    "AlgorithmSpecification",
    "CheckpointConfig",
    "DebugHookConfig",
    "DebugRuleConfigurations",
    "HyperParameters",
    "ProfilerRuleConfigurations",
    "ResourceConfig",
    "RoleArn",
    "TrainingJobArn",
)
BESIDE = ("TrainingJobName", "OutputDataConfig", "InputDataConfig", "StoppingCondition", "ProfilerConfig")
RULE_KEYS = (
    "RuleConfigurationName",
    "RuleEvaluatorImage",
    "LocalPath",
    "S3OutputPath",
    "InstanceType",
    "VolumeSizeInGB",
    "RuleParameters",
)
HOOK_KEYS = ("S3OutputPath", "LocalPath", "HookParameters", "CollectionConfigurations")
COLLECTION_KEYS = ("CollectionName", "CollectionParameters")
MISSPELLED = "DebugRulesConfigurations"


def is_one(document: Mapping[str, object]) -> bool:
    """Whether a document is in this shape."""
    return any(key in document for key in (*READ, *BESIDE, MISSPELLED))


def read(document: Mapping[str, object], where: str) -> TrainingRequest:
    """The request, with flaws for what is not in the form."""
    request = TrainingRequest(where)
    flaws = request.flaws
    parts = reading.meant(document, READ, "", flaws, BESIDE)
    algorithm = reading.table(parts.get("AlgorithmSpecification"), "AlgorithmSpecification", flaws)
    image = reading.text(algorithm.get("TrainingImage"))
    if image is not None:
        request.framework, request.version = reading.framework_of_image(image)
    _place(request, parts, image)
    hyperparameters = reading.table(parts.get("HyperParameters"), "HyperParameters", flaws)
    request.strategies = reading.strategies_of_switches(hyperparameters, "HyperParameters")
    request.steps = reading.steps_of(hyperparameters, "HyperParameters")
    resources = reading.table(parts.get("ResourceConfig"), "ResourceConfig", flaws)
    instances = resources.get("InstanceCount")
    request.instances = instances if isinstance(instances, int) else None
    if reading.table(parts.get("CheckpointConfig"), "CheckpointConfig", flaws):
        request.checkpoints = "CheckpointConfig"
    if parts.get("DebugHookConfig") is not None:
        request.hook = _hook(reading.table(parts["DebugHookConfig"], "DebugHookConfig", flaws), request)
    request.rules = _rules(parts, "DebugRuleConfigurations", request)
    request.profiler_rules = _rules(parts, "ProfilerRuleConfigurations", request)
    return request


def _place(request: TrainingRequest, parts: Mapping[str, object], image: str | None) -> None:
    """Where the job runs: a request does not say it, but names things that are there."""
    arn = (reading.text(parts.get("TrainingJobArn")) or "").split(":")
    training = parse_image(image) if image else None
    request.region = arn[3] if len(arn) > 3 and arn[3] else training.region if training else None
    role = (reading.text(parts.get("RoleArn")) or "").split(":")
    by_role = partition_named(role[1]) if len(role) > 1 else None
    request.partition = (partition_of(request.region) if request.region else None) or by_role


def _hook(document: Mapping[str, object], request: TrainingRequest) -> Hook:
    where, flaws = "DebugHookConfig", request.flaws
    parts = reading.meant(document, HOOK_KEYS, where, flaws)
    flaws.extend(reading.unknown_keys(document, HOOK_KEYS, where))
    collections = []
    listed = reading.tables(parts.get("CollectionConfigurations"), f"{where}.CollectionConfigurations", flaws)
    for place, entry in listed:
        one = reading.meant(entry, COLLECTION_KEYS, place, flaws)
        flaws.extend(reading.unknown_keys(entry, COLLECTION_KEYS, place))
        parameters = reading.table(one.get("CollectionParameters"), f"{place}.CollectionParameters", flaws)
        collections.append(Collection(place, reading.text(one.get("CollectionName")) or "", parameters))
    parameters = reading.table(parts.get("HookParameters"), f"{where}.HookParameters", flaws)
    return Hook(where, tuple(collections), parameters, parts)


def _rules(parts: Mapping[str, object], key: str, request: TrainingRequest) -> list[RuleEntry]:
    flaws, found = request.flaws, []
    for place, entry in reading.tables(parts.get(key), key, flaws):
        fields = reading.meant(entry, RULE_KEYS, place, flaws)
        flaws.extend(reading.unknown_keys(entry, RULE_KEYS, place))
        parameters = reading.table(fields.get("RuleParameters"), f"{place}.RuleParameters", flaws)
        name, image = reading.text(fields.get("RuleConfigurationName")), reading.text(fields.get("RuleEvaluatorImage"))
        found.append(RuleEntry(place, name, image, parameters, fields, key.startswith("Profiler")))
    return found
