"""stop_training: stops a SageMaker training job.

Source:
    processing-contract.md, section 5. Unlike there, the job is looked for when there is a finding, its name keeps its
    case, and what was not stopped is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import Field, model_validator

from evaluator.actions.base import ActionParameters, Call, Kind, NotDone, Surroundings
from evaluator.aws import Refused, Service
from evaluator.errors import InputError

NAME = r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$"
PREFIX = r"^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$"
"""Source: SageMaker API, StopTrainingJob, TrainingJobName, and what a beginning of such a name can be."""

MOST_PAGES = 50
SHOWN = 5

_IN_STATUS = re.compile(r"status\W+(Stopping|Stopped|Completed|Failed)\b", re.IGNORECASE)
"""How SageMaker says that there is nothing to stop any more."""


class StopTrainingParameters(ActionParameters):
    """Which training job."""

    training_job: str | None = Field(default=None, pattern=NAME, description="The name of the training job.")
    training_job_prefix: str | None = Field(
        default=None,
        pattern=PREFIX,
        description="What its name begins with, as SageMaker's SDK gives it; exactly one may be in progress.",
    )

    @model_validator(mode="after")
    def _one(self) -> StopTrainingParameters:
        if self.training_job is not None and self.training_job_prefix is not None:
            raise ValueError("training_job, or training_job_prefix")
        return self


def act(call: Call[StopTrainingParameters]) -> Mapping[str, object]:
    """Stop it."""
    prefix = call.parameters.training_job_prefix
    name = prefix or call.parameters.training_job or call.around.training_job
    if name is None:
        raise NotDone("no training job is named")
    try:
        sagemaker = Service("sagemaker", call.around.region)
        try:
            return _stop(sagemaker, name)
        except Refused as error:
            # the SDK gives the whole name as prefix; only what is no name of a job is looked for
            if prefix is None or error.code not in ("ValidationException", "ResourceNotFound"):
                raise
        return _stop(sagemaker, _only_one(sagemaker, prefix))
    except (Refused, InputError) as error:
        raise NotDone(str(error)) from error


def check(parameters: StopTrainingParameters, around: Surroundings) -> Sequence[tuple[str, str]]:
    """Without a name there is nothing to stop."""
    if parameters.training_job or parameters.training_job_prefix or around.training_job:
        return ()
    return [("no training job is named", "give training_job, or the setting training_job_name")]


def _stop(sagemaker: Service, name: str) -> Mapping[str, object]:
    try:
        sagemaker.ask("StopTrainingJob", TrainingJobName=name)
    except Refused as error:
        over = _IN_STATUS.search(error.what)
        if over is None:
            raise
        return {"training_job": name, "was": over[1]}
    return {"training_job": name}


def _only_one(sagemaker: Service, prefix: str) -> str:
    """The one training job in progress whose name begins so."""
    found = sagemaker.pages(
        "ListTrainingJobs", "TrainingJobSummaries", MOST_PAGES,
        NameContains=prefix, StatusEquals="InProgress", SortBy="CreationTime", SortOrder="Descending", MaxResults=100,
    )  # fmt: skip
    names = [str(one["TrainingJobName"]) for one in found if str(one["TrainingJobName"]).startswith(prefix)]
    if not names:
        raise NotDone(f"no training job in progress in {sagemaker.region} has a name that begins with {prefix!r}")
    if len(names) > 1:
        shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        raise NotDone(f"{len(names)} training jobs in progress begin with {prefix!r}, so none is stopped: {shown}")
    return names[0]


ACTION = Kind("stop_training", StopTrainingParameters, act, check)
