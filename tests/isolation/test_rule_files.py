"""Rules of users' files are judged as built-in ones are, and their files find what they import."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.isolation.jobs import FILES, Asked, place, rule, run_job, saved


@pytest.mark.parametrize(
    ("threshold", "word", "step"), [("20.0", "NoIssuesFound", None), ("2.5", "IssuesFound", 2), (2.5, "IssuesFound", 2)]
)
def test_the_documented_rule_fires_when_its_threshold_is_low_enough(
    tmp_path: Path, threshold: object, word: str, step: int | None
):
    asked = Asked("large_gradient.py", parameters={"threshold": threshold})
    status = rule(run_job(saved(tmp_path / "t"), tmp_path / "o", [asked]), "large_gradient")
    assert status.RuleEvaluationStatus == word
    assert status.Rule == "LargeGradient"
    assert (status.Finding.step if status.Finding else None) == step
    assert status.Parameters["threshold"].value == threshold
    assert status.Evaluation.tensors == 1


def test_a_default_of_the_constructor_is_shown_as_one(tmp_path: Path):
    status = rule(run_job(saved(tmp_path / "t"), tmp_path / "o", [Asked("large_gradient.py")]), "large_gradient")
    assert status.Parameters["threshold"].model_dump(by_alias=True) == {"value": 10.0, "from": "default"}


def test_a_declared_rule_names_tensor_measured_and_limit(tmp_path: Path):
    asked = Asked("too_large.py", parameters={"limit": "3.5"})
    finding = rule(run_job(saved(tmp_path / "t"), tmp_path / "o", [asked]), "too_large").Finding
    assert finding is not None
    assert (finding.step, finding.tensor, finding.measured, finding.limit) == (3, "gradient/w", 4.0, 3.5)
    assert (finding.severity, finding.rule) == ("warning", "TooLarge")
    assert finding.message == "gradient/w has mean 4, above 3.5"


def test_a_declared_rule_stays_quiet_below_its_limit(tmp_path: Path):
    status = rule(run_job(saved(tmp_path / "t"), tmp_path / "o", [Asked("too_large.py")]), "too_large")
    assert (status.RuleEvaluationStatus, status.Evaluation.evaluated) == ("NoIssuesFound", 6)


def test_the_same_file_twice_is_two_rules(tmp_path: Path):
    asked = [Asked("large_gradient.py", "LargeGradient", {"threshold": "2.5"}), Asked("too_large.py", "TooLarge")]
    result = run_job(saved(tmp_path / "t"), tmp_path / "o", asked)
    assert [rule(result, name).RuleEvaluationStatus for name in ("LargeGradient", "TooLarge")] == [
        "IssuesFound",
        "NoIssuesFound",
    ]


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"treshold": "1"}, "parameter 'treshold' is not known; did you mean 'threshold'"),
        ({"limit": "many"}, "parameter 'limit' is not known"),
    ],
)
def test_a_parameter_that_the_constructor_lacks_is_named(tmp_path: Path, parameters: dict[str, object], problem: str):
    status = rule(
        run_job(saved(tmp_path / "t"), tmp_path / "o", [Asked("large_gradient.py", parameters=parameters)]),
        "large_gradient",
    )
    assert status.RuleEvaluationStatus == "Error"
    assert problem in str(status.StatusDetails)


def test_what_the_hosted_service_would_pass_and_the_constructor_lacks_is_ignored_and_listed(tmp_path: Path):
    asked = Asked("large_gradient.py", parameters={"threshold": "20", "colour": "red"}, shape="sagemaker")
    status = rule(run_job(saved(tmp_path / "t"), tmp_path / "o", [asked]), "large_gradient")
    assert status.RuleEvaluationStatus == "NoIssuesFound"
    assert status.ignored_parameters == ["colour"]


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("import_raises.py", "its file cannot be imported: ModuleNotFoundError: No module named"),
        ("import_opens_trial.py", "its file cannot be imported: SMDebugRuntimeError: ./no_such_output_folder"),
        ("import_hangs.py", "took longer than 2 s, which is the setting user_import_timeout"),
        ("misbehaving.py", "has several rules: Quiet, Hangs, "),
        ("beside/helper_beside.py", "has no rule in it; a rule is a class derived from smdebug.rules.rule.Rule"),
    ],
)
def test_a_file_without_a_rule_that_can_be_had_ends_that_rule(tmp_path: Path, file: str, problem: str):
    limits = ["user_import_timeout=2" if "hangs" in file else "user_import_timeout=20"]
    result = run_job(saved(tmp_path / "t"), tmp_path / "o", [Asked(file)], ["ExplodingTensor"], limits)
    status = rule(result, Path(file).stem)
    assert status.RuleEvaluationStatus == "Error"
    assert str(status.StatusDetails).startswith("ClientError: rule ")
    assert problem in str(status.StatusDetails)
    assert rule(result, "ExplodingTensor").RuleEvaluationStatus == "NoIssuesFound"


def test_a_syntax_error_is_told_with_its_line(tmp_path: Path):
    file = tmp_path / "broken.py"
    file.write_text("import os\n\ndef broken(:\n")
    status = rule(run_job(saved(tmp_path / "t"), tmp_path / "o", [Asked(file)]), "broken")
    assert "SyntaxError: invalid syntax" in str(status.StatusDetails)
    assert "(broken.py, line 3) (traceback: broken/traceback.txt)" in str(status.StatusDetails)
    assert "def broken(:" in (tmp_path / "o" / "broken" / "traceback.txt").read_text()


def test_a_file_finds_its_neighbours_even_one_called_as_our_package(tmp_path: Path):
    status = rule(run_job(saved(tmp_path / "t", 8), tmp_path / "o", [Asked("beside/uses_own.py")]), "uses_own")
    assert status.Finding is not None
    assert status.Finding.step == 6


def test_a_file_that_changed_since_it_was_checked_is_not_run(tmp_path: Path):
    file = tmp_path / "mine.py"
    shutil.copy(FILES / "large_gradient.py", file)
    digest = "0" * 64
    assert "its sha256 is" in _loaded(file, digest)


def test_importing_a_file_leaves_nothing_beside_it(tmp_path: Path):
    file = tmp_path / "rules" / "mine.py"
    file.parent.mkdir()
    shutil.copy(FILES / "large_gradient.py", file)
    run_job(saved(tmp_path / "t"), tmp_path / "o", [Asked(file)])
    assert [path.name for path in file.parent.iterdir()] == ["mine.py"]


def test_steps_at_which_a_tensor_is_missing_are_skipped_and_counted_together(tmp_path: Path):
    trial = saved(tmp_path / "t", tensors={"gradient/w": [1.0, None, 1.0, None], "gradient/v": [1.0, 1.0, 1.0, 1.0]})
    status = rule(run_job(trial, tmp_path / "o", [Asked("large_gradient.py")]), "large_gradient")
    assert (status.Evaluation.evaluated, status.Evaluation.skipped) == (2, 2)
    assert status.Evaluation.skipped_because == {"tensor 'gradient/w' was not saved at the step": 2}


def test_with_an_error_budget_steps_that_raise_are_skipped_and_counted(tmp_path: Path):
    trial = saved(tmp_path / "t", 6)
    asked = [Asked("misbehaving.py", "Raises")]
    status = rule(run_job(trial, tmp_path / "o", asked, settings=["user_error_budget=3"]), "Raises")
    assert (status.RuleEvaluationStatus, status.Evaluation.evaluated) == ("NoIssuesFound", 3)
    where = place("misbehaving.py", "return 1 / (step - step)")
    reason = f"it raised ZeroDivisionError: division by zero {where}"
    assert status.Evaluation.skipped_because == {reason: 3}


def test_an_error_budget_that_is_used_up_ends_the_rule(tmp_path: Path):
    asked = [Asked("misbehaving.py", "Raises")]
    status = rule(run_job(saved(tmp_path / "t", 6), tmp_path / "o", asked, settings=["user_error_budget=2"]), "Raises")
    assert status.RuleEvaluationStatus == "Error"
    assert "at step 5: ZeroDivisionError" in str(status.StatusDetails)


def test_loop_parameters_hold_for_classes_too(tmp_path: Path):
    parameters = {"threshold": "2.5", "consecutive": "2", "on_finding": "continue", "severity": "info", "end_step": "5"}
    asked = Asked("large_gradient.py", parameters=parameters)
    result = run_job(saved(tmp_path / "t"), tmp_path / "o", [asked])
    status = rule(result, "large_gradient")
    assert status.Finding is not None
    assert (status.Finding.step, status.Severity, status.Evaluation.evaluated) == (3, "info", 5)
    lines = (tmp_path / "o" / "large_gradient" / "findings.jsonl").read_text().splitlines()
    assert ['"event":"met"' in line for line in lines] == [True, False]


def _loaded(file: Path, sha256: str) -> str:
    from evaluator.errors import InputError  # noqa: PLC0415
    from evaluator.hosting.loading import load  # noqa: PLC0415

    with pytest.raises(InputError) as refused:
        load(str(file), sha256)
    return str(refused.value)
