"""Rule packs that pip installed: found beside the built-in rules, and left out with a note where they have a fault."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from evaluator.registry import builtin_rules
from tests.commands.program import check_outputs, run, small_trial

RULE = '''"""Fires when the loss is odd.

More about it.
"""
from evaluator.rule import Rule, RuleParameters, Summary

RULE = Rule("{name}", "warning", RuleParameters, lambda p: [Summary("losses")], lambda *_: None)
'''


def install(site: Path, distribution: str, entry_points: str, **files: str) -> dict[str, str]:
    """Put a distribution into a folder as pip does; the variables with which the program finds it."""
    information = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(entry_points)
    for name, text in files.items():
        path = site.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent != site:
            (path.parent / "__init__.py").touch()
        path.write_text(text)
    return {"PYTHONPATH": os.pathsep.join([*sys.path, str(site)])}


def entry(value: str, name: str = "rules") -> str:
    return f"[rule_evaluator.rules]\n{name} = {value}\n"


@pytest.fixture
def pack(tmp_path):
    """A package of two rules."""
    files = {"odd_rules__loss": RULE.format(name="OddLoss"), "odd_rules__weight": RULE.format(name="OddWeight")}
    return install(tmp_path / "site", "odd-pack", entry("odd_rules"), **files)


def test_rules_of_a_pack_are_listed_with_where_they_come_from(pack):
    document = run("rules", "--json", environment=pack).document

    assert {one["name"]: one["from"] for one in document["rules"]} == {
        **dict.fromkeys(builtin_rules(), "built-in"),
        "OddLoss": "odd-pack 1.0",
        "OddWeight": "odd-pack 1.0",
    }
    assert document["notes"] == []
    table = run("rules", environment=pack).out
    assert table.count("from odd-pack 1.0") == 2


def test_a_single_module_is_a_pack_too(tmp_path):
    found = install(tmp_path, "one", entry("one_rule"), one_rule=RULE.format(name="OddLoss"))

    assert "OddLoss" in [one["name"] for one in run("rules", "--json", environment=found).document["rules"]]


def test_a_rule_of_a_pack_is_explained(pack):
    ran = run("explain", "oddloss", environment=pack)

    assert ran.code == 0
    assert ran.out.startswith("OddLoss (warning, from odd-pack 1.0)")


def test_a_rule_of_a_pack_is_named_like_a_built_in_one(tmp_path, pack):
    ran = run("run", small_trial(tmp_path / "trial"), "--rule", "oddloss", "--json", environment=pack, cwd=tmp_path)

    (rule,) = ran.document["DebugRuleEvaluationStatuses"]
    assert (ran.code, rule["Rule"], rule["RuleEvaluationStatus"], rule["Severity"]) == (
        0,
        "OddLoss",
        "NoIssuesFound",
        "warning",
    )


def test_without_a_named_rule_those_of_packs_are_candidates_too(tmp_path, pack):
    document = run("check", small_trial(tmp_path / "trial"), "--json", environment=pack).document

    applicable = [one["rule"] for one in document["rules"]]
    assert {"OddLoss", "OddWeight", "VanishingGradient"} <= set(applicable)


@pytest.mark.parametrize(
    ("value", "text", "what"),
    [
        (
            "broken",
            "import nothing_of_this_name",
            "broken: ModuleNotFoundError: No module named 'nothing_of_this_name'",
        ),
        ("broken", "raise SystemExit(3)", "broken: SystemExit: 3"),
        ("broken", "RULE = 5", "has a RULE of type int; a rule module assigns an evaluator.rule.Rule to RULE"),
        ("broken", "", "has no RULE"),
        (
            "broken:x",
            "x = 5",
            "5 is no module; an entry point names a module with a rule, or a package of such modules",
        ),
        ("nowhere", "", "nowhere: ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_a_pack_with_a_fault_is_left_out_with_a_note_and_stops_nothing(tmp_path, pack, value, text, what):
    environment = install(tmp_path / "site", "broken-pack", entry(value), broken=f"print('hello')\n{text}")

    listed = run("rules", "--json", environment=environment)
    ran = run("run", small_trial(tmp_path / "trial"), "--json", environment=environment, cwd=tmp_path)

    assert pack == environment
    (note,) = listed.document["notes"]
    assert note.startswith("rule pack broken-pack 1.0 is left out: ")
    assert what in note
    assert "OddLoss" in [one["name"] for one in listed.document["rules"]]
    assert (ran.code, ran.document["job"]["ended_because"]) == (0, "read_once")
    assert note in ran.document["job"]["notes"]
    check_outputs(tmp_path / "rule-output")
    assert f"note: {note}" in " ".join(run("rules", environment=environment).out.split())


def test_a_rule_with_the_name_of_another_is_left_out_with_a_note(tmp_path, pack):
    environment = install(
        tmp_path / "site",
        "second-pack",
        entry("second_rules"),
        second_rules__a=RULE.format(name="VanishingGRADIENT"),
        second_rules__b=RULE.format(name="OddLOSS"),
        second_rules__c=RULE.format(name="OddBias"),
    )

    document = run("rules", "--json", environment=environment).document

    assert pack == environment
    assert sorted(document["notes"]) == [
        "rule pack second-pack 1.0: rule 'OddLOSS' is left out: it has the name of a rule of odd-pack 1.0",
        "rule pack second-pack 1.0: rule 'VanishingGRADIENT' is left out: it has the name of a built-in rule",
    ]
    assert {"OddLoss", "OddBias"} <= {one["name"] for one in document["rules"]}


def test_packs_are_left_out_unimported_where_only_built_in_rules_may_run(tmp_path, pack):
    (tmp_path / "site" / "odd_rules" / "__init__.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    trial = small_trial(tmp_path / "trial")
    only = {**pack, "RULE_EVALUATOR_ALLOW_USER_RULES": "false"}

    listed = run("rules", "--json", environment=only).document
    ran = run("run", trial, "--json", environment=only, cwd=tmp_path)
    named = run("run", trial, "--rule", "OddLoss", environment=only, cwd=tmp_path)

    note = "rule pack odd-pack 1.0 is left out: this installation runs built-in rules only (allow_user_rules=false)"
    assert (listed["notes"], [one["name"] for one in listed["rules"]]) == ([note], list(builtin_rules()))
    assert note in ran.document["job"]["notes"]
    assert named.code == 2
    assert "rule 'OddLoss' is not known" in named.err
    assert "this installation runs built-in rules only" in named.err
    assert run("explain", "OddLoss", environment=only).code == 2
    assert not (tmp_path / "imported").exists()
