"""Fires when some tensor has not changed over its last `num_steps` saved steps.

Compares every value with the one saved before it, within `rtol` and `atol`, and counts per tensor how many in a row
were the same. Steps need not be consecutive. Steps before `start_step` count as history.

Quiet when: fewer than `num_steps` values of the tensor were saved; it was not saved at this step; it changed its shape;
or it holds NaN (unless `equal_nan`).
Source: SageMaker Debugger's list of built-in rules, "UnchangedTensor", which names numpy.allclose. That each value is
compared with its neighbour is our choice (see `same_as_before`), and so is the parameter `modes`: weights legitimately
stand still between steps of evaluation.
"""

import numpy as np
from pydantic import Field

from builtin_rules._selecting import RequiredTensors
from evaluator.modes import Mode
from evaluator.rule import (
    TRAINING,
    Accumulator,
    Example,
    Measure,
    NotYet,
    Previous,
    Recommended,
    Row,
    Rule,
    State,
    Summary,
    Verdict,
    grown,
)
from evaluator.segments import Array, Bools, Floats, Segments

SAGEMAKER = {"parameter_set": "sagemaker", "collection_names": "weights"}


class Parameters(RequiredTensors):
    """What UnchangedTensor can be told."""

    num_steps: int = Field(3, ge=2, description="Fires when this many saved values in a row are the same.")
    rtol: float = Field(1e-5, ge=0, description="Relative tolerance, as of numpy.allclose.")
    atol: float = Field(1e-8, ge=0, description="Absolute tolerance, as of numpy.allclose.")
    equal_nan: bool = Field(False, description="Whether two NaN are the same.")
    moved_before: bool = Field(
        False, description="Only tensors that have changed before are judged. Ours, not SageMaker's."
    )
    times: float = Field(
        0.0,
        ge=0,
        description="Fires only above this many times as many as were the same in a row before. Ours, not SageMaker's.",
    )
    modes: frozenset[Mode] = Field(
        TRAINING, min_length=1, description="Only values saved in these modes are compared. Ours, not SageMaker's."
    )


def close(values: Array, before: Array, rtol: float, atol: float, equal_nan: bool) -> Bools:
    """numpy.isclose, without its checks; half precision and whole numbers widened so that nothing overflows."""
    values, before = _wide(values), _wide(before)
    same: Bools = values == before
    if rtol or atol:
        near = np.abs(values - before) <= atol + rtol * np.abs(before)
        near &= np.isfinite(before)
        same |= near
    if equal_nan:
        same |= np.isnan(values) & np.isnan(before)
    return same


def same_as_before(segments: Segments, before: Segments, *, rtol: float, atol: float, equal_nan: bool) -> Floats:
    """1 where all elements are close to those saved before, else 0.

    Our choice: neighbours are compared, not each of the older values with the newest one. Within the tolerance both say
    the same, and only one earlier value has to be kept.
    """
    # In a tensor that moves, the first element mostly tells, and the others need not be looked at.
    starts = segments.starts
    same = close(segments.flat[starts], before.flat[starts], rtol, atol, equal_nan)
    left = np.count_nonzero(same)
    if 2 * left > len(same):
        same = segments.all(close(segments.flat, before.flat, rtol, atol, equal_nan))
    elif left:
        looked_at = segments.spread(same)
        values, earlier = segments.flat[looked_at], before.flat[looked_at]
        counts = segments.counts[same]
        same[same] = Segments(values, counts, ()).all(close(values, earlier, rtol, atol, equal_nan))
    return same.astype(np.float64)


def start() -> dict[str, Array]:
    """No value was compared yet."""
    return {name: np.zeros(0, np.int64) for name in ("compared", "same", "moved", "longest")}


def add(state: dict[str, Array], row: Row) -> dict[str, Array]:
    """Per column what the comparisons of its values with the ones before have come to.

    compared: how many there were; same: how many in a row were the same up to now; moved: how many were not; longest:
    how many in a row were the same at most, before one that was not.
    """
    columns, saved = len(row.values), row.saved
    if len(state["same"]) == columns and not (np.count_nonzero(row.values == 1) or np.count_nonzero(state["same"])):
        # all that was saved moves, and moved before
        return {**state, "compared": state["compared"] + saved, "moved": state["moved"] + saved}
    compared, same, moved, longest = (grown(state[name], columns, 0) for name in state)
    differs = saved & (row.values != 1)
    return {
        "compared": compared + saved,
        "same": np.where(differs, 0, same + saved),
        "moved": moved + differs,
        "longest": np.where(differs, np.maximum(longest, same), longest),
    }


RUNS = Accumulator(start, add)


