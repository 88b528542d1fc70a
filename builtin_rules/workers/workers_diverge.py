"""Fires when a weight that all workers held alike is no longer the same on one of them.

At each saved step, compares every tensor of the collection `weights` with the same tensor of the first worker: the
largest |difference| as a share of the largest magnitude in both. Above `tolerance`, the replicas have drifted apart.
Where two or more workers differ from the first by exactly as much, the first one is named. Names that differ only by
parts of wrappers (`module.fc.weight`, `fc.weight`) are the same where it is clear which one is meant.

Quiet when: one worker saved the weight; a tensor counts as sharded, because its shapes differ between the workers or
because it differs from the first saved step on (so do the experts of a mixture): `details` name such tensors, and when
there are no others, the rule is not evaluated and says so. A tensor of one constant, such as a bias that starts at
zero, does not show that it is replicated; it counts once it was alike with other values.
Source: ours; user report 41 (TrainCheck, OSDI 2025: weights of BLOOM-176B drifted apart for days, the loss was normal).
"""

import numpy as np
from pydantic import Field

from evaluator.formats.key_names import natural_key
from evaluator.rule import (
    Accumulator,
    Example,
    Measure,
    NotYet,
    OtherWorker,
    Progress,
    ProgressView,
    Row,
    Rule,
    RuleParameters,
    State,
    Summary,
    Verdict,
    grown,
)
from evaluator.segments import Array, Bools, Floats, Segments

RESHAPED = -1.0
"""Stands for: the shapes differ."""

REPLICATED, SHARDED = 1, 2


class Parameters(RuleParameters):
    """What WorkersDiverge can be told."""

    tolerance: float = Field(
        1e-6, ge=0, description="Fires above this share of the largest magnitude by which replicas differ."
    )


def apart(segments: Segments, first: Segments) -> Floats:
    """(tensors, 2): the largest |difference| as a share of the largest magnitude, and 1 if not all elements are one.

    Our choice: relative to the largest element, because that is the scale on which a tensor's small elements are noise.
    Two NaN are alike; a value that is finite on one side only makes it infinite.
    """
    mine, other = segments.flat.astype(np.float64), first.flat.astype(np.float64)
    difference, magnitudes = np.abs(mine - other), (np.abs(mine), np.abs(other))
    finite = np.isfinite(mine) & np.isfinite(other)
    if not finite.all():
        alike = (mine == other) | (np.isnan(mine) & np.isnan(other))
        difference = np.where(alike, 0.0, np.where(finite, difference, np.inf))
        magnitudes = (_finite(magnitudes[0]), _finite(magnitudes[1]))
    largest = np.maximum(segments.max(magnitudes[0]), segments.max(magnitudes[1]))
    most = segments.max(difference)
    share = np.where(most > 0, most / np.where(largest > 0, largest, 1.0), 0.0)
    varied = segments.max(mine) != segments.min(mine)
    return np.stack([share, varied.astype(np.float64)], axis=1)


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, 0.0)


APART = Measure(apart, width=2, kinds="fiub", reshaped=RESHAPED)


def start() -> dict[str, Array]:
    """Nothing was compared yet."""
    return {"class": np.zeros(0, np.int8), "compared": np.zeros(0, np.int64)}


def add(state: dict[str, Array], row: Row) -> dict[str, Array]:
    """Per column what its first comparison that tells anything makes of it, and how often it was compared."""
    columns, saved = len(row.values), row.saved
    known, compared = grown(state["class"], columns, 0), grown(state["compared"], columns, 0) + saved
    share, varied = row.values[:, 0], row.values[:, 1]
    reshaped = share == RESHAPED
    if np.count_nonzero(known) == columns and not np.count_nonzero(reshaped):
        # all have told before, as at most steps
        return {"class": known, "compared": compared}
    unknown = saved & (known == 0)
    sharded = unknown & (share != 0)
    replicated = unknown & (share == 0) & (varied == 1)
    known = np.where(sharded | (saved & reshaped), SHARDED, np.where(replicated, REPLICATED, known))
    return {"class": known.astype(np.int8), "compared": compared}


CLASSES = Accumulator(start, add)


