"""The published rule files, re-created in tests/user_rules/rule_files, run as jobs run them: each in its own process.

Source:
    custom-rule-files.md, sections 2 and 3, whose numbers are in the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluator.clock import SystemClock
from evaluator.config.load import Arguments, load
from evaluator.job import Job
from evaluator.status import RuleStatus
from tests.user_rules.test_published_files import COLLECTING, write_trials

FILES = Path(__file__).parents[1] / "user_rules" / "rule_files"
TORCH = """
class Tensor:
    pass


def isnan(value):
    if not isinstance(value, Tensor):
        raise TypeError(f"isnan(): argument must be Tensor, not {type(value).__name__}")
"""
"""Stands in for the framework, beside the file that needs it."""

Outcomes = dict[str, RuleStatus]

OF_OUTPUT = {
    "1": "gradient_mean.py",
    "1-high": "gradient_mean.py:threshold=20.0",
    "2": "gradient_required.py:CustomGradientRule",
    "2-low": "gradient_required.py:threshold=4.5",
    **{f"4-{name}": f"collecting.py:{name}" for name in COLLECTING},
    "11": "never.py",
    "12": "names_of_2019.py",
    "15": "with_trial.py",
    "16": "documented.py:threshold=0.5",
    "16-low": "documented.py:threshold=1e-9,start_step=1",
    "17": "no_such_module.py",
    "20": "notebook.py",
    "20-named": "notebook.py:PoorInitialization",
}
OF_EVAL = {
    "3": "accuracy_drop.py:check_accuracy:previous_accuracy=0.9,threshold=0.2",
    "3-low": "accuracy_drop.py:previous_accuracy=0.1",
}
OF_ODD = {
    "13": "frozen.py",
    "14": "confusion.py",
    "14-late": "confusion.py:start_step=3",
    "19-tanh": "saturation.py:TanhSaturationRule",
    "19-tanh-low": "saturation.py:TanhSaturationRule:min_threshold=-1",
    "19-sigmond": "saturation.py:SigmondSaturationRule",
    "19-relu": "saturation.py:DeadReluRule",
    "19-variance": "saturation.py:SmallVarianceRule",
    "19-unchanged": "saturation.py:ValuesUnchangedRule",
    "21": "saturation.py:MyAttentionEntropyRule",
    "21-low": "saturation.py:MyAttentionEntropyRule:threshold=-1",
}
OF_FRAMEWORK = {
    "18-exploding": "GradientExplodingRule",
    "18-vanishing": "GradientVanishingRule:threshold=4.5",
    "18-vanishing-low": "GradientVanishingRule:start_step=1",
    "18-nan": "WeightsNanRule",
    "18-initialization": "WeightsinitializationRule",
    "18-ratio": "WeightRatio",
}


def run(folder: Path, trial: str, rules: dict[str, str]) -> Outcomes:
    """What a job over a trial comes to, given these rules as `--rule-file` is."""
    asked = [where + (f",name={name}" if "=" in where else f":name={name}") for name, where in rules.items()]
    arguments = Arguments(
        trial=str(folder / trial), rule_files=asked, output=str(folder / "out"), set=["user_import_timeout=30"]
    )
    status = Job(load(arguments, {}), SystemClock()).run().status
    return {rule.RuleConfigurationName: rule for rule in status.rules}


def beside(folder: Path, rules: dict[str, str]) -> dict[str, str]:
    """The same, with the files where they are."""
    return {name: f"{folder}/{where}" for name, where in rules.items()}


@pytest.fixture(scope="module")
def came_of(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What all of them come to, run where a trial lies under ./output and, for no. 18, one under ./db."""
    folder = tmp_path_factory.mktemp("published")
    write_trials(folder)
    (folder / "db").symlink_to(folder / "output")
    own = folder / "own"
    own.mkdir()
    (own / "torch.py").write_text(TORCH)
    (own / "framework_needed.py").write_text((FILES / "framework_needed.py").read_text())
    (folder / "elsewhere").mkdir()
    with pytest.MonkeyPatch.context() as surroundings:
        surroundings.chdir(folder)
        found = run(folder, "output", beside(FILES, OF_OUTPUT))
        found |= run(folder, "eval", beside(FILES, OF_EVAL))
        found |= run(folder, "odd", beside(FILES, OF_ODD))
        found |= run(folder, "output", {n: f"{own}/framework_needed.py:{w}" for n, w in OF_FRAMEWORK.items()})
        surroundings.chdir(folder / "elsewhere")
        absent = {"15-no-trial": "with_trial.py", "18-no-framework": "framework_needed.py:WeightRatio"}
        return found | run(folder, "output", beside(FILES, absent))


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("1", 3), ("2", 3), ("2-low", 0), ("3", 3), ("12", 3), ("14", 1), ("15", 3), ("16", 0), ("18-vanishing", 0),
        ("19-tanh", 2), ("21", 2),
    ],
)  # fmt: skip
def test_a_published_rule_fires_where_its_description_says(came_of: Outcomes, name: str, step: int):
    status = came_of[name]

    assert (status.RuleEvaluationStatus, status.Finding and status.Finding.step) == ("IssuesFound", step), status


@pytest.mark.parametrize(
    ("name", "evaluated"),
    [
        ("1-high", 5), ("3-low", 6), *((f"4-{name}", 5) for name in COLLECTING), ("11", 5), ("13", 4), ("14-late", 1),
        ("16-low", 4), ("18-exploding", 5), ("18-vanishing-low", 4), ("18-initialization", 5), ("18-ratio", 5),
        ("19-sigmond", 4), ("19-tanh-low", 4), ("21-low", 4),
    ],
)  # fmt: skip
def test_a_published_rule_is_quiet_where_its_description_says(came_of: Outcomes, name: str, evaluated: int):
    status = came_of[name]

    assert (status.RuleEvaluationStatus, status.Evaluation.evaluated) == ("NoIssuesFound", evaluated), status


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("15-no-trial", ("its file cannot be imported: ", "./output", "(with_trial.py, line ")),
        ("17", ("its file cannot be imported: ModuleNotFoundError: No module named 'sagemaker", "line 4")),
        ("18-no-framework", ("its file cannot be imported: ModuleNotFoundError: No module named 'torch'",)),
        ("18-nan", ("at step 0: TypeError: isnan(): argument must be Tensor, not Tensor",)),
        ("19-relu", ("at step 0: TypeError: ", "append", "(saturation.py, line ")),
        ("19-variance", ("class SmallVarianceRule has no method invoke; derive it from smdebug.rules.rule.Rule",)),
        ("19-unchanged", ("class ValuesUnchangedRule has no method invoke",)),
        ("20", ("has no rule in it",)),
        ("20-named", ("class PoorInitialization has no method invoke",)),
    ],
)
def test_a_file_that_cannot_be_run_ends_in_an_error_that_says_why(came_of: Outcomes, name: str, words: Sequence[str]):
    status = came_of[name]

    assert status.RuleEvaluationStatus == "Error"
    assert [word for word in words if word not in str(status.StatusDetails)] == [], status.StatusDetails
    assert str(status.StatusDetails).startswith("ClientError: ")
