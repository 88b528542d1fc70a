"""Reads requests in the shape of the SDK's estimators: their arguments, written down as JSON.

Source:
    sagemaker-python-sdk 2.257.6: sagemaker/estimator.py, sagemaker/debugger/debugger.py. What the SDK fills in is
    filled in here too: the collections of a rule for which the user names none, and the hook where there are rules.
"""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.sagemaker.check_job import _reading as reading
from evaluator.sagemaker.check_job._hosted import COLLECTIONS, PROFILER_RULES
from evaluator.sagemaker.check_job._request import Collection, Hook, RuleEntry, TrainingRequest
from evaluator.sagemaker.images import parse_image
from evaluator.sagemaker.regions import partition_named, partition_of

READ = (
    "checkpoint_local_path",
    "checkpoint_s3_uri",
    "debugger_hook_config",
    "distribution",
    "estimator",
    "framework",
    "framework_version",
    "hyperparameters",
    "image_uri",
    "instance_count",
    "region",
    "role",
    "rules",
)
RULE_KEYS = (
    "name",
    "rule_to_invoke",
    "image_uri",
    "source",
    "instance_type",
    "volume_size_in_gb",
    "rule_parameters",
    "collections_to_save",
    "container_local_output_path",
    "s3_output_path",
)
HOOK_KEYS = ("s3_output_path", "container_local_output_path", "hook_parameters", "collection_configs")
COLLECTION_KEYS = ("name", "parameters")

_FRAMEWORKS = {"pytorch": "pytorch", "tensorflow": "tensorflow", "mxnet": "mxnet", "xgboost": "xgboost"}
_KINDS = {
    "parameter_server": "parameter-server",
    "multi_worker_mirrored_strategy": "multi-worker mirrored strategy",
    "pytorchddp": "PyTorch's distributed data parallel",
    "torch_distributed": "torch.distributed",
    "pytorchxla": "PyTorch XLA",
}


def is_one(document: Mapping[str, object]) -> bool:
    """Whether a document is in this shape."""
    return any(key in document for key in READ)


def read(document: Mapping[str, object], where: str) -> TrainingRequest:
    """The request, with flaws for what is not in the form."""
    request = TrainingRequest(where, estimator=True)
    flaws = request.flaws
    parts = reading.meant(document, READ, "", flaws)
    image = reading.text(parts.get("image_uri"))
    if image is not None:
        request.framework, request.version = reading.framework_of_image(image)
    named = (reading.text(parts.get("framework")) or reading.text(parts.get("estimator")) or "").lower()
    request.framework = _FRAMEWORKS.get(named, request.framework)
    request.version = reading.text(parts.get("framework_version")) or request.version
    training = parse_image(image) if image else None
    request.region = reading.text(parts.get("region")) or (training.region if training else None)
    role = (reading.text(parts.get("role")) or "").split(":")
    by_role = partition_named(role[1]) if len(role) > 1 else None
    request.partition = (partition_of(request.region) if request.region else None) or by_role
    hyperparameters = reading.table(parts.get("hyperparameters"), "hyperparameters", flaws)
    request.steps = reading.steps_of(hyperparameters, "hyperparameters")
    request.strategies = _strategies(reading.table(parts.get("distribution"), "distribution", flaws))
    instances = parts.get("instance_count")
    request.instances = instances if isinstance(instances, int) else None
    request.checkpoints = next(
        (key for key in ("checkpoint_s3_uri", "checkpoint_local_path") if reading.text(parts.get(key))), None
    )
    brought: list[Collection] = []
    for place, entry in reading.tables(parts.get("rules"), "rules", flaws):
        one = _rule(entry, place, request, brought)
        (request.profiler_rules if one.profiler else request.rules).append(one)
    request.hook = _hook(parts.get("debugger_hook_config"), brought, request)
    return request


def _strategies(distribution: Mapping[str, object]) -> dict[str, str]:
    found: dict[str, str] = {}
    smdistributed = distribution.get("smdistributed")
    for kind, strategy in (("dataparallel", "data-parallel"), ("modelparallel", "model-parallel")):
        if _enabled(smdistributed.get(kind) if isinstance(smdistributed, dict) else None):
            found[strategy] = f"distribution.smdistributed.{kind}"
    # model parallel training is started by MPI too
    if _enabled(distribution.get("mpi")) and "model-parallel" not in found:
        found["horovod"] = "distribution.mpi"
    for kind, strategy in _KINDS.items():
        if _enabled(distribution.get(kind)):
            found[strategy] = f"distribution.{kind}"
    return found


def _enabled(value: object) -> bool:
    return isinstance(value, dict) and value.get("enabled") is True


def _rule(entry: Mapping[str, object], where: str, request: TrainingRequest, brought: list[Collection]) -> RuleEntry:
    """One rule; what it has saved is added to `brought`."""
    flaws = request.flaws
    fields = reading.meant(entry, RULE_KEYS, where, flaws)
    flaws.extend(reading.unknown_keys(entry, RULE_KEYS, where))
    parameters = dict(reading.table(fields.get("rule_parameters"), f"{where}.rule_parameters", flaws))
    for key, meaning in (("rule_to_invoke", "rule_to_invoke"), ("source", "source_s3_uri")):
        if fields.get(key) is not None:
            parameters.setdefault(meaning, fields[key])
    name = reading.text(fields.get("name")) or reading.text(parameters.get("rule_to_invoke"))
    image = reading.text(fields.get("image_uri"))
    if name is not None and RuleEntry(where, name, image, parameters).hosted_built_in:
        # the SDK's own configurations of built-in rules are named as the rules are
        parameters.setdefault("rule_to_invoke", name)
    rule = reading.text(parameters.get("rule_to_invoke")) or ""
    if fields.get("collections_to_save"):
        brought += _collections(fields["collections_to_save"], f"{where}.collections_to_save", request)
    else:
        left_out = f"{where}.collections_to_save (left out)"
        brought += [Collection(left_out, one, given) for one, given in COLLECTIONS.get(rule, {}).items()]
    return RuleEntry(where, name, image, parameters, fields, rule in PROFILER_RULES)


def _hook(value: object, brought: list[Collection], request: TrainingRequest) -> Hook | None:
    where = "debugger_hook_config"
    if value is False or (value is None and not request.rules):
        return None
    document = {} if value is True else reading.table(value, where, request.flaws)
    parts = reading.meant(document, HOOK_KEYS, where, request.flaws)
    request.flaws.extend(reading.unknown_keys(document, HOOK_KEYS, where))
    own = _collections(parts.get("collection_configs"), f"{where}.collection_configs", request)
    parameters = reading.table(parts.get("hook_parameters"), f"{where}.hook_parameters", request.flaws)
    # the SDK sends equal ones once
    unlike = {(one.name, repr(sorted(one.parameters.items()))): one for one in [*brought, *own]}
    return Hook(where, tuple(unlike.values()), parameters, parts)


def _collections(value: object, where: str, request: TrainingRequest) -> list[Collection]:
    found = []
    for place, entry in reading.tables(value, where, request.flaws):
        one = reading.meant(entry, COLLECTION_KEYS, place, request.flaws)
        request.flaws.extend(reading.unknown_keys(entry, COLLECTION_KEYS, place))
        parameters = reading.table(one.get("parameters"), f"{place}.parameters", request.flaws)
        found.append(Collection(place, reading.text(one.get("name")) or "", parameters))
    return found
