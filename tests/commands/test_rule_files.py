"""Asking for a rule of one's own file: on the command line, in configuration files, by a container's environment."""

from __future__ import annotations

import json

import pytest

from tests.commands.program import call, check_outputs, small_trial


@pytest.fixture
def rule_file(tmp_path):
    """A file that would raise if it were imported."""
    (tmp_path / "mine.py").write_text("raise RuntimeError('imported')")
    return tmp_path / "mine.py"


@pytest.fixture
def good_file(tmp_path):
    """A file with a rule that would raise if it judged anything."""
    rule = "class Mine(Rule):\n    def invoke_at_step(self, step):\n        raise RuntimeError('judged')\n"
    (tmp_path / "mine.py").write_text(f"from smdebug.rules.rule import Rule\n\n\n{rule}")
    return tmp_path / "mine.py"


@pytest.mark.parametrize("command", ["run", "check"])
def test_everything_wrong_with_rule_files_is_listed_at_once(tmp_path, capsys, command, rule_file):
    ran = call(
        capsys,
        command,
        small_trial(tmp_path / "trial"),
        "--rule-file",
        "mine",
        "--rule-file",
        "nowhere/mine.py:Mine",
        "--rule-file",
        "https://host/mine.py",
        "--rule-file",
        f"{rule_file}:on_finding=end",
    )

    elsewhere = "is at https://, which is not supported; give a local path, a file:// or an s3:// URI"
    fitting = "expected one of 'stop' or 'continue' (default: stop)"
    assert (ran.code, ran.out) == (2, "")
    assert ran.lines == [
        "--rule-file 'mine': names no file that ends in .py; the form is WHERE.py[:NAME][:key=value,key=value]",
        "--rule-file nowhere/mine.py:Mine: rule file 'nowhere/mine.py' does not exist; give the path of a Python file",
        f"--rule-file https://host/mine.py: rule file 'https://host/mine.py' {elsewhere}",
        f"--rule-file {rule_file}: parameter 'on_finding' is 'end'; {fitting}",
    ]


def test_machines_get_the_parts_of_a_mistake(tmp_path, capsys):
    ran = call(capsys, "run", small_trial(tmp_path), "--rule-file", "nowhere/mine.py", "--json")

    assert ran.code == 2
    assert ran.document["errors"] == [
        {
            "where": "--rule-file nowhere/mine.py",
            "what": "rule file 'nowhere/mine.py' does not exist",
            "would_be_right": "give the path of a Python file",
        }
    ]


@pytest.mark.parametrize("command", ["run", "check"])
def test_an_installation_may_be_restricted_to_built_in_rules(tmp_path, capsys, command, rule_file):
    ran = call(
        capsys, command, small_trial(tmp_path / "t"), "--rule-file", rule_file, "--set", "allow_user_rules=false"
    )

    assert ran.code == 2
    assert "this installation runs built-in rules only (allow_user_rules=false)" in ran.err


def test_check_loads_a_rule_of_a_file_and_judges_no_step(tmp_path, capsys, good_file):
    trial = small_trial(tmp_path / "trial")
    builtin = "VanishingGradient:parameter_set=sagemaker"
    arguments = ("check", trial, "--rule-file", f"{good_file}:Mine", "--rule", builtin)

    shown, ran = call(capsys, *arguments), call(capsys, *arguments, "--json")

    vanishing, mine = ran.document["rules"]
    assert (shown.code, ran.code) == (0, 0)
    assert f"Mine: {good_file}; it loads, and what it looks at is known when it runs" in " ".join(shown.out.split())
    assert (vanishing["rule"], vanishing["file"], mine["rule"], mine["file"]) == (
        "VanishingGradient",
        None,
        "Mine",
        str(good_file),
    )
    assert (mine["due"], mine["enough"], mine["reason"], mine["problems"]) == (None, None, None, [])


@pytest.mark.parametrize(
    ("asked", "problem"),
    [(":Mine:limit=3", "parameter 'limit' is not known"), (":Other", "has no rule 'Other'")],
)
def test_check_says_why_the_rule_of_a_file_cannot_be_had(tmp_path, capsys, good_file, asked, problem):
    ran = call(capsys, "check", small_trial(tmp_path / "trial"), "--rule-file", f"{good_file}{asked}")

    assert ran.code == 1
    assert problem in " ".join(ran.out.split())


def test_check_finds_the_rule_file_of_a_configuration_beside_it(tmp_path, capsys, good_file):
    (tmp_path / "job.toml").write_text(f'[[rule]]\nname = "own"\nfile = "{good_file.name}"')

    ran = call(capsys, "check", small_trial(tmp_path / "trial"), "--config", tmp_path / "job.toml", "--json")

    (own,) = ran.document["rules"]
    assert (ran.code, own["rule_configuration"], own["rule"], own["file"]) == (0, "own", "Mine", str(good_file))


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (
            "s3://bucket/rules/",
            "does not end in .py; give the one Python file that the rule is in",
        ),
        ("s3://b/mine.py", "rule file 's3://b/mine.py': 'b' is not the name of a bucket"),
        ("/nowhere/mine.py", "does not exist"),
    ],
)
def test_a_container_reports_a_rule_file_that_it_cannot_get(tmp_path, capsys, monkeypatch, source, what):
    small_trial(tmp_path / "processing" / "input" / "tensors")
    monkeypatch.setenv("source_s3_uri", source)
    monkeypatch.setenv("rule_to_invoke", "check_accuracy")

    ran = call(capsys, "container", "--ml-root", tmp_path)

    status = check_outputs(tmp_path / "processing" / "output" / "rule")
    (rule,) = status["DebugRuleEvaluationStatuses"]
    assert ran.code == 2
    assert (rule["RuleConfigurationName"], rule["Rule"], rule["RuleEvaluationStatus"]) == (
        "check_accuracy",
        "check_accuracy",
        "Error",
    )
    assert rule["StatusDetails"].startswith(f"ClientError: environment: rule file {source!r}")
    assert what in rule["StatusDetails"]
    assert (tmp_path / "output" / "message").read_text().startswith("ClientError: environment: rule file")


def test_the_settings_of_rule_files_are_listed(capsys):
    settings = {one["name"]: one for one in call(capsys, "settings", "--json").document["settings"]}

    assert {name: one["default"] for name, one in settings.items() if "user_" in name} == {
        "user_step_timeout": 60,
        "user_import_timeout": 60,
        "user_memory": 2 * 2**30,
        "user_error_budget": 0,
        "allow_user_rules": True,
    }


def test_sagemakers_shape_asks_for_a_rule_file_too(tmp_path, capsys, rule_file):
    parameters = {"source_s3_uri": rule_file.as_uri(), "rule_to_invoke": "check_accuracy", "threshold": "20.0"}
    entry = {"RuleConfigurationName": "accuracy", "RuleParameters": parameters}
    (tmp_path / "job.json").write_text(json.dumps({"DebugRuleConfigurations": [entry]}))

    ran = call(capsys, "check", small_trial(tmp_path / "trial"), "--config", tmp_path / "job.json", "--json")

    (rule,) = ran.document["rules"]
    assert (rule["rule_configuration"], rule["rule"], rule["file"]) == ("accuracy", "check_accuracy", str(rule_file))
