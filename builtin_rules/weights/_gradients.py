"""Which gradient belongs to which weight, by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evaluator.rule import Column
from evaluator.segments import Array, Bools


@dataclass(frozen=True, slots=True)
class Pairs:
    """The gradients of weights.

    Shapes:
        gradient: int64 (weights,), the column of each weight's gradient, 0 where there is none; there: (weights,),
        whether there is one.
    """

    gradient: Array
    there: Bools
    any: bool


def pairs(weights: Sequence[Column], gradients: Sequence[Column], known: int) -> Pairs:
    """The gradient of each weight, among the first `known` of the gradients.

    Found out once for columns that are the same as at the step before: they are only ever added to a list of them.
    """
    return _pairs(_List(weights), len(weights), _List(gradients), known)


class _List:
    """A list of columns, the same only as itself, which is told faster than whether the names are the same."""

    __slots__ = ("columns",)

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def __hash__(self) -> int:
        return id(self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _List) and other.columns is self.columns


@lru_cache(maxsize=16)
def _pairs(weights: _List, count: int, gradients: _List, known: int) -> Pairs:
    at_name = {(column.tensor, column.worker): at for at, column in enumerate(weights.columns[:count])}
    found = np.full(count, -1, np.int64)
    for at, column in enumerate(gradients.columns[:known]):
        for name in weight_named(column.tensor):
            weight = at_name.get((name, column.worker))
            if weight is not None:
                found[weight] = at
                break
    there = found >= 0
    return Pairs(np.maximum(found, 0), there, bool(there.any()))


@lru_cache(maxsize=65536)
def weight_named(gradient: str) -> tuple[str, ...]:
    """The names that the weight of this gradient can have.

    Source:
        the PyTorch and MXNet hooks write `gradient/<weight>`; Keras writes `gradients/<variable>Grad` for a weight
        `<layer>/weights/<variable>`, or `weights/<variable>` with a GradientTape (saved-format.md, names of tensors).
    """
    bare = re.sub(r"^gradients?/", "", gradient)
    variable = re.sub(r"_?Grad(?=(:\d+)?$)", "", bare)
    layer = variable.split("/", 1)[0]
    numbered = variable if re.search(r":\d+$", variable) else f"{variable}:0"
    names = (
        bare,
        variable,
        *(f"{place}{one}" for one in (variable, numbered) for place in (f"{layer}/weights/", "weights/")),
    )
    return tuple(dict.fromkeys(names))
