"""check: what rules would see, found out without reading a value."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from evaluator.modes import Mode
from evaluator.writer import TrialWriter
from tests.commands.program import HEALTHY, TRIALS, call, run, small_trial

NAMED = ("--rule", "VanishingGradient:parameter_set=sagemaker")


def checked(capsys, *arguments):
    ran = call(capsys, "check", *arguments, "--json")
    return ran.code, ran.document


def test_a_rule_that_finds_all_it_needs_is_exit_0(tmp_path, capsys):
    code, document = checked(capsys, small_trial(tmp_path), *NAMED)

    (rule,) = document["rules"]
    assert (code, document["steps"]) == (0, {"count": 3, "first": 0, "last": 2})
    assert rule["needs"] == [
        {
            "looks_for": "collection 'gradients'",
            "tensors": 2,
            "first_tensors": ["g0", "g1"],
            "points": 3,
            "looks_back": {"points": 1, "steps": 0},
            "decides_when": True,
        }
    ]
    assert (rule["due"], rule["enough"], rule["problems"]) == (3, True, [])


def test_no_value_is_read(tmp_path, capsys):
    trial = small_trial(tmp_path)
    shutil.rmtree(trial / "events")

    assert checked(capsys, trial, *NAMED)[0] == 0


def test_start_and_end_step_are_heeded(tmp_path, capsys):
    _, document = checked(
        capsys, small_trial(tmp_path), "--rule", "VanishingGradient:parameter_set=sagemaker,start_step=1,end_step=2"
    )

    assert document["rules"][0]["due"] == 1


def test_a_rule_that_would_see_nothing_is_exit_1_with_the_reason(capsys):
    code, document = checked(capsys, TRIALS / "shapes_only", *NAMED)

    (rule,) = document["rules"]
    assert (code, rule["enough"]) == (1, False)
    assert "only shapes were saved" in rule["reason"]


def test_names_that_are_absent_get_the_nearest(tmp_path, capsys):
    code, document = checked(capsys, small_trial(tmp_path), "--rule", "ExplodingTensor:tensor_regex=^los$")

    assert code == 1
    assert "nearest names: 'loss'" in document["rules"][0]["reason"]


def test_ignored_parameters_are_something_found(tmp_path, capsys):
    rule = {"rule_to_invoke": "VanishingGradient", "treshold": "1"}
    entry = {"RuleConfigurationName": "v", "RuleParameters": rule}
    (tmp_path / "job.json").write_text(json.dumps({"DebugRuleConfigurations": [entry]}))

    code, document = checked(capsys, small_trial(tmp_path / "trial"), "--config", tmp_path / "job.json")

    assert code == 1
    assert document["rules"][0]["ignored_parameters"] == ["treshold"]
    assert document["rules"][0]["problems"] == ["ignored parameters: treshold"]


def test_too_few_points_for_a_comparison_are_told(tmp_path, capsys):
    with TrialWriter(tmp_path, collections={"weights": ["w"]}) as one:
        one.save(0, {"w": np.ones(2)}, mode=Mode.TRAIN)

    code, document = checked(capsys, tmp_path, "--rule", "WeightUpdateRatio")

    assert code == 1
    assert document["rules"][0]["needs"][0] == {
        "looks_for": "collection 'weights'",
        "tensors": 1,
        "first_tensors": ["w"],
        "points": 0,
        "looks_back": {"points": 1, "steps": 0},
        "decides_when": True,
    }


def test_an_unreadable_index_file_is_something_found(tmp_path, capsys):
    trial = small_trial(tmp_path)
    next(trial.glob("index/*/000000000001_*")).write_text("{")

    code, document = checked(capsys, trial, *NAMED)

    assert code == 1
    assert list(document["problems"]) == ["index/000000000/000000000001_worker_0.json"]


def test_without_rules_only_those_that_apply_are_looked_at(capsys):
    code, document = checked(capsys, TRIALS / "ddp_two_workers")

    assert code == 0
    assert "VanishingGradient" in [rule["rule"] for rule in document["rules"]]
    assert all(rule["reason"] is None for rule in document["rules"])


def test_a_trial_without_steps_cannot_be_checked(tmp_path, capsys):
    assert checked(capsys, small_trial(tmp_path, []), *NAMED)[0] == 3


def test_mistakes_are_exit_2(tmp_path, capsys):
    ran = call(capsys, "check", small_trial(tmp_path), "--rule", "Vanish")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("--rule: rule 'Vanish' is not known")


@pytest.mark.parametrize(("threshold", "code"), [(1e-7, 0), (1e30, 0)])
def test_verdicts_do_not_matter(tmp_path, capsys, threshold, code):
    rule = f"VanishingGradient:parameter_set=sagemaker,threshold={threshold}"

    assert call(capsys, "check", small_trial(tmp_path), "--rule", rule).code == code


def test_people_are_told_the_same(tmp_path, capsys):
    out = call(capsys, "check", small_trial(tmp_path, [HEALTHY]), *NAMED).out

    assert "VanishingGradient: judged at 1 step at most, nothing missing" in out
    assert "collection 'gradients': 2 tensors at 1 step: g0, g1" in out


def test_people_are_told_what_is_missing(capsys):
    out = call(capsys, "check", TRIALS / "shapes_only", *NAMED).out

    assert "would not be evaluated: 6 tensors of collection 'gradients' matched, but only shapes were saved" in out


def test_steps_without_a_workers_file_are_something_found(tmp_path):
    shutil.copytree(TRIALS / "ddp_two_workers", tmp_path / "trial")
    for path in (tmp_path / "trial" / "index").rglob("*_worker_1.json"):
        path.unlink()

    ran = run("check", tmp_path / "trial", "--rule", "VanishingGradient:parameter_set=sagemaker")

    assert ran.code == 1
    assert "10 of 10 steps without some worker's file; 1 of 2 workers wrote; silent: worker_1" in ran.out


def test_a_part_of_a_selection_that_selects_nothing_is_something_found(tmp_path):
    rule = "AllZero:collection_names=weights,wieghts"

    ran = run("check", TRIALS / "ddp_two_workers", "--rule", rule)

    assert ran.code == 1
    assert "collection 'wieghts' matches no saved tensor; nearest names: 'weights'" in ran.out
