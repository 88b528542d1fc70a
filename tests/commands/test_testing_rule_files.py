"""test: the examples of a rule file, run in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.testing import trial_from_series
from tests.commands.program import call

DECLARED = '''
"""Fires when the mean of w is above a limit."""
from evaluator.rule import Example, Rule, RuleParameters, Summary

class Parameters(RuleParameters):
    limit: float = 2.0

def condition(values, parameters):
    high = values.values[-1] > parameters.limit
    return values.met(high, limit=parameters.limit) if high.any() else None

RULE = Rule(name="TooHigh", severity="warning", parameters=Parameters, condition=condition,
    requires=lambda parameters: [Summary("weights", by="mean")], examples=[{examples}])
'''

CLASSES = """
import os, sys, time
from smdebug.rules.rule import Rule

class High(Rule):
    def __init__(self, base_trial, limit=2):
        super().__init__(base_trial)
        assert isinstance(limit, (str, int)) and not isinstance(limit, float)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        print("looks at step", step)
        return any(
            self.base_trial.tensor(name).value(step) > self.limit
            for name in self.base_trial.tensor_names(collection="weights")
        )

class Odd(Rule):
    def __init__(self, base_trial, does="nothing"):
        super().__init__(base_trial)
        self.does = does

    def invoke_at_step(self, step):
        if self.does == "steps":
            return self.base_trial.steps() != list(range(step + 1))
        if self.does == "raise":
            return 1 / 0
        if self.does == "hang":
            time.sleep(60)
        if self.does == "end":
            os._exit(3)
        if self.does == "exit":
            sys.exit("enough")
        if self.does == "environment":
            return "MY_SECRET" in os.environ
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.py"


def write(file: Path, *examples: str, name: str | None = None) -> None:
    """The classes with these examples, all of one of them, or the whole text of EXAMPLES."""
    listed = f"[{', '.join(examples)}]"
    file.write_text(f"{CLASSES}\nEXAMPLES = {listed if name is None else {name: '@'}}".replace("'@'", listed))


@pytest.mark.parametrize(
    "example",
    [
        'Example("grows", {"w": [1.0, 3.0]}, met_at=1)',
        'Example("grows in one", {"v": [1.0, 1.0], "w": [1.0, 3.0]}, met_at=1, tensor="w")',
        'Example("small", {"w": [1.0, 2.0]})',
        'Example("not saved", {"w": [1.0, None]})',
        'Example("high limit", {"w": [9.0]}, parameters={"limit": "10"})',
        'Example("of another collection", {"w": [9.0]}, collections={"biases": ["w"]})',
        '{"title": "as a dict", "tensors": {"w": [1.0]}}',
    ],
)
def test_an_example_that_holds_is_one_line(capsys, file, example):
    file.write_text(DECLARED.replace("{examples}", example))

    ran = call(capsys, "test", file)

    lines = ran.out.splitlines()
    assert (ran.code, lines[0], len(lines)) == (0, "mine.py: TooHigh", 3)
    assert lines[1].startswith("  ok      ")
    assert lines[2] == "1 example, all as expected"


@pytest.mark.parametrize(
    ("example", "expected", "got"),
    [
        ('Example("e", {"w": [1.0, 3.0]})', "stays quiet", "fires at step 1, in w: "),
        ('Example("e", {"w": [1.0, 3.0]}, met_at=0)', "fires at step 0", "fires at step 1, in w: "),
        ('Example("e", {"w": [1.0, 2.0]}, met_at=1)', "fires at step 1", "stays quiet: judged at 2 steps"),
        ('Example("e", {"w": [1.0, 3.0]}, met_at=1, tensor="v")', "fires at step 1, in v", "fires at step 1, in w"),
        ('Example("e", {"w": [None]}, met_at=0)', "fires at step 0", "stays quiet: "),
    ],
)
def test_an_example_that_fails_says_what_was_expected_what_came_out_and_of_what(capsys, file, example, expected, got):
    file.write_text(DECLARED.replace("{examples}", f'Example("fine", {{"w": [1.0]}}), {example}'))

    ran = call(capsys, "test", file)

    lines = [line.strip() for line in ran.out.splitlines()]
    assert (ran.code, lines[1:3], lines[-1]) == (
        1,
        ["ok      fine: stays quiet", "FAILED  e"],
        "1 of 2 examples failed",
    )
    assert lines[3] == f"expected: {expected}"
    assert lines[4].startswith(f"got:      {got}")
    assert lines[5].startswith("w: ")


