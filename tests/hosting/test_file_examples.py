"""What a rule file may say of its examples, in which form."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from evaluator.errors import InputError
from evaluator.hosting.file_examples import examples_of
from evaluator.hosting.loading import Loaded
from evaluator.rule import Example


class First:
    """A class of a rule file."""


class Second:
    """Another one."""


def loaded(examples: object, *classes: type) -> Loaded:
    module = ModuleType("mine")
    module.__dict__.update({one.__name__: one for one in classes}, EXAMPLES=examples)
    return Loaded(module, None, {one.__name__: one for one in classes})


@pytest.mark.parametrize(
    "examples",
    [
        [Example("e", {"w": [1.0]}, met_at=0)],
        [{"title": "e", "tensors": {"w": [1.0]}, "met_at": 0}],
        ({"title": "e", "tensors": {"w": [1.0]}, "met_at": 0},),
        {"First": [{"title": "e", "tensors": {"w": [1.0]}, "met_at": 0}]},
    ],
)
def test_all_forms_come_to_the_same(examples):
    (example,) = examples_of(loaded(examples, First), First, "mine.py")

    assert example == Example("e", {"w": [1.0]}, met_at=0)


@pytest.mark.parametrize("examples", [(), [], {}, {"First": []}, {"Second": [{"title": "of another"}]}])
def test_a_class_may_have_none(examples):
    assert examples_of(loaded(examples, First, Second), First, "mine.py") == ()


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"tensors": {}},
        {"tensors": {"w": np.ones((2, 3))}},
        {"tensors": {"w": (1, None)}},
        {"met_at": None, "tensors": {"w": []}},
        {"workers": {"a": {"w": [1]}}, "other": None},
        {"parameters": {"limit": 1}},
    ],
)
def test_what_makes_a_trial_is_taken(values):
    assert examples_of(loaded([{"title": "e", **values}], First), First, "mine.py")[0].title == "e"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"title": 5}, "EXAMPLES[0]: title is no text"),
        ({"met_at": "1"}, "EXAMPLES[0]: met_at is '1'; give the step of the first finding, or None for quiet"),
        ({"met_at": True}, "EXAMPLES[0]: met_at is True; "),
        ({"tensors": [1, 2]}, "EXAMPLES[0]: tensors are no dict; give name -> its value at each step"),
        ({"tensors": {"w": 1.0}}, "EXAMPLES[0]: tensors['w'] is 1.0; give a list with its value at each step"),
        ({"tensors": {"w": "12"}}, "EXAMPLES[0]: tensors['w'] is '12'; "),
        ({"workers": {"a": [1]}}, "EXAMPLES[0]: workers['a'] are no dict; "),
        ({"workers": [1]}, "EXAMPLES[0]: workers are no dict; "),
        ({"other": {"w": 1}}, "EXAMPLES[0]: other['w'] is 1; "),
        ({"parameters": "limit=1"}, "EXAMPLES[0]: parameters are no dict; give name -> value"),
    ],
)
def test_what_makes_none_is_named(values, said):
    with pytest.raises(InputError) as refused:
        examples_of(loaded([{"title": "e", **values}], First), First, "mine.py")

    assert f"mine.py: {said}" in str(refused.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(InputError) as refused:
        examples_of(loaded([{}, 7, {"titel": "e", "stepps": 1}], First), First, "mine.py")

    assert [mistake.what for mistake in refused.value.mistakes] == [
        "EXAMPLES[0] has no 'title'",
        "EXAMPLES[1] is of type int",
        "EXAMPLES[2] has a key 'titel'",
        "EXAMPLES[2] has a key 'stepps'",
    ]
