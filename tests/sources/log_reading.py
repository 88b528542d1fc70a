"""What tests ask of a log: its values, by name, mode and step."""

from __future__ import annotations

import numpy as np

from evaluator.sources.base import Source
from tests.sources.contract import opened, values_of

Found = dict[tuple[str, str], dict[int, float]]


def everything(source: Source) -> Found:
    """(name, mode) -> step -> number."""
    found: Found = {}
    for file in opened(source):
        for name, array in values_of(source, file).items():
            assert array.shape == ()
            found.setdefault((name, file.mode.name), {})[file.step] = float(array)
    return found


def alike(one: Found, other: Found) -> bool:
    """Whether two logs hold the same; NaN equals NaN."""
    return {key: list(steps) for key, steps in one.items()} == {
        key: list(steps) for key, steps in other.items()
    } and all(
        np.array_equal(list(steps.values()), list(other[key].values()), equal_nan=True) for key, steps in one.items()
    )


def problems(source: Source) -> dict[str, str]:
    """What is wrong with a log."""
    collections = source.collections()
    assert collections is not None
    return collections.problems


def members(source: Source, collection: str) -> tuple[str, ...]:
    """The names in an inferred collection."""
    collections = source.collections()
    assert collections is not None
    return collections.by_name[collection].tensor_names if collection in collections.by_name else ()
