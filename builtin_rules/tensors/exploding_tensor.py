"""Fires when some tensor holds a value that is not finite: NaN or infinite.

At each saved step, counts the elements that are NaN and those that are infinite in every tensor of a floating-point
type, or in those named. One is enough. Where only reductions of a tensor were saved, they are looked at instead.

Quiet when: every number is finite, however large; or only infinite ones are there and `only_nan` is set. A reduction
that overflowed is no proof where others show that all elements are finite; see `shown_by_reductions`.
Source: SageMaker Debugger's list of built-in rules, "ExplodingTensor". That `measured` is the number of such elements,
against a limit of none, is our choice; it is 1 where only reductions show that there are any.
"""

from collections.abc import Mapping

import numpy as np
from pydantic import Field

from builtin_rules._selecting import NamedTensors
from evaluator.rule import Example, Measure, Met, Recommended, Rule, Summary, Window
from evaluator.segments import Floats, Segments

NAN, INF = float("nan"), float("inf")

FAITHFUL = ("min", "max", "abs_min", "abs_max", "l1", "abs_l1", "l2", "abs_l2", "abs_mean", "abs_sum")
"""Reductions that are NaN only if an element is."""
CANCELLING = ("mean", "sum", "std", "variance", "abs_std", "abs_variance")
"""Reductions that can also become NaN where infinities are subtracted from each other."""


class Parameters(NamedTensors):
    """What ExplodingTensor can be told."""

    only_nan: bool = Field(False, description="Infinite values are no reason to fire.")


def not_finite(segments: Segments) -> Floats:
    """(tensors, 2): how many elements are NaN, and how many are infinite."""
    counts = np.zeros((len(segments), 2))
    finite = np.isfinite(segments.flat)
    if not finite.all():
        counts[:, 0] = segments.sum(np.isnan(segments.flat))
        counts[:, 1] = segments.sum(~finite) - counts[:, 0]
    return counts


def shown_by_reductions(saved: Mapping[str, Floats]) -> Floats:
    """(tensors, 2): 1 where saved reductions show that there is a NaN, or something infinite.

    Our choice: a sum, mean, norm or deviation that is infinite does not count where the largest magnitude, or smallest
    and largest value, are finite, because training scripts compute reductions in the tensor's own type, and half
    precision overflows at 65504 (seen in smdebug 1.0.34). Products are not looked at: they overflow on healthy data.
    """
    tensors = len(next(iter(saved.values())))
    bounded = np.zeros(tensors, np.bool_)
    for bounds in (("abs_max",), ("min", "max")):
        if all(name in saved for name in bounds):
            bounded |= np.logical_and.reduce([np.isfinite(saved[name]) for name in bounds])
    infinite = np.logical_or.reduce([np.isinf(values) for values in saved.values()]) & ~bounded
    nan = np.zeros(tensors, np.bool_)
    for name, values in saved.items():
        nan |= np.isnan(values) & (~infinite if name in CANCELLING else True)
    return np.stack([nan, infinite], axis=1).astype(np.float64)


NOT_FINITE = Measure(
    not_finite, width=2, kinds="fc", reductions=(*FAITHFUL, *CANCELLING), from_reductions=shown_by_reductions
)


def explodes(tensors: Window, parameters: Parameters) -> Met | None:
    """tensors: (1, columns, 2), the number of NaN and of infinite elements at this step."""
    nan, infinite = tensors.values[-1].T
    count = nan if parameters.only_nan else nan + infinite
    exploded = tensors.saved[-1] & (count > 0)
    if not exploded.any():
        return None
    both = np.where(nan > 0, np.where(infinite > 0, "NaN and inf", "NaN"), "inf")
    each = {"found": both, "nan": nan, "inf": infinite}
    message = "{measured} elements are not finite, in {tensors} of {of} tensors"
    return tensors.met(exploded, measured=count, limit=0.0, each=each, message=message)


RULE = Rule(
    name="ExplodingTensor",
    severity="critical",
    parameters=Parameters,
    requires=lambda parameters: [Summary(parameters.selection, by=NOT_FINITE)],
    condition=explodes,
    recommended={
        "exclude_regex": Recommended("^trees/", "in XGBoost's tables of trees, NaN says that a leaf has no split")
    },
    examples=(
        Example("one element becomes NaN", {"w0": [1.0, 2.0], "w1": [[1.0, 2.0], [1.0, NAN]]}, met_at=1, tensor="w1"),
        Example("infinite, in both directions", {"w": [[1.0, 2.0], [-INF, INF]]}, met_at=1),
        Example(
            "the first cause is the tensor that training saved first",
            {"layer1": [1.0, NAN], "layer0": [1.0, NAN]},
            met_at=1,
            tensor="layer1",
        ),
        Example("a whole tensor is NaN from its first step", {"w": [[NAN, NAN]]}, met_at=0),
        Example("infinite, but only NaN matters", {"w": [[1.0, INF]]}, parameters={"only_nan": "True"}),
        Example("NaN elsewhere than asked", {"w": [1.0], "x": [NAN]}, parameters={"tensor_regex": "^w"}),
        Example("healthy", {"w": [[0.1, -0.2], [0.1, -0.3]]}),
        Example("tiny and huge, but finite", {"w": [[1e-300, 1e300], [5e-324, -1.7e308]]}),
        Example("half precision, whose sum of squares would overflow", {"w": [np.full(9, 6e4, np.float16)]}),
        Example("whole numbers and truth values beside a healthy tensor", {"n": [[1, 2]], "b": [[True]], "w": [0.5]}),
        Example("unsaved at one step", {"w": [1.0, None, 1.0]}),
        Example("one step", {"w": [1.0]}),
    ),
)
