"""A saved number is a number for a rule file, whatever NumPy makes of arrays of one element."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from evaluator.testing import trial_from_series
from evaluator.user_rules.opening import create_trial


@pytest.mark.parametrize("cache", [False, True])
def test_a_value_of_one_element_is_taken_as_a_number(tmp_path: Path, cache: bool):
    trial_from_series(tmp_path, {"loss": [1.5, 2.5]})
    value = create_trial(str(tmp_path), cache=cache).tensor("loss").value(1)

    assert (float(value), int(value), math.floor(value), complex(value)) == (2.5, 2, 2, 2.5 + 0j)
    assert (value.shape, isinstance(value, np.ndarray)) == ((1,), True)


def test_what_is_computed_of_it_is_as_of_any_array(tmp_path: Path):
    trial_from_series(tmp_path, {"loss": [1.5]})
    value = create_trial(str(tmp_path)).tensor("loss").value(0)

    assert np.array_equal(value * 2 + np.ones(3), [4.0, 4.0, 4.0])
    with pytest.raises((TypeError, ValueError)):
        float(value + np.ones(3))


@pytest.mark.parametrize("saved", [np.ones(2), np.ones((2, 2)), np.zeros(0), np.array(["text"])])
def test_other_values_are_plain_arrays(tmp_path: Path, saved: np.ndarray):
    trial_from_series(tmp_path, {"t": [saved]})

    assert type(create_trial(str(tmp_path)).tensor("t").value(0)) is np.ndarray