def test_numbers_of_a_failed_example_are_shortened(capsys, file):
    file.write_text(DECLARED.replace("{examples}", 'Example("e", {"w": [1 / 3, [0.123456789] * 99]}, met_at=1)'))

    assert "w: 0.3333  [0.1235, 0.1235, 0.1235, 0.1235, ...]" in call(capsys, "test", file).out


def test_a_class_gets_an_object_strings_and_the_usual_collections_for_each_example(capsys, file):
    write(
        file,
        '{"title": "high", "tensors": {"w": [1, 2, 3]}, "met_at": 2}',
        '{"title": "limit", "tensors": {"w": [1, 2, 3]}, "parameters": {"limit": 2.5}, "met_at": 2}',
        '{"title": "low", "tensors": {"w": [1, 2]}}',
        '{"title": "other collection", "tensors": {"w": [9]}, "collections": {"losses": ["w"]}}',
        name="High",
    )

    ran = call(capsys, "test", f"{file}:High")

    assert (ran.code, ran.out.splitlines()[-1]) == (0, "4 examples, all as expected")


def test_a_class_sees_no_step_that_a_job_would_not_have_sent(capsys, file):
    write(file, '{"title": "e", "tensors": {"w": [1, 2, 3]}, "parameters": {"does": "steps"}}', name="Odd")

    assert call(capsys, "test", f"{file}:Odd").code == 0


@pytest.mark.parametrize(
    ("does", "got"),
    [
        ("raise", "ZeroDivisionError: division by zero (mine.py, line "),
        ("exit", "called sys.exit('enough') (mine.py, line "),
        ("end", "its process ended by itself, with exit code 3"),
        ("hang", "took longer than 2 s, which is the setting user_step_timeout"),
    ],
)
def test_a_class_that_goes_wrong_fails_that_example_only(capsys, file, does, got):
    bad = f'{{"title": "bad", "tensors": {{"w": [1]}}, "parameters": {{"does": "{does}"}}}}'
    write(file, bad, '{"title": "good", "tensors": {"w": [1]}}', name="Odd")

    ran = call(capsys, "test", f"{file}:Odd", "--set", "user_step_timeout=2")

    assert ran.code == 1
    assert f"got:      {got}" in ran.out
    assert "  ok      good: stays quiet" in ran.out
    assert ("return 1 / 0" in ran.out) == (does == "raise")


def test_secrets_of_the_environment_are_not_there(capsys, file, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "x")
    write(file, '{"title": "e", "tensors": {"w": [1]}, "parameters": {"does": "environment"}}', name="Odd")

    assert call(capsys, "test", f"{file}:Odd").code == 0


def test_all_rules_of_a_file_are_tested_unless_one_is_named(capsys, file):
    write(file, '{"title": "e", "tensors": {"w": [1]}}', name="High")

    both, one, other = (call(capsys, "test", f"{file}{name}") for name in ("", ":High", ":Odd"))

    assert both.out.splitlines() == [
        "mine.py: High", "  ok      e: stays quiet", "mine.py: Odd", "  no examples", "1 example, all as expected",
    ]  # fmt: skip
    assert (both.code, one.code, other.code) == (0, 0, 3)
    assert "Odd" not in one.out


def test_what_the_file_printed_is_shown_only_where_an_example_failed(capsys, file):
    write(file, '{"title": "e", "tensors": {"w": [9]}, "met_at": 0}', name="High")
    assert "looks at" not in call(capsys, "test", file).out

    write(file, '{"title": "e", "tensors": {"w": [9]}}', name="High")
    assert "What the file printed last:\n  looks at step 0\n" in call(capsys, "test", file).out


