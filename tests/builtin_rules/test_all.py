"""What holds for every built-in rule: its form, and that its examples are true."""

from __future__ import annotations

import re

import pytest

from evaluator.config.parameters import configure
from evaluator.config.request import RuleRequest
from evaluator.registry import builtin_rules
from evaluator.rule import SEVERITIES, Example, Rule
from evaluator.testing import run_example

RULES = builtin_rules()
EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.name}: {example.title}")
    for rule in RULES.values()
    for example in rule.examples
]

each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


@each_rule
def test_a_rule_says_when_it_fires_when_it_is_quiet_and_where_it_comes_from(rule: Rule):
    first = rule.documentation.splitlines()[0]

    assert re.fullmatch(r"(Makes a page|Fires when) .+\.", first)
    assert first.startswith("Makes") == (rule.report is not None)
    assert re.search(r"^Quiet when: \S", rule.documentation, re.MULTILINE)
    assert re.search(r"^Source: \S", rule.documentation, re.MULTILINE)


@each_rule
def test_a_rule_lies_in_a_file_of_its_own_name(rule: Rule):
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", rule.name).lower()

    assert rule.module.rsplit(".", 1)[-1] == snake
    assert rule.severity in SEVERITIES


@each_rule
def test_every_parameter_is_described(rule: Rule):
    undescribed = [name for name, field in rule.parameters.model_fields.items() if not field.description]

    assert rule.parameters.__doc__
    assert undescribed == []


@each_rule
def test_every_recommended_value_has_a_reason_and_fits(rule: Rule):
    configured = configure(RuleRequest(rule.name, {}, "candidate", rule.name), rule)

    assert not isinstance(configured, list), configured
    assert all(one.reason for one in rule.recommended.values())


@each_rule
def test_a_rule_has_at_least_as_many_quiet_examples_as_firing_ones(rule: Rule):
    firing = [example for example in rule.examples if example.met_at is not None]
    quiet = [example for example in rule.examples if example.met_at is None]

    # a report finds nothing, so nothing can show it fire
    least = 0 if rule.report is not None else 1
    assert least <= len(firing) <= len(quiet)
    assert len({example.title for example in rule.examples}) == len(rule.examples)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_an_example_holds(rule: Rule, example: Example):
    result = run_example(rule, example)

    assert not result.failed, result.why
    assert result.met_at == example.met_at, result.why
    assert example.tensor in {None, *(finding.tensor for finding in result.findings)}
