"""Fires when a tensor is not the same as in another run, at the same step.

At each saved step, compares every tensor named, or every one, with that of the same name and worker in each of the
other trials (`other_trials`), as numpy.allclose does. Each of them must be similar. Names that differ only by parts of
wrappers (`module.fc.weight`, `fc.weight`) are the same where it is clear which one is meant.

Quiet when: they are similar; the other trial lacks the step or the tensor; or a tensor holds no numbers.
Source: SageMaker Debugger's list of built-in rules, "SimilarAcrossRuns". Its older text says that it fires where
tensors differ, in spite of its name, and the newer one does not say; no tolerance is documented. Our choices: `rtol`
and `atol` are those of numpy, a tensor of another shape differs, and `measured` is the largest difference, in
tolerances.
"""

from typing import Any

import numpy as np
from pydantic import Field

from builtin_rules._selecting import NamedTensors
from evaluator.rule import Example, Measure, OtherTrial, Recommended, Rule, Summary, Verdict, Window
from evaluator.segments import Array, Floats, Segments


class Parameters(NamedTensors):
    """What SimilarAcrossRuns can be told."""

    rtol: float = Field(1e-5, ge=0, description="Relative tolerance, as of numpy.allclose. Ours, not SageMaker's.")
    atol: float = Field(1e-8, ge=0, description="Absolute tolerance, as of numpy.allclose. Ours, not SageMaker's.")
    equal_nan: bool = Field(False, description="Whether two NaN are the same. Ours, not SageMaker's.")


def largest_difference(segments: Segments, other: Segments, *, rtol: float, atol: float, equal_nan: bool) -> Floats:
    """Per tensor the largest |difference| in tolerances: at most 1 exactly where numpy.allclose says True.

    Infinite where one of the two is not finite and the other is not the same.
    """
    mine, theirs = _wide(segments.flat), _wide(other.flat)
    tolerance = atol + rtol * np.abs(theirs)
    difference = np.abs(mine - theirs)
    close = (difference <= tolerance) & np.isfinite(theirs)
    same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs) & equal_nan)
    shares = np.divide(difference, tolerance, out=np.full(difference.shape, np.inf), where=tolerance > 0)
    shares = np.where(np.isnan(shares), np.inf, shares)
    # rounding must not decide otherwise than the comparison itself
    shares = np.where(close, np.minimum(shares, 1.0), np.maximum(shares, np.nextafter(1.0, 2.0)))
    return segments.max(np.where(same, 0.0, shares))


def _wide(values: Array) -> Array:
    return values.astype(np.complex128) if values.dtype.kind == "c" else values.astype(np.float64)


def needs(parameters: Parameters) -> list[Summary]:
    """The largest difference from each of the other trials."""
    options = (("rtol", parameters.rtol), ("atol", parameters.atol), ("equal_nan", parameters.equal_nan))
    measure = Measure(largest_difference, options, reshaped=np.inf)
    return [Summary(parameters.selection, by=measure, partner=OtherTrial(number=None))]


def differs(*given: Window | Parameters) -> Verdict:
    """One window per other trial: (1, columns), the largest difference at its last step; then the parameters."""
    windows = [window for window in given if isinstance(window, Window) and len(window.steps)]
    step = max(int(window.steps[-1]) for window in windows)
    for window in windows:
        difference = window.values[-1]
        unlike = window.saved[-1] & (difference > 1)
        if int(window.steps[-1]) == step and unlike.any():
            return window.met(
                unlike,
                limit=1.0,
                details={"other_trial": window.other_trial},
                message="not as in the other trial: {measured} times the tolerance apart, in {tensors} of {of} tensors",
            )
    return None


HERE: dict[str, list[Any]] = {"w": [[1.0, 2.0], [1.1, 2.1], [1.2, 2.2]], "loss": [1.0, 0.9, 0.8]}

RULE = Rule(
    name="SimilarAcrossRuns",
    severity="warning",
    parameters=Parameters,
    requires=needs,
    condition=differs,
    other_trials=True,
    precedence=50,
    recommended={
        "equal_nan": Recommended(True, "what is NaN in both runs, as splits of leaves in tables of trees, is the same")
    },
    examples=(
        Example(
            "one element goes another way", HERE, other={**HERE, "w": [[1.0, 2.0], [1.1, 2.2], [1.2, 2.4]]}, met_at=1
        ),
        Example("another shape", {"w": [[1.0, 1.0]]}, other={"w": [[1.0]]}, met_at=0),
        Example(
            "NaN is no number to agree with",
            {"w": [float("nan")]},
            other={"w": [float("nan")]},
            parameters={"parameter_set": "sagemaker"},
            met_at=0,
        ),
        Example("the same", HERE, other=HERE),
        Example("a rounding error", {"w": [1.0, 2.0]}, other={"w": [1.000001, 2.000001]}),
        Example("NaN in both", {"trees/Split": [[0.5, float("nan")]]}, other={"trees/Split": [[0.5, float("nan")]]}),
        Example("what the other lacks", HERE, other={"loss": [1.0, None, 0.8]}),
        Example(
            "another tensor than those named",
            HERE,
            other={**HERE, "loss": [2.0, 2.0, 2.0]},
            parameters={"tensor_regex": "^w"},
        ),
        Example("no other trial", HERE),
    ),
)