def test_a_file_without_examples_is_told_from_one_whose_examples_hold(capsys, file):
    file.write_text(DECLARED.replace("{examples}", ""))

    ran = call(capsys, "test", file)

    assert ran.code == 3
    assert "no example to run" in ran.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_thing", "cannot be imported: ModuleNotFoundError: No module named 'no_such_thing' (mine.py, "),
        ("def broken(:", "cannot be imported: SyntaxError: invalid syntax (mine.py, line "),
        ("x = 1", "has no rule in it; a rule is a class derived from "),
        ("RULE = 5", "has a RULE of type int; assign an evaluator.rule.Rule to RULE"),
        (CLASSES + "EXAMPLES = 5", "EXAMPLES is of type int; a list of examples"),
        (CLASSES + "EXAMPLES = [{'title': 'e'}]", "EXAMPLES does not say which of High, Odd it is for; "),
        (
            CLASSES + "EXAMPLES = {'Hihg': []}",
            "EXAMPLES has 'Hihg', which is no class of the file; did you mean 'High'?",
        ),
        (
            CLASSES + "EXAMPLES = {'High': [{'titel': 'e'}]}",
            "EXAMPLES['High'][0] has a key 'titel'; did you mean 'title'?",
        ),
        (
            CLASSES + "EXAMPLES = {'High': [{'title': 'e', 'parameters': {'limt': 1}}]}",
            "example 'e': parameter 'limt' is not known; did you mean 'limit'?",
        ),
        ("import os\nos._exit(0)", "cannot be imported: its process ended by itself, with exit code 0"),
    ],
)
def test_a_file_that_is_no_rule_file_is_wrong_input(capsys, file, text, said):
    file.write_text(text)

    ran = call(capsys, "test", file)

    assert (ran.code, ran.out) == (2, "")
    assert f"{file}: {said}" in ran.err


def test_a_file_that_hangs_when_it_is_imported_is_given_up(capsys, file):
    file.write_text("while True:\n    pass")

    ran = call(capsys, "test", file, "--set", "user_import_timeout=2")

    assert ran.code == 2
    assert f"{file}: cannot be imported: took longer than 2 s, which is the setting user_import_timeout" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.py"], "test: rule file 'nowhere.py' does not exist; give the path of a Python file"),
        (["mine"], "test 'mine': names no file that ends in .py"),
        (["mine.py:No"], "mine.py: has no rule 'No'; rules: High, Odd"),
        (["mine.py:High:limit=3"], "test: parameters are given, but no trial"),
        (["mine.py", "--trial", "nowhere"], "nowhere: does not exist"),
        (["mine.py", "--set", "user_step_timeout=soon"], "'soon' does not fit"),
    ],
)
def test_what_is_wrong_with_the_arguments_is_said(capsys, file, monkeypatch, arguments, said):
    monkeypatch.chdir(file.parent)
    write(file, name="High")

    ran = call(capsys, "test", *arguments)

    assert ran.code == 2
    assert said in ran.err


def test_where_users_rules_are_not_allowed_none_is_tested(capsys, file, monkeypatch):
    monkeypatch.setenv("RULE_EVALUATOR_ALLOW_USER_RULES", "false")
    write(file, name="High")

    ran = call(capsys, "test", file)

    assert (ran.code, ran.out) == (2, "")
    assert "this installation runs built-in rules only" in ran.err


@pytest.mark.parametrize(("limit", "word"), [("2.5", "IssuesFound"), ("9", "NoIssuesFound")])
def test_the_verdict_over_a_trial_is_shown_and_changes_no_exit_code(capsys, file, limit, word):
    write(file, name="High")
    trial_from_series(file.parent / "trial", {"w": [1.0, 2.0, 3.0]}, collections={"weights": ["w"]})

    ran = call(capsys, "test", f"{file}:High:limit={limit}", "--trial", file.parent / "trial")

    assert ran.code == 0
    assert word in ran.out
    assert sorted(path.name for path in file.parent.iterdir()) == ["mine.py", "trial"]


def test_a_rule_that_raises_over_a_trial_is_something_found(capsys, file):
    write(file, name="High")
    trial_from_series(file.parent / "trial", {"w": [1.0]})

    ran = call(capsys, "test", f"{file}:Odd:does=raise", "--trial", file.parent / "trial")

    assert ran.code == 1
    assert "ZeroDivisionError: division by zero" in ran.out
    assert "return 1 / 0" in ran.out


def test_json_is_one_document(capsys, file):
    write(file, '{"title": "e", "tensors": {"w": [1, 9]}}', '{"title": "f", "tensors": {"w": [1]}}', name="High")
    trial_from_series(file.parent / "trial", {"w": [1.0]})

    ran = call(capsys, "test", f"{file}:High", "--json", "--trial", file.parent / "trial")

    document = ran.document
    assert (ran.code, document["as_expected"], document["failed"]) == (1, 1, 1)
    (rule,) = document["rules"]
    first = rule["examples"][0]
    assert (rule["rule"], first["title"], first["series"]) == ("High", "e", {"w": ["1", "9"]})
    assert (first["expected"]["met_at"], first["met_at"], first["as_expected"]) == (None, 1, False)
    assert document["status"]["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"
