import pytest

from evaluator.config.wire import is_unset, read_model
from evaluator.modes import Mode
from tests.config.small_rules import LayerParameters


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("threshold", "1e-8", 1e-8),
        ("threshold", " 20.0 ", 20.0),
        ("threshold", 3, 3.0),
        ("threshold", "inf", float("inf")),
        ("num_steps", "10", 10),
        ("num_steps", "10.0", 10),
        ("num_steps", "1e3", 1000),
        ("num_steps", 10.0, 10),
        ("num_steps", 2**70 + 1, 2**70 + 1),
        ("only_nan", "True", True),
        ("only_nan", "fAlse", False),
        ("only_nan", True, True),
        ("collection_names", "gradients, weights ,", ("gradients", "weights")),
        ("collection_names", ["a,b", "c"], ("a,b", "c")),
        ("tensor_regex", ".*relu", (".*relu",)),
        ("token_thresholds", "50, 20.5", (50.0, 20.5)),
        ("token_thresholds", 7, (7.0,)),
        ("token_thresholds", [1, "2"], (1.0, 2.0)),
        ("modes", "train, GLOBAL", {Mode.TRAIN, Mode.GLOBAL}),
        ("modes", ["EVAL"], {Mode.EVAL}),
        ("mode", " EVAL ", "EVAL"),
    ],
)
def test_a_value_that_fits_is_converted(field, value, expected):
    model, unfit = read_model(LayerParameters, {field: value})

    assert unfit == []
    assert expected == getattr(model, field)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("threshold", "1e-8x", "a number (default: 1e-07)"),
        ("threshold", "nan", "a number (default: 1e-07)"),
        ("threshold", True, "a number (default: 1e-07)"),
        ("threshold", "-1", "a number greater than 0.0 (default: 1e-07)"),
        ("threshold", [1.0], "a number (default: 1e-07)"),
        ("num_steps", "10.5", "a whole number"),
        ("num_steps", 10.5, "a whole number"),
        ("num_steps", "inf", "a whole number"),
        ("num_steps", "9" * 5000, "a whole number"),
        ("steps", "0", "a number at least 1 (default: 10)"),
        ("only_nan", "maybe", "True or False (default: False)"),
        ("token_thresholds", "1, x", "a number (default: [50.0])"),
        ("collection_names", [{}], "text (default: [])"),
        ("modes", "TRIAN", "one of 1, 2, 3 or 4"),
        ("mode", 5, "text (default: GLOBAL)"),
    ],
)
def test_a_value_that_does_not_fit_is_answered_with_what_would(field, value, expected):
    model, unfit = read_model(LayerParameters, {field: value})

    assert model is None
    assert [(field, value)] == [(problem.field, problem.value) for problem in unfit]
    assert expected in unfit[0].expected


def test_everything_that_does_not_fit_is_found_at_once():
    _, unfit = read_model(LayerParameters, {"threshold": "x", "num_steps": True, "only_nan": "maybe", "steps": 3})

    assert {"threshold", "num_steps", "only_nan"} == {problem.field for problem in unfit}


@pytest.mark.parametrize("value", ["", " ", "None", None])
def test_the_ways_to_say_not_given(value):
    assert is_unset(value)


@pytest.mark.parametrize("value", ["none of these", 0, False, [], "0"])
def test_what_is_given_although_it_is_little(value):
    assert not is_unset(value)
