"""Fires when some tensor holds a value that is not finite: NaN or infinite.

At each saved step, counts the elements that are NaN and those that are infinite in every tensor of a floating-point
type, or in those named. One is enough. Where only reductions of a tensor were saved, they are looked at instead.

Quiet when: every number is finite, however large; or only infinite ones are there and `only_nan` is set. A reduction
that overflowed is no proof where others show that all elements are finite; see `shown_by_reductions`. With `tolerant`
also what is not finite by design; see NonFinite, which tells the first cause.
Source: SageMaker Debugger's list of built-in rules, "ExplodingTensor". That `measured` is the number of such elements,
against a limit of none, is our choice; it is 1 where only reductions show that there are any.
"""

import numpy as np
from pydantic import Field

from builtin_rules._selecting import NamedTensors
from builtin_rules.tensors._finite import (
    FIRST_STEPS,
    HISTORY,
    INF,
    NAN,
    NOT_FINITE,
    STEPS,
    WINDOW,
    constant,
    how,
    overflowing,
)
from evaluator.rule import Example, Met, Recommended, Rule, State, Summary


class Parameters(NamedTensors):
    """What ExplodingTensor can be told."""

    only_nan: bool = Field(False, description="Infinite values are no reason to fire.")
    tolerant: bool = Field(
        False,
        description="Leaves alone what NonFinite does: gradients that overflow now and then, and tensors that were "
        "never finite. Ours, not SageMaker's.",
    )


def explodes(tensors: State, parameters: Parameters) -> Met | None:
    """tensors.row: (columns, 2), the number of NaN and of infinite elements at this step."""
    if not np.count_nonzero(tensors.row.values > 0):
        return None
    nan, infinite = tensors.row.values.T
    count = nan if parameters.only_nan else nan + infinite
    exploded = tensors.row.saved & (count > 0)
    if parameters.tolerant:
        exploded &= ~(overflowing(tensors, STEPS, WINDOW, FIRST_STEPS) | constant(tensors))
    if not exploded.any():
        return None
    each = {"found": how(nan, infinite), "nan": nan, "inf": infinite}
    message = "{measured} elements are not finite, in {tensors} of {of} tensors"
    return tensors.met(exploded, measured=count, limit=0.0, each=each, message=message)


RULE = Rule(
    name="ExplodingTensor",
    severity="critical",
    precedence=1,
    parameters=Parameters,
    requires=lambda parameters: [Summary(parameters.selection, by=NOT_FINITE, state=HISTORY)],
    condition=explodes,
    recommended={
        "exclude_regex": Recommended("^trees/", "in XGBoost's tables of trees, NaN says that a leaf has no split"),
        "tolerant": Recommended(
            True,
            "gradients overflow by design while a loss scale is found, and masks of attention hold -inf on purpose",
        ),
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
        Example("a weight is NaN from its first step", {"weight": [[NAN, NAN]]}, met_at=0),
        Example("infinite, but only NaN matters", {"w": [[1.0, INF]]}, parameters={"only_nan": "True"}),
        Example("NaN elsewhere than asked", {"w": [1.0], "x": [NAN]}, parameters={"tensor_regex": "^w"}),
        Example("healthy", {"w": [[0.1, -0.2], [0.1, -0.3]]}),
        Example("tiny and huge, but finite", {"w": [[1e-300, 1e300], [5e-324, -1.7e308]]}),
        Example("half precision, whose sum of squares would overflow", {"w": [np.full(9, 6e4, np.float16)]}),
        Example("whole numbers and truth values beside a healthy tensor", {"n": [[1, 2]], "b": [[True]], "w": [0.5]}),
        Example("unsaved at one step", {"w": [1.0, None, 1.0]}),
        Example("a mask, and gradients while a loss scale is found", {"mask": [-INF] * 3, "grad": [INF, NAN, 1.0]}),
        Example("one step", {"w": [1.0]}),
    ),
)
