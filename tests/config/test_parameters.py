from dataclasses import replace

import pytest

from evaluator.config.other_trials import other_trials_of
from evaluator.config.parameters import RuleConfiguration, configure
from evaluator.config.request import RuleRequest
from evaluator.rule import LoopParameters, Recommended
from tests.config.small_rules import LAYER, OVERFIT, SIMILAR, LayerParameters

SHAPES = ("sagemaker", "ours", "command line", "candidate")


def configured(parameters, shape="command line", rule=LAYER, name=None):
    configuration = configure(RuleRequest(rule.name, parameters, shape, rule.name, name), rule)
    assert isinstance(configuration, RuleConfiguration)
    return configuration


def mistakes_of(parameters, shape="command line", rule=LAYER):
    mistakes = configure(RuleRequest(rule.name, parameters, shape, rule.name), rule)
    assert isinstance(mistakes, list)
    return [str(mistake) for mistake in mistakes]


def test_sagemakers_shape_has_sagemakers_defaults():
    configuration = configured({}, "sagemaker")

    assert (LayerParameters(), LoopParameters.model_validate({})) == (configuration.parameters, configuration.loop)


@pytest.mark.parametrize("shape", ["ours", "command line", "candidate"])
def test_the_other_shapes_have_the_recommended_values_of_rule_and_loop(shape):
    configuration = configured({}, shape)

    assert (configuration.parameters.steps, configuration.loop.consecutive) == (20, 3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("chosen", "steps"), [("sagemaker", 10), ("Recommended", 20)])
def test_parameter_set_chooses_whatever_the_shape(shape, chosen, steps):
    assert steps == configured({"parameter_set": chosen}, shape).parameters.steps


def test_what_is_given_wins_over_what_is_recommended():
    configuration = configured({"steps": "7", "consecutive": "1"})

    assert (configuration.parameters.steps, configuration.loop.consecutive) == (7, 1)


@pytest.mark.parametrize("value", ["", "None", None])
def test_a_value_that_says_not_given_changes_nothing(value):
    assert configured({}) == configured({"steps": value, "tensor_regex": value, "exclude_regex": value})


def test_the_status_is_told_where_each_value_comes_from():
    shown = configured({"threshold": "1e-8", "modes": "EVAL,TRAIN", "end_step": "9"}).shown

    assert {
        "threshold": {"value": 1e-8, "from": "configuration"},
        "steps": {"value": 20, "from": "recommended"},
        "modes": {"value": ["EVAL", "TRAIN"], "from": "configuration"},
        "end_step": {"value": 9, "from": "configuration"},
        "consecutive": {"value": 3, "from": "recommended"},
        "num_steps": {"value": None, "from": "default"},
    }.items() <= shown.items()
    assert "start_step" not in shown


def test_defaults_of_sagemakers_set_are_called_so():
    shown = configured({}, "sagemaker").shown

    assert {"sagemaker"} == {entry["from"] for entry in shown.values()}


def test_a_parameter_that_rule_and_loop_share_is_given_to_both():
    configuration = configured({"start_step": "5"}, rule=OVERFIT)

    assert (configuration.parameters.start_step, configuration.loop.start_step) == (5, 5)
    assert configuration.shown["start_step"] == {"value": 5, "from": "configuration"}


def test_a_mistake_in_a_shared_parameter_is_said_once():
    assert mistakes_of({"start_step": "x"}, rule=OVERFIT) == [
        "Overfit: parameter 'start_step' is 'x'; expected a whole number (default: 0)"
    ]


@pytest.mark.parametrize(("given", "severity"), [({}, "error"), ({"severity": "Info"}, "info")])
def test_the_severity_is_the_rules_unless_given(given, severity):
    assert severity == configured(given).severity


def test_only_an_unnamed_rule_is_a_candidate():
    assert [configured({}, shape).candidate for shape in SHAPES] == [False, False, False, True]


@pytest.mark.parametrize("shape", ["ours", "command line"])
def test_an_unknown_parameter_is_a_mistake_with_the_nearest_name(shape):
    (mistake,) = mistakes_of({"treshold": "1"}, shape)

    assert mistake.startswith(
        "DeadLayer: parameter 'treshold' is not known; did you mean 'threshold'? known: collection_names, consecutive,"
    )


def test_an_unknown_parameter_in_sagemakers_shape_is_ignored_and_noted():
    configuration = configured(
        {"treshold": "1", "base_trial": "x", "action_json": "[]", "other_trial_0": "s3://a/b"}, "sagemaker"
    )

    assert configuration.ignored == ("treshold", "other_trial_0")
    assert configuration.notes == (
        "DeadLayer: parameter 'treshold' is ignored: it is not known; did you mean 'threshold'?",
        "DeadLayer: parameter 'other_trial_0' is ignored: the rule does not compare with other trials",
    )


def test_a_mistaken_value_names_rule_parameter_value_and_what_would_fit_in_every_shape():
    for shape in SHAPES:
        assert mistakes_of({"threshold": "1e-8x"}, shape) == [
            "DeadLayer: parameter 'threshold' is '1e-8x'; expected a number (default: 1e-07)"
        ]


def test_all_mistakes_are_said_at_once():
    mistakes = mistakes_of(
        {
            "tensor_regex": "(",
            "exclude_regex": "*",
            "steps": "0",
            "consecutive": "x",
            "unknown": "",
            "parameter_set": "best",
        }
    )

    assert [mistake.split("'")[1] for mistake in mistakes] == [
        "unknown",
        "parameter_set",
        "tensor_regex",
        "exclude_regex",
        "steps",
        "consecutive",
    ]


@pytest.mark.parametrize("value", ["(", ["ok", "["], "a{99999999999999999999}", "(?P<1>a)"])
def test_a_regex_that_does_not_compile_is_a_mistake(value):
    (mistake,) = mistakes_of({"tensor_regex": value})

    assert "; expected a regular expression: " in mistake


@pytest.mark.parametrize("value", [".*relu_output", "a, b", ["a{1,2}"], "(?i)loss"])
def test_a_regex_that_compiles_is_taken(value):
    assert configured({"tensor_regex": value}).parameters.tensor_regex


def test_a_range_without_steps_is_a_mistake():
    (mistake,) = mistakes_of({"start_step": "5", "end_step": "5"})

    assert "end_step (5) is not above start_step (5)" in mistake


@pytest.mark.parametrize(
    ("parameters", "trials"),
    [
        ({}, ()),
        ({"other_trial_10": "c", "other_trial_2": "b", "other_trial_0": "a"}, ("a", "b", "c")),
        ({"other_trials": "a, b,"}, ("a", "b")),
        ({"other_trials": ["a", "b,c"]}, ("a", "b,c")),
        ({"other_trial": "a", "other_trial_0": "a"}, ("a",)),
        ({"other_trials": "None"}, ()),
    ],
)
@pytest.mark.parametrize("shape", ["sagemaker", "ours"])
def test_other_trials_in_every_spelling(parameters, trials, shape):
    assert trials == other_trials_of(parameters) == configured(parameters, shape, SIMILAR).other_trials


def test_other_trials_of_a_rule_that_compares_with_none_are_a_mistake():
    (mistake,) = mistakes_of({"other_trials": "a"})

    assert "parameter 'other_trials' is not known" in mistake


def test_a_recommendation_is_not_used_beside_a_parameter_that_it_would_be_in_the_way_of():
    rule = replace(LAYER, recommended={"collection_names": Recommended(("weights",), "why", unless=("tensor_regex",))})
    names = [configured(given, rule=rule).parameters.collection_names for given in ({}, {"tensor_regex": "relu"})]

    assert names == [("weights",), ()]
