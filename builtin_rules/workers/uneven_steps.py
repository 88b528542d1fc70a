"""Fires when the workers of a run ended at different steps.

At the end, counts the steps that others saved since each worker's newest one, in the modes in which that worker saves.
More than it left out before means that it ended early: it ran out of data, or stopped, and where training is
synchronous the others waited for it.

Quiet when: all ended together, each in its own rhythm; one worker saved; or the run is not known to have ended and the
last step may only be half there: then one step more must be missing.
Source: ours; the stall at the end of distributed jobs whose workers got unequal numbers of batches (user report 52, and
the join context that PyTorch has for it).
"""

import numpy as np
from pydantic import Field

from evaluator.formats.key_names import natural_key
from evaluator.rule import Example, NotYet, Progress, ProgressView, Rule, RuleParameters, Verdict


class Parameters(RuleParameters):
    """What UnevenSteps can be told."""

    steps: int = Field(1, ge=1, description="Fires when a worker ended at least this many saved steps before others.")


def ended_early(progress: ProgressView, parameters: Parameters) -> Verdict:
    """progress.behind: per worker how many steps others saved since its newest one; progress.rhythm: what is usual."""
    if len(progress.columns) < 2:
        return NotYet("fewer than two workers saved anything")
    least = parameters.steps if progress.complete else parameters.steps + 1
    limit = np.maximum(least, progress.rhythm)
    early = progress.behind >= limit
    if not early.any():
        return None
    counts = {column.worker: count for column, count in zip(progress.columns, progress.steps.tolist(), strict=True)}
    ranks = sorted((progress.columns[at].worker for at in np.flatnonzero(early).tolist()), key=natural_key)
    return progress.met(
        early,
        measured=progress.behind,
        limit=limit.astype(np.float64),
        each={"last_step": progress.last_step, "steps": progress.steps},
        details={"ended_early": ranks[:20], "steps_of_workers": dict(list(counts.items())[:20])},
        message="{worker} ended {measured} saved steps before the others; {tensors} of {of} workers ended early",
    )


RULE = Rule(
    name="UnevenSteps",
    severity="warning",
    parameters=Parameters,
    requires=lambda parameters: [Progress()],
    condition=ended_early,
    at=frozenset({"end"}),
    precedence=25,
    examples=(
        Example(
            "one has a batch less",
            workers={"worker_0": {"w": [1.0, 1.0, 1.0]}, "worker_1": {"w": [1.0, 1.0, None]}},
            met_at=2,
        ),
        Example(
            "one stopped long ago",
            workers={"worker_0": {"w": [1.0] * 5}, "worker_1": {"w": [1.0] + [None] * 4}},
            met_at=4,
        ),
        Example("both end together", workers={"worker_0": {"w": [1.0, 1.0, 1.0]}, "worker_1": {"w": [1.0, 1.0, 1.0]}}),
        Example(
            "one saves every second step",
            workers={"worker_0": {"w": [1.0] * 6}, "worker_1": {"w": [1.0, None] * 3}},
        ),
        Example(
            "one alone evaluates at the end",
            workers={"worker_0": {"w": [1.0] * 4}, "worker_1": {"w": [1.0, 1.0, None, None]}},
            modes=["TRAIN", "TRAIN", "EVAL", "EVAL"],
        ),
        Example("one worker", {"w": [1.0, 1.0]}),
    ),
)
