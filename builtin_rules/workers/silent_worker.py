"""Fires when a worker has stopped saving while the others go on.

Counts the steps that others have saved since each worker's newest one, in the modes in which that worker saves: a
worker that does not take part in evaluation is not missed there. Fires at `steps` of them, or at `times` as many as the
worker has ever left out before, whichever is more. A worker that never saved anything is missed where others, two at
least, do: in many runs one process writes for all.

Quiet when: all workers go on, each in its own rhythm; none goes on (see StalledTrainingRule); or the run is over (see
UnevenSteps).
Source: ours; user reports 46 and 47, and 86 ("silence of n times the usual gap").
"""

import numpy as np
from pydantic import Field

from evaluator.rule import Example, Met, NotYet, Progress, ProgressView, Rule, RuleParameters, Verdict


class Parameters(RuleParameters):
    """What SilentWorker can be told."""

    steps: int = Field(3, ge=1, description="Fires when a worker has missed this many steps that others saved.")
    times: float = Field(3.0, ge=1, description="And this many times as many as it left out at most before.")


def goes_silent(progress: ProgressView, parameters: Parameters) -> Verdict:
    """progress.behind: per worker how many steps others saved since its newest one; progress.rhythm: what is usual."""
    if len(progress.columns) < 2:
        return NotYet("fewer than two workers saved anything")
    missing = _never_seen(progress, parameters)
    late = np.count_nonzero(progress.behind >= parameters.steps)
    if not (late or missing):
        return None
    # a rhythm of 1 leaves nothing out
    usual = np.where(progress.rhythm > 1, parameters.times * progress.rhythm, 0.0)
    limit = np.maximum(parameters.steps, usual)
    silent = progress.behind >= limit
    details = {"seen": len(progress.columns), "expected": progress.expected}
    if silent.any():
        return progress.met(
            silent,
            measured=progress.behind,
            limit=limit,
            each={"silent_since_step": progress.last_step, "seconds": progress.silent},
            details=details,
            message="{worker} has saved nothing in the last {measured} steps that others saved",
        )
    if not missing:
        return None
    text = f"{missing} of {progress.expected} workers have saved nothing since the start, {len(progress.columns)} have"
    limit_of_workers = float(progress.expected or 0)
    return Met(
        np.zeros(0, np.int64), np.array([float(len(progress.columns))]), limit_of_workers, message=text, details=details
    )


def _never_seen(progress: ProgressView, parameters: Parameters) -> int:
    """How many workers should have come by now and have not.

    Our choice: only where at least two save. In runs that SageMaker Debugger does not support, one process writes and
    yet the number of workers is that of all (user report 46).
    """
    if progress.expected is None or int(progress.steps.max()) < parameters.steps:
        return 0
    return max(0, progress.expected - len(progress.columns))


GOES_ON = {"w": [1.0] * 8}
STOPS = {"w": [1.0, 1.0, None, None, None, None, None, None]}

RULE = Rule(
    name="SilentWorker",
    severity="error",
    parameters=Parameters,
    requires=lambda parameters: [Progress()],
    condition=goes_silent,
    precedence=20,
    examples=(
        Example("one of two stops", workers={"worker_0": GOES_ON, "worker_1": STOPS}, met_at=4),
        Example(
            "later than its own rhythm explains",
            workers={"worker_0": {"w": [1.0] * 14}, "worker_1": {"w": [1.0, None, 1.0, *[None] * 11]}},
            met_at=8,
        ),
        Example("both go on", workers={"worker_0": GOES_ON, "worker_1": GOES_ON}),
        Example("both stop", workers={"worker_0": STOPS, "worker_1": STOPS}),
        Example(
            "one saves every fourth step",
            workers={"worker_0": {"w": [1.0] * 12}, "worker_1": {"w": [1.0, None] * 6}},
            parameters={"steps": 2},
        ),
        Example(
            "two steps missing, and back",
            workers={"worker_0": GOES_ON, "worker_1": {"w": [1.0, 1.0, None, None, 1.0, 1.0, 1.0, 1.0]}},
        ),
        Example(
            "one alone evaluates",
            workers={"worker_0": GOES_ON, "worker_1": STOPS},
            modes=["TRAIN", "TRAIN", *["EVAL"] * 6],
        ),
        Example("one worker", GOES_ON),
        Example("one step", {"w": [1.0]}),
    ),
)
