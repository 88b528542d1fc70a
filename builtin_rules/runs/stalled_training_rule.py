"""Fires when no worker has saved anything for `threshold` seconds.

While a run is followed, asked on every idle poll; when steps come, by the time between them, which in a finished run
is the one that the training script wrote. With `times`, it must also be that many times the usual pause, which is
learned from the run.

Quiet when: something is saved often enough; the run has ended; or nobody knows when files were written.
Source: SageMaker Debugger's list of built-in rules, "StalledTrainingRule" (more than `threshold` seconds without a new
tensor; tensors must be saved more often than that). The step that a finding names is the last one before the pause
while following, and the first one after it when a finished run is read; SageMaker named the step that was waited for.
`stop_training_on_fire` and `training_job_name_prefix` are accepted, so that configurations can be taken over; this
version does not stop training jobs, and says so in the finding.
"""

from statistics import median

import numpy as np
from pydantic import Field

from evaluator.rule import (
    Example,
    Met,
    NotYet,
    Progress,
    ProgressView,
    Recommended,
    Rule,
    RuleParameters,
    Verdict,
)
from evaluator.segments import Floats

LEAST_PAUSES = 3
"""So many pauses tell what is usual."""
UNLEARNED = 1.5
"""Until then the threshold is taken this many times: a run that saves every 2500 s is no stall (user report 44)."""


class Parameters(RuleParameters):
    """What StalledTrainingRule can be told."""

    threshold: int = Field(1800, ge=1, description="Fires when nothing was saved for more than this many seconds.")
    stop_training_on_fire: bool = Field(
        False, description="Accepted and said in the finding; stopping the training job is not part of this version."
    )
    training_job_name_prefix: str | None = Field(
        None, description="Accepted, for `stop_training_on_fire`: which training job would be stopped."
    )
    times: float = Field(
        0.0,
        ge=0,
        description="Fires only above this many times the usual pause; 0: whatever is usual. Ours, not SageMaker's.",
    )


def least_pause(pauses: Floats, parameters: Parameters) -> float:
    """The pause, in seconds, above which training has stalled, by the pauses until now.

    Our choice: the median of the last pauses is what is usual, so that neither the steps that follow each other at once
    during an evaluation nor one pause for a checkpoint decide alone.
    """
    if parameters.times == 0:
        return float(parameters.threshold)
    if len(pauses) < LEAST_PAUSES:
        return UNLEARNED * parameters.threshold
    return max(float(parameters.threshold), parameters.times * float(median(pauses.tolist())))


def stalls(progress: ProgressView, parameters: Parameters) -> Verdict:
    """progress.silent: per worker seconds since its newest file; progress.pauses: seconds between steps."""
    if not progress.columns:
        return NotYet("nothing was saved")
    if progress.ended:
        return None
    pauses = [(float(progress.silent.min()), progress.pauses)]
    if len(progress.pauses):
        pauses.append((float(progress.pauses[-1]), progress.pauses[:-1]))
    # no pause is a stall below the threshold, whatever is usual
    found = [(one, least_pause(before, parameters)) for one, before in pauses if one > parameters.threshold]
    stalled = [(seconds, limit) for seconds, limit in found if seconds > limit]
    if not stalled:
        return None
    seconds, limit = stalled[0]
    steps = zip(progress.columns, progress.last_step.tolist(), strict=True)
    details: dict[str, object] = {"last_steps": {column.worker: step for column, step in list(steps)[:20]}}
    if parameters.stop_training_on_fire:
        details["stop_training_on_fire"] = "not part of this version; the training job was not stopped"
    return Met(
        np.zeros(0, np.int64),
        np.array([seconds]),
        limit,
        message="nothing was saved for {measured} seconds, more than {limit}",
        details=details,
    )


STEADY = [0.0, 10.0, 20.0, 30.0, 40.0]
SLOW = [0.0, 2500.0, 5000.0, 7500.0, 10000.0]

RULE = Rule(
    name="StalledTrainingRule",
    severity="error",
    parameters=Parameters,
    requires=lambda parameters: [Progress()],
    condition=stalls,
    at=frozenset({"step", "idle"}),
    patience=lambda parameters: parameters.threshold * (UNLEARNED if parameters.times else 1.0),
    precedence=20,
    recommended={
        "times": Recommended(
            5.0, "runs that save seldom are not stalled: five times the usual pause is no jitter any more"
        )
    },
    examples=(
        Example("an hour in the middle", {"w": [1.0] * 5}, seconds=[0, 10, 20, 3620, 3630], met_at=3),
        Example(
            "the threshold itself, exceeded by a second",
            {"w": [1.0] * 3},
            seconds=[0, 100, 201],
            parameters={"threshold": 100, "parameter_set": "sagemaker"},
            met_at=2,
        ),
        Example(
            "saving seldom, by SageMaker's parameters",
            {"w": [1.0] * 5},
            seconds=SLOW,
            parameters={"parameter_set": "sagemaker"},
            met_at=1,
        ),
        Example("saving seldom", {"w": [1.0] * 5}, seconds=SLOW),
        Example("steady", {"w": [1.0] * 5}, seconds=STEADY),
        Example(
            "the threshold itself",
            {"w": [1.0] * 5},
            seconds=[0, 10, 20, 120, 130],
            parameters={"threshold": 100, "parameter_set": "sagemaker"},
        ),
        Example(
            "one of two workers waits",
            workers={"worker_0": {"w": [1.0] * 5}, "worker_1": {"w": [1.0, None, None, None, 1.0]}},
            seconds=[0, 1000, 2000, 3000, 4000],
        ),
        Example("one step", {"w": [1.0]}),
        Example("times that go back", {"w": [1.0] * 3}, seconds=[9000, 0, 10]),
    ),
)
