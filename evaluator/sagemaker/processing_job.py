"""The configuration of a job that runs as a SageMaker processing job: files below /opt/ml and the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator.config.environment import EnvironmentRule, read_environment
from evaluator.config.files import FileContent, read_config_file
from evaluator.config.job_config import JobConfig, actions_of_job, configure_rules
from evaluator.config.parsing import parse_file
from evaluator.config.rule_stop import VARIABLES, read_rule_stop
from evaluator.config.settings import PREFIX, resolve_settings
from evaluator.engine.distributed import missing_dask
from evaluator.errors import Mistake
from evaluator.registry import known_rules
from evaluator.rule import Rule
from evaluator.sagemaker.cluster import Hosts, cluster_settings, hosts_of
from evaluator.sagemaker.local_paths import LocalPaths, local_paths
from evaluator.scalar_names import Naming

CONFIG_VARIABLE = "RULE_EVALUATOR_CONFIG"
_JOB_FILE = "processingjobconfig.json"


@dataclass(frozen=True)
class ContainerConfig:
    """A job and what is only there in a container.

    Args:
        message_file: whose first 1024 bytes become the job's ExitMessage.
        arn: of the processing job, when it is known.
        hosts: of the processing job, where there are several that share the work.
    """

    job: JobConfig
    message_file: Path
    arn: str | None = None
    hosts: Hosts | None = None


@dataclass(frozen=True)
class ContainerReading:
    """What could be understood of a container's configuration, so that mistakes can be reported in its outputs too.

    Args:
        trial: where the tensors are, as far as that is known.
        output: where the status goes; right even when other things are wrong.
        asked_for: (configuration, rule) of every rule that was asked for, also of a mistaken one.
        config: when there are no mistakes.
        user_rules: whether rules that do not come with the program are allowed.
    """

    trial: str
    output: str
    message_file: Path
    asked_for: tuple[tuple[str, str], ...]
    flat_output: bool
    mistakes: tuple[Mistake, ...]
    config: ContainerConfig | None
    user_rules: bool = True


def read_container(
    ml_root: Path, environment: Mapping[str, str], rules: Mapping[str, Rule] | None = None
) -> ContainerReading:
    """The configuration of the container's job, and everything that is wrong with it.

    The rules come from the first of these that names any: the file of RULE_EVALUATOR_CONFIG (where that is not set,
    the files processing/input/config/*.json), the environment's `rule_to_invoke`, every built-in rule as a candidate.
    """
    job_file, mistakes = _read_object(ml_root / "config" / _JOB_FILE)
    resources, resource_mistakes = _read_object(ml_root / "config" / "resourceconfig.json")
    job_environment = _texts(job_file.get("Environment"))
    paths = local_paths(job_file, ml_root)
    content = _read_files(paths.config, environment.get(CONFIG_VARIABLE) or job_environment.get(CONFIG_VARIABLE))
    settings, origins, setting_mistakes = resolve_settings(
        {}, environment, content.settings, _job_settings(job_file, job_environment, environment), _defaults(paths)
    )
    hosts = hosts_of(resources)
    shared = cluster_settings(hosts) if {origins["engine"], origins["scheduler"]} == {"default"} else {}
    settings = settings.model_copy(update=shared)
    allowed = settings.allow_user_rules
    by_environment = EnvironmentRule()
    rule_stop, stop_notes = read_rule_stop({**job_environment, **environment}) if settings.follow else (None, [])
    notes = [*content.notes, *([] if shared else _several_hosts(job_file, resources)), *stop_notes]
    if content.requests or content.mistakes:
        unused = [repr(name) for name in ("rule_to_invoke", "source_s3_uri") if environment.get(name)]
        if unused:
            what = f"{' and '.join(unused)} {'is' if len(unused) == 1 else 'are'} not used"
            notes.append(f"environment: {what}, because a configuration file names the rules")
    else:
        known = known_rules(with_packs=allowed) if rules is None else rules
        # what the service sets beside the rule's own parameters is none of those
        meant = {name: value for name, value in job_environment.items() if name not in VARIABLES}
        by_environment = read_environment(environment, meant, known)
    notes += by_environment.notes
    requests = [*content.requests, *([by_environment.request] if by_environment.request else [])]
    mistakes += [*resource_mistakes, *content.mistakes, *by_environment.mistakes, *setting_mistakes]
    flat = by_environment.request is not None or bool(by_environment.mistakes)
    message_file = ml_root / "output" / "message"
    configured, rule_notes, rule_mistakes = (
        configure_rules(requests, rules, settings.other_trials, user_rules=allowed)
        if requests or not mistakes
        else ([], [], [])
    )
    mistakes += rule_mistakes
    actions, action_mistakes = actions_of_job(content.actions, configured, settings, environment)
    mistakes += action_mistakes
    config = None
    if not mistakes and settings.trial is not None:
        job = JobConfig(
            trial=settings.trial,
            settings=settings,
            origins=origins,
            rules=tuple(configured),
            labels=content.labels,
            naming=content.naming,
            notes=(*notes, *rule_notes),
            rule_stop=rule_stop,
            region=environment.get("AWS_REGION", "").strip() or None,
            flat_output=flat,
            actions=actions,
        )
        arn = job_file.get("ProcessingJobArn")
        config = ContainerConfig(job, message_file, arn if isinstance(arn, str) else None, hosts if shared else None)
    asked_for = [(request.name or request.use, request.use) for request in requests]
    if flat and not requests:
        asked_for = [(by_environment.asked_for, by_environment.asked_for)]
    return ContainerReading(
        trial=settings.trial or "",
        output=settings.output,
        message_file=message_file,
        asked_for=tuple(asked_for),
        flat_output=flat,
        mistakes=tuple(mistakes),
        config=config,
        user_rules=allowed,
    )


def _read_object(path: Path) -> tuple[dict[str, object], list[Mistake]]:
    """The object in a JSON file; empty where the file is absent, as it is outside SageMaker."""
    if not path.exists():
        return {}, []
    document = parse_file(path)
    if isinstance(document, Mistake):
        return {}, [document]
    if not isinstance(document, dict):
        return {}, [Mistake(str(path), f"holds a {type(document).__name__}", "expected an object")]
    return document, []


def _read_files(folder: Path, location: str | None) -> FileContent:
    if location:
        return read_config_file(location)
    together = FileContent()
    for path in sorted(folder.glob("*.json")):
        content = read_config_file(str(path))
        together.requests += content.requests
        together.actions += content.actions
        together.settings.update(content.settings)
        together.labels.update(content.labels)
        if content.naming is not None:
            together.naming = (together.naming or Naming()).and_then(content.naming)
        together.notes += content.notes
        together.mistakes += content.mistakes
    return together


def _job_settings(
    job_file: Mapping[str, object], job_environment: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, object]:
    """The settings that processingjobconfig.json gives: where the tensors come from, and its `Environment`."""
    settings: dict[str, object] = {}
    uri = _snapshot_uri(job_file)
    if uri:
        settings["trial"] = uri
    for variable, value in job_environment.items():
        ours = variable.startswith(PREFIX) and variable != CONFIG_VARIABLE
        if ours and variable not in environment and value.strip():
            settings[variable.removeprefix(PREFIX).lower()] = value
    return settings


def _snapshot_uri(job_file: Mapping[str, object]) -> str | None:
    """Where the tensors were downloaded from, unless the download goes on: what was downloaded once is a snapshot."""
    inputs = job_file.get("ProcessingInputs")
    for one in inputs if isinstance(inputs, list) else []:
        source = one.get("S3Input") if isinstance(one, dict) and one.get("InputName") == "tensors" else None
        if isinstance(source, dict) and source.get("S3DownloadMode") != "Continuous":
            uri = source.get("S3Uri")
            return uri if isinstance(uri, str) and uri else None
    return None


def _defaults(paths: LocalPaths) -> dict[str, object]:
    return {"trial": str(paths.trial), "output": str(paths.output), "follow": True}


def _several_hosts(job_file: Mapping[str, object], resources: Mapping[str, object]) -> list[str]:
    cluster = job_file.get("ProcessingResources")
    cluster = cluster.get("ClusterConfig") if isinstance(cluster, dict) else None
    count = cluster.get("InstanceCount") if isinstance(cluster, dict) else None
    hosts = resources.get("hosts")
    instances = max(count if isinstance(count, int) else 1, len(hosts) if isinstance(hosts, list) else 1)
    if instances < 2:
        return []
    what = f"{instances} instances were asked for; each evaluates the whole job, so one is enough"
    return [what if missing_dask() is None else f"{what}; with the extra dask they would share the work"]


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {str(key): text for key, text in value.items() if isinstance(text, str)}