def needs(parameters: Parameters) -> list[Summary]:
    """Whether each value is the same as the last one before it, folded to how often that was so in a row."""
    options = (("rtol", parameters.rtol), ("atol", parameters.atol), ("equal_nan", parameters.equal_nan))
    measure = Measure(same_as_before, options, reshaped=0.0)
    return [Summary(parameters.selection, by=measure, modes=parameters.modes, partner=Previous(), state=RUNS)]


def stands_still(tensors: State, parameters: Parameters) -> Verdict:
    """tensors["same"]: per column how many times in a row it was the same as before; values are one more."""
    saved, before = tensors.row.saved, parameters.num_steps - 1
    points = saved & (tensors["compared"] >= before)
    if not np.count_nonzero(points):
        most = int(np.where(saved, tensors["compared"] + 1, 0).max(initial=0))
        return NotYet(f"no tensor has more than {most} of {parameters.num_steps} saved values so far")
    if not np.count_nonzero(tensors["same"] >= before):
        return None
    unchanged = tensors["same"] + 1
    limit = np.maximum(parameters.num_steps, parameters.times * tensors["longest"] + 1)
    still = saved & (unchanged >= limit)
    if parameters.moved_before:
        still &= tensors["moved"] > 0
    if not still.any():
        return None
    return tensors.met(
        still,
        measured=unchanged,
        limit=limit,
        of=int(points.sum()),
        message="the same value {measured} saved steps in a row, in {tensors} of {of} tensors",
    )


_COMPARED = (np.dtype(np.float32), np.dtype(np.float64))


def _wide(values: Array) -> Array:
    return values if values.dtype in _COMPARED or values.dtype.kind == "c" else values.astype(np.float64)


ONES = np.ones((10, 3, 2))

RULE = Rule(
    name="UnchangedTensor",
    severity="error",
    parameters=Parameters,
    requires=needs,
    condition=stands_still,
    recommended={
        "collection_names": Recommended(
            ("weights",), "weights that do not move are not trained; others may stand still", unless=("tensor_regex",)
        ),
        "num_steps": Recommended(
            10, "weights stand still while a loss scale is found, and at the end of many schedules of the learning rate"
        ),
        "rtol": Recommended(0.0, "weights of a run that has converged move by less than 1e-5 of their size"),
        "atol": Recommended(0.0, "the same"),
        "moved_before": Recommended(
            True, "weights that never move are frozen by intent, or else NotLearning finds that their gradients arrive"
        ),
        "times": Recommended(2.0, "updates from gradients that are accumulated leave weights as they are in between"),
    },
    examples=(
        Example(
            "three in a row",
            {"w": [[1.0, 2.0], [1.1, 2.0], [1.1, 2.0], [1.1, 2.0]]},
            parameters=SAGEMAKER,
            met_at=3,
        ),
        Example(
            "one of two",
            {"v": [1.0, 2.0, 3.0], "w": [ONES, ONES, ONES]},
            parameters=SAGEMAKER,
            met_at=2,
            tensor="w",
        ),
        Example(
            "steps between do not matter",
            {"w": [1.0, None, 1.0, None, 1.0]},
            steps=[0, 5, 10, 11, 90],
            parameters=SAGEMAKER,
            met_at=90,
        ),
        Example(
            "history before the first judged step",
            {"w": [1.0] * 4},
            parameters={**SAGEMAKER, "start_step": 2},
            met_at=2,
        ),
        Example(
            "NaN may be the same",
            {"w": [float("nan")] * 3},
            parameters={**SAGEMAKER, "equal_nan": "true"},
            met_at=2,
        ),
        Example("it stopped moving", {"w": [1.0, 1.1, *[1.2] * 10]}, met_at=11),
        Example(
            "longer than between updates before",
            {"w": [*[1.0] * 8, *[1.1] * 8, *[1.2] * 16]},
            met_at=30,
        ),
        Example("two of three", {"w": [1.0, 1.0]}, parameters=SAGEMAKER),
        Example("one step", {"w": [1.0]}),
        Example("always moving, a little or at tiny scale", {"v": [1.0, 1.001, 1.002], "w": [1e-3, 2e-3, 3e-3]}),
        Example("moving back and forth", {"w": [1e30, 2e30, 1e30, 2e30]}, parameters=SAGEMAKER),
        Example("NaN is never the same", {"w": [float("nan")] * 4}, parameters=SAGEMAKER),
        Example("another shape is another value", {"w": [[1.0, 1.0], [1.0, 1.0], [1.0], [1.0]]}, parameters=SAGEMAKER),
        Example("frozen", {"w": [1.0] * 30}),
        Example("converged", {"w": [1.0 + 1e-7 * step for step in range(30)]}),
        Example(
            "standing still during evaluation",
            {"w": [1.0, 2.0, 2.0, 2.0, 3.0]},
            modes=["TRAIN", "TRAIN", "EVAL", "EVAL", "TRAIN"],
            parameters=SAGEMAKER,
        ),
    ),
)
