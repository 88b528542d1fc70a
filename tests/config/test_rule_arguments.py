import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.config.request import RuleFile, RuleRequest
from evaluator.config.rule_arguments import parse_rule_argument, parse_rule_file_argument
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


@pytest.mark.parametrize(
    ("text", "location", "rule", "parameters"),
    [
        ("mine.py", "mine.py", None, {}),
        ("rules/mine.py:Mine", "rules/mine.py", "Mine", {}),
        ("mine.py:check_accuracy:threshold=20.0,x=1", "mine.py", "check_accuracy", {"threshold": "20.0", "x": "1"}),
        ("mine.py:threshold=1", "mine.py", None, {"threshold": "1"}),
        ("mine.py:regex=a:b", "mine.py", None, {"regex": "a:b"}),
        ("mine.py:Mine:regex=a:b.py:c", "mine.py", "Mine", {"regex": "a:b.py:c"}),
        ("a.pyx/mine.py.py:Mine", "a.pyx/mine.py.py", "Mine", {}),
        ("file:///there/mine.py:Mine", "file:///there/mine.py", "Mine", {}),
        ("s3://bucket/mine.py", "s3://bucket/mine.py", None, {}),
        (" mine.py : Mine ", None, None, None),
        ("mine.py: Mine :x=1", "mine.py", "Mine", {"x": "1"}),
    ],
)
def test_a_rule_file_ends_at_the_first_py_before_a_colon(text, location, rule, parameters):
    request = parse_rule_file_argument(text)

    if location is None:
        assert isinstance(request, Mistake)
    else:
        where = location if rule is None else f"{location}:{rule}"
        use = rule or location.rpartition("/")[2].removesuffix(".py")
        expected = RuleRequest(use, parameters, "command line", f"--rule-file {where}", file=RuleFile(location, rule))
        assert expected == request


def test_name_names_the_configuration_of_a_rule_file_too():
    request = parse_rule_file_argument("mine.py:Mine:x=1,name=first")

    assert isinstance(request, RuleRequest)
    assert (request.name, request.use, request.parameters) == ("first", "Mine", {"x": "1"})


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "names no file that ends in .py; the form is WHERE.py[:NAME][:key=value,key=value]"),
        ("mine", "names no file that ends in .py"),
        (".py", "names no file that ends in .py"),
        ("mine.pyc", "names no file that ends in .py"),
        ("mine.py:", "has '' where the name of a class or RULE should stand"),
        ("mine.py::x=1", "has '' where the name of a class or RULE should stand"),
        ("mine.py:My Rule", "has 'My Rule' where the name of a class or RULE should stand"),
        ("mine.py:Mine:", "has '' where key=value should stand; the form is WHERE.py"),
        ("mine.py:Mine:Other", "has 'Other' where key=value should stand"),
        ("mine.py:x=1,x=2", "parameter 'x' is given twice; give it once, or give --rule-file twice"),
        ('mine.py:x="abc', "which is no JSON string"),
    ],
)
def test_a_rule_file_that_does_not_follow_the_grammar_is_a_mistake(text, what):
    mistake = parse_rule_file_argument(text)

    assert isinstance(mistake, Mistake)
    assert str(mistake).startswith(f"--rule-file {text!r}: ")
    assert what in str(mistake)


@given(st.text())
def test_any_text_is_a_rule_file_or_a_mistake(text):
    assert isinstance(parse_rule_file_argument(text), RuleRequest | Mistake)
