"""A finding has exactly the keys of the contract, and an id that is the same in every run."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluator import strict_json
from evaluator.finding import Affected, Finding, Worst, finding_id
from evaluator.status import schema
from tests.sinks.made import make_finding

KEYS = [
    *("schema", "id", "event", "severity", "rule_configuration", "rule", "step", "mode", "mode_step", "worker"),
    *("tensor", "measured", "limit", "affected", "last_healthy_step", "message", "parameters", "details", "trial"),
    *("labels", "recorded_at"),
]
TEXTS = st.text(st.characters(codec=None), max_size=20)


VALID = jsonschema.Draft202012Validator(schema("finding"))


def validated(document: Any) -> Any:
    VALID.validate(document)
    return document


def test_a_met_line_has_exactly_the_keys_of_the_contract_in_their_order():
    assert list(validated(strict_json.loads(make_finding().line()))) == KEYS


def test_a_cleared_line_says_how_long_it_lasted():
    cleared = make_finding(event="cleared", last_step=5, steps_met=3)

    assert list(validated(strict_json.loads(cleared.line()))) == [*KEYS, "last_step", "steps_met"]


def test_a_cleared_line_that_does_not_say_how_long_it_lasted_is_invalid():
    with pytest.raises(jsonschema.ValidationError, match="'last_step' is a required property"):
        validated(make_finding(event="cleared").document())


def test_a_condition_about_the_whole_run_names_no_tensor():
    document = validated(make_finding(tensor=None, worker=None, mode=None, mode_step=None, limit=None).document())

    assert [document[key] for key in ("tensor", "worker", "mode", "mode_step", "limit")] == [None] * 5


@pytest.mark.parametrize(
    ("measured", "written"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (np.float32("inf"), "Infinity"),
        (np.array(2.5), 2.5),
        (np.int64(3), 3.0),
        ("NaN", "NaN"),
    ],
)
def test_numbers_are_finite_or_one_of_three_words(measured: Any, written: float | str):
    finding = make_finding(
        measured=measured,
        limit=measured,
        affected=Affected(tensors=1, of=2, worst=Worst(tensor="w", measured=measured)),
    )
    document = validated(finding.document())

    assert [document["measured"], document["limit"], document["affected"]["worst"]["measured"]] == [written] * 3


def test_another_word_is_no_number():
    with pytest.raises(ValidationError):
        make_finding(measured="many")


@given(TEXTS, TEXTS, st.dictionaries(TEXTS, st.floats() | TEXTS, max_size=3))
def test_any_name_makes_a_valid_line(name: str, message: str, details: dict[str, Any]):
    finding = make_finding(
        rule_configuration=name, tensor=name, worker=name, message=message, details=details, labels={name: message}
    )
    line = finding.line()

    assert line.count(b"\n") == 1
    assert validated(strict_json.loads(line)) == finding.document()


def test_a_reader_ignores_added_keys():
    document = {**make_finding().document(), "added": 1}

    assert Finding.model_validate(validated(document)) == make_finding()


def test_a_finding_does_not_change():
    with pytest.raises(ValidationError, match="frozen"):
        make_finding().step = 4


def test_an_id_is_the_same_in_every_run():
    joined = b'["VanishingGradient",3,"worker_0","w0"]'

    assert finding_id("VanishingGradient", 3, "worker_0", "w0") == hashlib.sha256(joined).hexdigest()[:16]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", 1, "b", "c"), ("a", 1, "bc", "")),
        (("a,1", 1, "b", "c"), ("a", 11, "b", "c")),
        (('a",1,"b', 1, "b", "c"), ("a", 1, "b", "c")),
        (("a", 1, None, None), ("a", 1, "", "")),
        (("a", 1, "null", None), ("a", 1, None, "null")),
    ],
)
def test_different_issues_have_different_ids(one: Any, other: Any):
    assert finding_id(*one) != finding_id(*other)


@given(TEXTS, st.integers(0, 2**63), TEXTS, TEXTS)
def test_an_id_is_16_hex_digits(configuration: str, step: int, worker: str, tensor: str):
    made = finding_id(configuration, step, worker, tensor)

    assert (len(made), int(made, 16) >= 0) == (16, True)