def diverge(weights: State, progress: ProgressView, parameters: Parameters) -> Verdict:
    """weights.row: (columns, 2), the difference from the first worker; weights["class"]: sharded or replicated."""
    saved = weights.row.saved
    known = grown(weights["class"], len(saved), 0)
    judged = saved & (known == REPLICATED)
    share = weights.row.values[:, 0]
    differs = judged & (share > parameters.tolerance)
    if np.count_nonzero(judged) and not np.count_nonzero(differs):
        return None
    sharded = sorted({weights.columns[at].tensor for at in np.flatnonzero(saved & (known == SHARDED)).tolist()})
    if not judged.any():
        if sharded:
            return NotYet("every weight differs between the workers from the first saved step on, as sharded ones do")
        return NotYet("no weight has told yet whether it is replicated")
    first = _first_worker(weights, progress)
    details: dict[str, object] = {"compared_with": first}
    if sharded:
        details |= {"sharded": len(sharded), "sharded_tensors": sharded[:10]}
    alone = _odd_one(weights, judged, differs, share, first)
    if alone.any():
        # The others agree with each other, so what they were compared with is what has drifted.
        details["compared_with"] = "the other workers"
        share = np.where(alone, share[judged].max(), share)
    return weights.met(
        alone if alone.any() else differs,
        measured=share,
        limit=parameters.tolerance,
        of=int(judged.sum()),
        details=details,
        message="on {worker} the weight differs by {measured} of its size from that of "
        f"{details['compared_with']}; {{tensors}} of {{of}} do",
    )


def _first_worker(weights: State, progress: ProgressView) -> str:
    """The first worker that saved the step."""
    there = zip(progress.columns, progress.last_step.tolist(), strict=True)
    workers = {column.worker for column, step in there if step == weights.row.step}
    return min(workers or {column.worker for column in weights.columns}, key=natural_key)


def _odd_one(weights: State, judged: Bools, differs: Bools, share: Floats, first: str) -> Bools:
    """The columns of the first worker, for tensors in which all others (two at least) differ from it by the same."""
    odd = np.zeros(len(judged), np.bool_)
    others: dict[str, list[int]] = {}
    for at in np.flatnonzero(judged).tolist():
        others.setdefault(weights.columns[at].tensor, []).append(at)
    for at, column in enumerate(weights.columns):
        found = others.get(column.tensor, [])
        if column.worker == first and len(found) > 1 and differs[found].all() and np.ptp(share[found]) == 0:
            odd[at] = True
    return odd


START, MOVED = [[0.5, -0.5], [0.6, -0.4]], [[0.7, -0.3], [0.8, -0.2]]
ALIKE = {"w": [START[0], START[1], MOVED[0], MOVED[1]]}
WITH_NAN = {"w": [[1.0, 2.0], [float("nan"), 2.0]]}
DRIFTS = {"w": [START[0], START[1], [0.7, -0.301], [0.8, -0.203]]}

RULE = Rule(
    name="WorkersDiverge",
    severity="critical",
    parameters=Parameters,
    requires=lambda parameters: [
        Summary("weights", by=APART, partner=OtherWorker(), state=CLASSES),
        Progress(triggers=False),
    ],
    condition=diverge,
    precedence=10,
    examples=(
        Example("one element drifts", workers={"worker_0": ALIKE, "worker_1": DRIFTS}, met_at=2, tensor="w"),
        Example(
            "the first of three is the odd one",
            workers={"worker_0": DRIFTS, "worker_1": ALIKE, "worker_2": ALIKE},
            met_at=2,
        ),
        Example(
            "beside a tensor that is sharded",
            workers={
                "worker_0": {"expert": [[1.0, 2.0]] * 4, **ALIKE},
                "worker_1": {"expert": [[3.0, 4.0]] * 4, **DRIFTS},
            },
            met_at=2,
            tensor="w",
        ),
        Example("replicas stay alike", workers={"worker_0": ALIKE, "worker_1": ALIKE}),
        Example("alike, with NaN", workers={"a": WITH_NAN, "b": WITH_NAN}),
        Example("one worker", ALIKE),
        Example(
            "sharded, by their shapes",
            workers={"worker_0": {"w": [[1.0, 2.0]] * 3}, "worker_1": {"w": [[1.0]] * 3}},
        ),
        Example(
            "sharded, of one shape: different from the first step on",
            workers={"worker_0": {"w": [[1.0, 2.0], [1.1, 2.1]]}, "worker_1": {"w": [[3.0, 4.0], [3.1, 4.1]]}},
        ),
        Example(
            "sharded, starting at a constant",
            workers={"worker_0": {"b": [[0.0, 0.0], [0.1, 0.2]]}, "worker_1": {"b": [[0.0, 0.0], [0.3, 0.1]]}},
        ),
        Example(
            "a rounding error",
            workers={"worker_0": {"w": [[1.0, 2.0]] * 2}, "worker_1": {"w": [[1, 2], [1, 2 + 1e-7]]}},
        ),
        Example(
            "one worker late, one step",
            workers={"worker_0": {"w": [[1.0, 2.0], None]}, "worker_1": {"w": [None, [5.0, 6.0]]}},
        ),
    ),
)
