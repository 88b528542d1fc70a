"""explain: a rule in a file of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.program import call

REQUIRED = '''
"""Fires never."""
from evaluator.rule import Rule, RuleParameters, Summary

class Parameters(RuleParameters):
    limit: float

RULE = Rule(name="Never", severity="info", parameters=Parameters, condition=lambda *_: None,
    requires=lambda parameters: [Summary("weights", by="mean", rows=int(parameters.limit))])
'''

ODD_DEFAULT = """
from smdebug.rules.rule import Rule

class Odd(Rule):
    def __init__(self, base_trial, kind=object):
        super().__init__(base_trial)

    def invoke_at_step(self, step):
        return False
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ([], ("abs_mean of collection 'gradients'", "Fires above this mean magnitude.", "Quiet when: no gradient")),
        (["--class"], ("whatever it asks its trial for",)),
    ],
    ids=["declared", "class"],
)
def test_a_file_is_explained_as_a_built_in_rule_is(capsys, tmp_path, kind, texts):
    call(capsys, "new-rule", "TooLarge", *kind)

    ran = call(capsys, "explain", "too_large.py")

    assert ran.code == 0
    for text in (
        f"TooLarge (error, from {tmp_path / 'too_large.py'})",
        "Fires when the mean magnitude of some gradient is above a limit.",
        "name        default   description",
        "threshold   10",
        "on_finding      stop",
        "It is judged at saved steps.",
        "one gradient grows: fires at step 2",
        "g1: 1  5  -50",
        "with threshold=100",
        *texts,
    ):
        assert text in ran.out


def test_a_parameter_without_a_default_is_required_and_what_depends_on_it_is_said(capsys):
    Path("never.py").write_text(REQUIRED)

    document = call(capsys, "explain", "never.py:Never", "--json").document

    (parameter,) = document["parameters"]
    assert (parameter["name"], parameter["required"], parameter["default"]) == ("limit", True, None)
    assert document["needs"] == ["depends on parameters that must be given: limit"]
    assert (document["name"], document["documentation"], document["examples"]) == ("Never", "Fires never.", [])


def test_a_default_that_json_does_not_know_is_shown_as_python_does(capsys):
    Path("odd.py").write_text(ODD_DEFAULT)

    ran = call(capsys, "explain", "odd.py")

    assert ran.code == 0
    assert "<class 'object'>" in ran.out


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("nowhere.py", "explain: rule file 'nowhere.py' does not exist"),
        ("two.py", "has several rules: Odd, Even; say which: two.py:NAME"),
        ("two.py:Non", "has no rule 'Non'; "),
        ("two.py:Odd:x=1", "explain: a rule is explained without parameters"),
        ("broken.py", "broken.py: cannot be imported: NameError: name 'x' is not defined (broken.py, line 1)"),
    ],
)
def test_a_file_that_cannot_be_explained_is_wrong_input(capsys, argument, said):
    Path("two.py").write_text(ODD_DEFAULT + ODD_DEFAULT.replace("Odd", "Even"))
    Path("broken.py").write_text("x")

    ran = call(capsys, "explain", argument)

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
