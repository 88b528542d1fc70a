"""The status of a job: what status.json holds, in SageMaker's words."""
# The field names are SageMaker's (DebugRuleEvaluationStatus of DescribeTrainingJob).

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field

from evaluator import finding as findings
from evaluator import strict_json
from evaluator.actions.base import ActionResult
from evaluator.finding import JsonObject, OutputModel, Text
from evaluator.rule import Severity as SeverityWord

StatusWord = Literal["InProgress", "NoIssuesFound", "IssuesFound", "Error", "Stopping", "Stopped"]
EndedBecause = Literal[
    "read_once",
    "end_marker",
    "training_job_status",
    "watched_process_ended",
    "idle_timeout",
    "start_timeout",
    "stop_signal",
    "rule_stop_signal",
    "all_rules_ended",
    "failed",
]
TERMINAL: frozenset[str] = frozenset(get_args(StatusWord)) - {"InProgress", "Stopping"}

DETAILS_LIMIT = 1024
"""Characters. Source: SageMaker API, DebugRuleEvaluationStatus, StatusDetails: maximum length 1024."""


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        value = strict_json.text(value)
        return value if len(value) <= DETAILS_LIMIT else value[: DETAILS_LIMIT - 3] + "..."
    return value


Details = Annotated[str, BeforeValidator(_cut), Field(max_length=DETAILS_LIMIT)]


class Program(OutputModel):
    """Which program wrote the file."""

    name: Text = "rule-evaluator"
    version: Text = ""


class Steps(OutputModel):
    """What became of the trial's steps."""

    complete: int = Field(default=0, description="Steps that all expected workers wrote.")
    partial: int = Field(default=0, description="Steps taken without some worker.")
    late_files: int = Field(default=0, description="Files that came after their step was taken; not evaluated.")
    unreadable: int = Field(default=0, description="Steps with a file that could not be read.")
    first: int | None = Field(default=None, description="The first step; null before there is one.")
    last: int | None = Field(default=None, description="The last step; null before there is one.")


class Workers(OutputModel):
    """The processes that saved tensors."""

    expected: int | None = Field(default=None, description="As the trial says; null while it is not known.")
    seen: int = Field(default=0, description="Workers that wrote something.")
    silent: list[Text] = Field(default_factory=list, description="Workers that were expected and did not write.")


class RequestCounts(OutputModel):
    """How often storage was asked."""

    list: int = 0
    get: int = 0
    put: int = 0
    retries: int = 0


class Job(OutputModel):
    """The execution of the program."""

    id: Text = ""
    program: Program = Field(default_factory=Program)
    started_at: str = Field(default="", description="RFC 3339 in UTC, as all times.")
    updated_at: str = Field(default="", description="When the file was written last; its age shows that the job lives.")
    ended_at: str | None = Field(
        default=None, description="Null while the job is running, or when it ended without a word."
    )
    ended_because: EndedBecause | None = Field(default=None, description="Null while the job is running.")
    settings: JsonObject = Field(default_factory=dict, description="The settings in force; no secrets.")
    other_trials: list[Text] = Field(default_factory=list, description="Trials that rules compare with.")
    steps: Steps = Field(default_factory=Steps)
    workers: Workers = Field(default_factory=Workers)
    requests: RequestCounts = Field(default_factory=RequestCounts)
    notes: list[Text] = Field(default_factory=list, description="What a reader has to know about the job.")


class ParameterValue(OutputModel):
    """A parameter as it is used, and who set it."""

    value: Annotated[Any, BeforeValidator(strict_json.plain)] = None
    origin: Text = Field(
        default="",
        validation_alias=AliasChoices("from", "origin"),
        serialization_alias="from",
        description="`sagemaker` and `recommended` are the two sets of defaults.",
    )


