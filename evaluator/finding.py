"""A finding: the record that a rule's condition was met, or is met no longer."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evaluator import strict_json
from evaluator.rule import Severity

ModeName = Literal["TRAIN", "EVAL", "PREDICT", "GLOBAL"]
Event = Literal["met", "cleared"]


def _text(value: Any) -> Any:
    return strict_json.text(value) if isinstance(value, str) else value


def _number(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.item()
    return strict_json.number(float(value)) if isinstance(value, int | float) else value


Text = Annotated[str, BeforeValidator(_text)]
"""A text from a trial or a user; what is not valid Unicode in it is kept as escapes instead of refused."""
Number = Annotated[float | Literal["NaN", "Infinity", "-Infinity"], BeforeValidator(_number)]
"""A measured number; JSON has none that are not finite."""
JsonObject = Annotated[dict[str, Any], BeforeValidator(strict_json.plain)]
"""Named values of any JSON form."""


class OutputModel(BaseModel):
    """The base of everything in output files: written by the names of the contract, read leniently."""

    model_config = ConfigDict(
        extra="ignore",
        validate_assignment=True,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
        json_schema_extra={"additionalProperties": True},
    )

    def document(self) -> dict[str, Any]:
        """The object as plain JSON values, keys in the order of the contract."""
        return self.model_dump(mode="json")


class Worst(OutputModel):
    """The value that is furthest from healthy among all that met the condition at the step."""

    tensor: Text | None = Field(default=None, description="Null when the condition is not about a tensor.")
    worker: Text | None = Field(default=None, description="Null when the condition is not about a worker.")
    measured: Number | None = Field(default=None, description="What was measured there.")


class Affected(OutputModel):
    """How far the issue reaches at the step."""

    tensors: int = Field(default=0, ge=0, description="Tensors (each on each worker) that met the condition.")
    of: int = Field(default=0, ge=0, description="Tensors (each on each worker) that were judged.")
    worst: Worst | None = Field(
        default=None, description="The worst of them; null when the condition is about the whole run."
    )


class Finding(OutputModel):
    """A line of findings.jsonl: a rule's condition was met at a step, or is met no longer.

    The tensor is the first one in the order in which training produced them, which is where the cause is.
    """

    model_config = ConfigDict(
        title="Finding of rule-evaluator",
        frozen=True,
        json_schema_extra={
            "additionalProperties": True,
            "if": {"properties": {"event": {"const": "cleared"}}, "required": ["event"]},
            "then": {"required": ["last_step", "steps_met"]},
        },
    )

    schema_number: Literal[1] = Field(
        default=1, validation_alias="schema", serialization_alias="schema", description="Adding keys keeps the number."
    )
    id: str = Field(description="Hash of configuration, step, worker and tensor; the same in every run.")
    event: Event = Field(default="met", description="`met` when the issue begins, `cleared` when it is over.")
    severity: Severity = Field(description="As declared by the rule or set by its configuration.")
    rule_configuration: Text = Field(description="The configuration's name.")
    rule: Text = Field(description="The rule's name.")
    step: int = Field(description="The first met step of the issue.")
    mode: ModeName | None = Field(default=None, description="Null when the condition is not about one value.")
    mode_step: int | None = Field(default=None, description="The count within the mode.")
    worker: Text | None = Field(default=None, description="Null when the condition is not about a worker.")
    tensor: Text | None = Field(default=None, description="Null when the condition is not about a tensor.")
    measured: Number | None = Field(default=None, description="What was compared with the limit.")
    limit: Number | None = Field(default=None, description="The limit; null for conditions without one.")
    affected: Affected = Field(default_factory=Affected, description="How far the issue reaches.")
    last_healthy_step: int | None = Field(
        default=None, description="Last step judged and not met; null when there was none."
    )
    message: Text = Field(default="", description="What is wrong, for people.")
    parameters: JsonObject = Field(default_factory=dict, description="The rule's parameters, as used.")
    details: JsonObject = Field(default_factory=dict, description="What else the rule has to say.")
    trial: Text = Field(default="", description="Where the trial is.")
    labels: dict[Text, Text] = Field(default_factory=dict, description="The job's labels.")
    recorded_at: str = Field(default="", description="When it was written, RFC 3339 in UTC.")
    last_step: int | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Cleared only: the last step that met the condition.",
    )
    steps_met: int | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Cleared only: how many steps met the condition.",
    )

    def line(self) -> bytes:
        """The finding as a line of findings.jsonl, with its newline."""
        return strict_json.dumps(self.document()) + b"\n"


def finding_id(configuration: str, step: int, worker: str | None, tensor: str | None) -> str:
    """16 hex digits that stand for one issue in every run over the same trial.

    JSON joins the parts, so that no two different sets of them are joined to the same text.
    """
    joined = strict_json.dumps([configuration, int(step), worker, tensor])
    return hashlib.sha256(joined).hexdigest()[:16]
