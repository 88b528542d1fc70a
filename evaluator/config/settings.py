"""The settings of a job: what they are, and which of five places each value comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evaluator.config.wire import Unfit, read_model
from evaluator.errors import InputError, Mistake, did_you_mean

PREFIX = "RULE_EVALUATOR_"
"""How the environment variables of settings start."""

KNOWN_VARIABLES = frozenset({"RULE_EVALUATOR_CONFIG"})
"""Variables with that prefix that are no setting: where the container finds its configuration."""

MIB = 1024 * 1024

_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)

Origin = Literal["command line", "environment", "configuration file", "processingjobconfig.json", "default"]
"""Where the value of a setting comes from, in the order in which they win."""


def _seconds(default: float, description: str, *, above_zero: bool = False) -> Any:
    bound = {"gt": 0} if above_zero else {"ge": 0}
    unit = {"unit": "seconds"}
    return Field(default=default, **bound, allow_inf_nan=False, description=description, json_schema_extra=unit)  # type: ignore[call-overload]


class Settings(BaseModel):
    """How a job works, as against what it evaluates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trial: str | None = Field(default=None, min_length=1, description="The folder that one training run saved under.")
    other_trials: tuple[str, ...] = Field(
        default=(), description="Paths of trials that rules compare with, comma-separated."
    )
    output: str = Field(
        default="rule-output",
        min_length=1,
        description="Folder, or s3://BUCKET/PREFIX, that status and findings are written to.",
    )
    source: str | None = Field(
        default=None,
        min_length=1,
        description="Format of the trial, where its content does not tell: smdebug, tensorboard, trainer_state, csv or "
        "json_lines.",
    )
    follow: bool = Field(default=False, description="Wait for further steps until the end of training is seen.")
    training_job_name: str | None = Field(
        default=None,
        pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$",
        description="When following, the SageMaker training job whose end is the end of the run "
        "(needs sagemaker:DescribeTrainingJob and the extra s3).",
    )
    start_timeout: float = _seconds(3600, "When following, how long to wait for the first saved step.")
    idle_timeout: float = _seconds(
        3600,
        "When following, how long nothing new may come before the job ends. "
        "Raised to the longest silence that a named rule waits for, and 60 more.",
    )
    late_grace: float = _seconds(30, "How long a step's late workers are waited for once a later step is complete.")
    worker_quorum: float = _seconds(300, "How long after its first file a step is taken although workers are missing.")
    poll_min: float = _seconds(1, "Shortest time between two looks for new files.", above_zero=True)
    poll_max: float = _seconds(30, "Longest time between two looks for new files, when idle.", above_zero=True)
    relist: float = _seconds(600, "How often everything is listed again, to find rewritten steps.", above_zero=True)
    stop_grace: float = _seconds(8, "How long after a stop signal what is already saved is still evaluated.")
    memory_budget: int = Field(
        default=256 * MIB,
        gt=0,
        description="Memory for values of earlier steps, for example 256 MiB.",
        json_schema_extra={"unit": "bytes"},
    )
    engine: Literal["local", "dask"] = Field(
        default="local",
        description="What reads and summarises: local is the job itself, dask the workers of a Dask cluster "
        "(needs the extra dask).",
    )
    scheduler: str | None = Field(
        default=None,
        pattern=r"^(tcp|tls)://[^/\s]+:\d+$",
        description="With the engine dask, where its scheduler is: tcp://HOST:PORT or tls://HOST:PORT.",
    )
    worker_timeout: float = _seconds(
        60, "With the engine dask, how long to wait while there is no worker; then the job reads the trial itself."
    )
    user_step_timeout: float = _seconds(60, "How long a user's rule file may take over one step.", above_zero=True)
    user_import_timeout: float = _seconds(60, "How long a user's rule file may take to be loaded.", above_zero=True)
    user_memory: int = Field(
        default=2048 * MIB,
        ge=0,
        description="Memory that the process of a user's rule file may take, for example 2 GiB; 0 is no limit.",
        json_schema_extra={"unit": "bytes"},
    )
    user_error_budget: int = Field(
        default=0,
        ge=0,
        description="At how many steps the rule of a user's file may raise before it ends; such steps are skipped.",
        json_schema_extra={"unit": "steps"},
    )
    allow_user_rules: bool = Field(
        default=True, description="Whether rules that do not come with the program run: rule files and rule packs."
    )
    status_interval: float = _seconds(1, "Least time between two writes of the status file while no status changes.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level that is logged."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="auto is console on a terminal, JSON lines otherwise."
    )

    @field_validator("memory_budget", "user_memory", mode="before")
    @classmethod
    def _bytes(cls, value: object) -> object:
        match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        if (match is None and isinstance(value, str)) or isinstance(value, bool):
            raise ValueError("a number of bytes, for example 256 MiB or 2GiB")
        if match is None:
            return value
        if match[2].lower() not in _BYTES:
            raise ValueError("a number of bytes in B, kB, MB, GB, KiB, MiB or GiB, for example 256 MiB")
        return int(Decimal(match[1]) * _BYTES[match[2].lower()])

    @model_validator(mode="after")
    def _polls(self) -> Settings:
        if self.poll_min > self.poll_max:
            raise ValueError(f"poll_min ({self.poll_min:g}) must not be above poll_max ({self.poll_max:g})")
        return self


