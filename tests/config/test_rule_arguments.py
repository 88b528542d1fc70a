import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.config.request import RuleRequest
from evaluator.config.rule_arguments import parse_rule_argument
from evaluator.errors import Mistake

KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(lambda key: key != "name")
NAMES = st.from_regex(r"[A-Z][A-Za-z]{0,12}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "use", "parameters"),
    [
        ("VanishingGradient", "VanishingGradient", {}),
        ("A:threshold=1e-8", "A", {"threshold": "1e-8"}),
        ("A:collection_names=gradients,weights", "A", {"collection_names": "gradients,weights"}),
        (
            "A:collection_names=gradients,weights,threshold=1",
            "A",
            {"collection_names": "gradients,weights", "threshold": "1"},
        ),
        ("A:x=1, y=2", "A", {"x": "1", "y": "2"}),
        ("A:regex=a:b=c", "A", {"regex": "a:b=c"}),
        ("A:regex=x{1,2}=", "A", {"regex": "x{1,2}="}),
        ('A:regex="a,b=c",y=2', "A", {"regex": "a,b=c", "y": "2"}),
        ('A:regex="\\"",y="z"', "A", {"regex": '"', "y": "z"}),
        ("A:x=", "A", {"x": ""}),
        ("A:x=,y=", "A", {"x": "", "y": ""}),
        ("A:x=1,", "A", {"x": "1,"}),
        ('A:x=a"b', "A", {"x": 'a"b'}),
    ],
)
def test_what_follows_the_grammar_is_taken_apart(text, use, parameters):
    request = parse_rule_argument(text)

    assert RuleRequest(use, parameters, "command line", use) == request


def test_name_names_the_configuration_and_is_no_parameter():
    request = parse_rule_argument("A:x=1,name=mine")

    assert RuleRequest("A", {"x": "1"}, "command line", "A", "mine") == request


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "has no rule name"),
        (":x=1", "has no rule name"),
        ("A:", "has '' where key=value should stand"),
        ("A:threshold", "has 'threshold' where key=value should stand"),
        ("A:1x=2", "has '1x=2' where key=value should stand"),
        ("A:x=1,x=2", "parameter 'x' is given twice"),
        ('A:x="abc', "which is no JSON string"),
        ('A:x="a" b', "has ' b' after the value of 'x'"),
        ('A:x="a",b', "has ',b' after the value of 'x'"),
    ],
)
def test_what_does_not_follow_the_grammar_is_a_mistake(text, what):
    mistake = parse_rule_argument(text)

    assert isinstance(mistake, Mistake)
    assert what in str(mistake)


@given(NAMES, st.dictionaries(KEYS, st.text(), max_size=4))
def test_every_value_can_be_given_as_a_json_string(name, parameters):
    pairs = ",".join(f"{key}={json.dumps(value)}" for key, value in parameters.items())

    request = parse_rule_argument(f"{name}:{pairs}" if pairs else name)

    assert RuleRequest(name, parameters, "command line", name) == request


@given(NAMES, st.dictionaries(KEYS, st.text(st.characters(exclude_characters='=",')), max_size=4))
def test_a_value_without_comma_quote_and_equals_sign_needs_no_quotes(name, parameters):
    pairs = ",".join(f"{key}={value}" for key, value in parameters.items())

    request = parse_rule_argument(f"{name}:{pairs}" if pairs else name)

    assert RuleRequest(name, parameters, "command line", name) == request


@given(st.text())
def test_any_text_is_a_request_or_a_mistake(text):
    assert isinstance(parse_rule_argument(text), RuleRequest | Mistake)