class EvaluationCounts(OutputModel):
    """How much was judged, so that a quiet rule can be told from one that saw nothing."""

    evaluated: int = Field(default=0, description="Steps at which the condition was judged.")
    skipped: int = Field(default=0, description="Steps at which it could not be judged.")
    skipped_because: dict[Text, int] = Field(default_factory=dict, description="Reason -> steps.")
    tensors: int = Field(default=0, description="Tensors (each on each worker) that the rule saw.")
    first_step: int | None = Field(default=None, description="The first judged step.")
    last_step: int | None = Field(default=None, description="The last judged step.")


class RuleStatus(OutputModel):
    """The status of one rule configuration; capitalised keys are SageMaker's or stand beside them."""

    RuleConfigurationName: Text
    Rule: Text
    Severity: SeverityWord
    RuleEvaluationJobArn: Text | None = None
    RuleEvaluationStatus: StatusWord = "InProgress"
    StatusDetails: Details | None = Field(default=None, description="Null when there is nothing to say.")
    LastModifiedTime: str = Field(default="", description="When the status changed last.")
    Parameters: dict[Text, ParameterValue] = Field(default_factory=dict)
    ignored_parameters: list[Text] = Field(default_factory=list, description="Given, but not known to the rule.")
    Evaluation: EvaluationCounts = Field(default_factory=EvaluationCounts)
    Findings: int = Field(default=0, description="How many issues were found so far.")
    Finding: findings.Finding | None = Field(default=None, description="The first of them.")
    Actions: list[ActionResult] = Field(default_factory=list, description="What was set off, and what came of it.")
    Report: Text | None = Field(default=None, description="The report's file, relative to the output folder.")

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return self.RuleEvaluationStatus in TERMINAL


class NotApplicable(OutputModel):
    """A rule that nobody named and that saw nothing it could use."""

    rule: Text
    reason: Text


class JobStatus(OutputModel):
    """The whole job: where it stands, and the status of each rule."""

    model_config = ConfigDict(title="Status of rule-evaluator")

    schema_number: Literal[1] = Field(
        default=1, validation_alias="schema", serialization_alias="schema", description="Adding keys keeps the number."
    )
    trial: Text = Field(default="", description="Where the trial is.")
    labels: dict[Text, Text] = Field(default_factory=dict)
    job: Job = Field(default_factory=Job)
    DebugRuleEvaluationStatuses: list[RuleStatus] = Field(default_factory=list)
    ProfilerRuleEvaluationStatuses: list[RuleStatus] = Field(default_factory=list)
    not_applicable: list[NotApplicable] = Field(default_factory=list)

    @property
    def rules(self) -> list[RuleStatus]:
        """Every rule's status, in the order of the file."""
        return [*self.DebugRuleEvaluationStatuses, *self.ProfilerRuleEvaluationStatuses]


def details_condition_met(rule: str, step: int) -> str:
    """The details of IssuesFound.

    Source: observed with the hosted rules, which end the text with a newline; ours is one line.
    """
    return (
        f"RuleEvaluationConditionMet: Evaluation of the rule {rule} at step {step} resulted in the condition being met"
    )


def details_insufficient(what: str) -> str:
    """The details of a named rule that ended without ever being evaluated: what it looked for, what there was."""
    return f"InsufficientInformationForRuleInvocation: {what}"


def details_no_data(what: str) -> str:
    """The details of every rule when the trial holds nothing that can be read.

    Source: observed with the hosted rules, where a traceback follows.
    """
    return (
        "ClientError: No debugging data was saved by the training job. Check that the debugger hook was configured "
        f"correctly before starting the training job. Exception: {what}"
    )


def details_client(what: str) -> str:
    """The details of a rule whose own file or parameters are to blame."""
    return f"ClientError: {what}"


def details_internal(what: str) -> str:
    """The details of a rule that raised, or of every rule that was still running when our own code raised.

    Source: observed with the hosted rules, where nothing follows.
    """
    return f"InternalServerError: We encountered an internal error. Please try again. Exception: {what}"


def schema(kind: Literal["status", "finding"]) -> dict[str, Any]:
    """The JSON schema of status.json, or of a line of findings.jsonl."""
    model: type[OutputModel] = JobStatus if kind == "status" else findings.Finding
    made = model.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