def unit(name: str) -> str:
    """The unit of a setting, or nothing."""
    extra = Settings.model_fields[name].json_schema_extra
    return str(extra.get("unit", "")) if isinstance(extra, dict) else ""


def user_rules_allowed(environment: Mapping[str, str]) -> bool:
    """Whether rules that do not come with the program are allowed, for commands without settings of their own.

    Raises:
        InputError: the variable has a value that does not fit.
    """
    variable = PREFIX + "ALLOW_USER_RULES"
    given = {variable: environment[variable]} if variable in environment else {}
    settings, _, mistakes = resolve_settings({}, given, {}, {})
    if mistakes:
        raise InputError(mistakes)
    return settings.allow_user_rules


def resolve_settings(
    command_line: Mapping[str, object],
    environment: Mapping[str, str],
    file: Mapping[str, object],
    processing_job: Mapping[str, object],
    defaults: Mapping[str, object] | None = None,
) -> tuple[Settings, dict[str, Origin], list[Mistake]]:
    """The settings, where each comes from, and every mistake; a mistaken value is replaced by the default.

    Args:
        command_line: setting -> value.
        environment: all environment variables; those with our prefix are looked at. An empty one counts as not set.
        file: the settings of the configuration file.
        processing_job: setting -> value, as processingjobconfig.json has it.
        defaults: instead of those of `Settings`, for the container.
    """
    layers: list[tuple[Origin, str, Mapping[str, object]]] = [
        ("command line", "command line", command_line),
        ("environment", PREFIX, _of_environment(environment)),
        ("configuration file", "settings of the configuration file", file),
        ("processingjobconfig.json", "processingjobconfig.json", processing_job),
        ("default", "default", defaults or {}),
    ]
    mistakes: list[Mistake] = []
    chosen: dict[str, object] = {}
    origins: dict[str, Origin] = {}
    places: dict[str, str] = {}
    for origin, place, values in layers:
        for name, value in values.items():
            if name not in Settings.model_fields:
                mistakes.append(_unknown(place, name))
            elif name not in chosen:
                chosen[name], origins[name] = value, origin
                places[name] = PREFIX + name.upper() if origin == "environment" else f"{place}: {name}"
    settings = None
    while settings is None:
        settings, unfit = read_model(Settings, chosen)
        for problem in unfit:
            mistakes.append(_mistake(problem, places))
            # What does not go together is left out as a whole, so that the rest can still be checked.
            for name in [problem.field] if problem.field else ["poll_min", "poll_max"]:
                chosen.pop(name, None)
                origins.pop(name, None)
                if defaults and name in defaults:
                    chosen[name] = defaults[name]
    if not {"engine", "scheduler"} & (places.keys() - origins.keys()):
        mistakes += _engine_mistakes(settings, places)
    return settings, {name: origins.get(name, "default") for name in Settings.model_fields}, mistakes


def _engine_mistakes(settings: Settings, places: Mapping[str, str]) -> list[Mistake]:
    """What of the engine does not go together."""
    if settings.engine == "dask" and settings.scheduler is None:
        return [Mistake(places["engine"], "dask needs a scheduler", "add scheduler=tcp://HOST:PORT")]
    if settings.engine != "dask" and settings.scheduler is not None:
        return [Mistake(places["scheduler"], "has no meaning with the engine local", "add engine=dask")]
    return []


def _of_environment(environment: Mapping[str, str]) -> dict[str, object]:
    return dict(_variables(environment))


def _variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for variable, value in environment.items():
        if variable.startswith(PREFIX) and variable not in KNOWN_VARIABLES:
            name = variable.removeprefix(PREFIX)
            known = name.lower() if name.isupper() and name.lower() in Settings.model_fields else name
            if value.strip() or known not in Settings.model_fields:
                yield known, value


def _unknown(place: str, name: str) -> Mistake:
    if place == PREFIX:
        known = [PREFIX + setting.upper() for setting in Settings.model_fields] + sorted(KNOWN_VARIABLES)
        return Mistake("environment", f"{PREFIX + name} is not known", did_you_mean(PREFIX + name, known))
    return Mistake(place, f"setting {name!r} is not known", did_you_mean(name, Settings.model_fields))


def _mistake(problem: Unfit, places: Mapping[str, str]) -> Mistake:
    if problem.field is None:
        return Mistake("settings", problem.expected)
    return Mistake(places[problem.field], f"{problem.value!r} does not fit", f"expected {problem.expected}")
