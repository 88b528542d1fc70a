"""new-rule: what it writes passes its own examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.program import call

KINDS = pytest.mark.parametrize("kind", [[], ["--class"]], ids=["declared", "class"])


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


@KINDS
def test_the_written_file_passes_its_own_examples(capsys, kind):
    assert call(capsys, "new-rule", "GradientTooLarge", *kind).code == 0

    ran = call(capsys, "test", "gradient_too_large.py")

    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "gradient_too_large.py: GradientTooLarge"
    verdicts = [line.rpartition(": ")[2] for line in lines[1:-1]]
    assert verdicts[0].startswith("fires at step 2")
    assert set(verdicts[1:]) == {"stays quiet"}


@KINDS
@pytest.mark.parametrize(("parameters", "word"), [("", "NoIssuesFound"), (":threshold=1e-9", "IssuesFound")])
def test_the_written_file_runs_over_a_trial(capsys, kind, parameters, word):
    demo = Path(__file__).parents[2] / "evaluator" / "demo_trial"
    call(capsys, "new-rule", "GradientTooLarge", *kind)

    ran = call(capsys, "run", demo, "--rule-file", f"gradient_too_large.py{parameters}", "--exit-zero", "--json")

    assert [rule["RuleEvaluationStatus"] for rule in ran.document["DebugRuleEvaluationStatuses"]] == [word]


@KINDS
def test_what_to_do_next_is_said(capsys, kind):
    out = call(capsys, "new-rule", "NaNInLoss", "--output", "x.py", *kind).out

    assert out == "x.py is written; next:\n  rule-evaluator test x.py\n  rule-evaluator run TRIAL --rule-file x.py\n"
    assert Path("x.py").exists()
    assert "TemplateName" not in Path("x.py").read_text()


def test_a_file_that_is_there_is_left_alone(capsys):
    Path("too_large.py").write_text("mine")

    ran = call(capsys, "new-rule", "TooLarge")

    assert ran.code == 2
    assert "'too_large.py' is there already; nothing is overwritten" in ran.err
    assert Path("too_large.py").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["too_large"], "rule name 'too_large' is not CamelCase; name the bad pattern that it finds, for example "),
        (["tooLarge"], "rule name 'tooLarge' is not CamelCase"),
        (["None"], "rule name 'None' is not CamelCase"),
        (["Evaluator"], "'evaluator.py' would hide the package 'evaluator'"),
        (["TooLarge", "--output", "too_large.txt"], "'too_large.txt' does not end in .py"),
        (["TooLarge", "--output", "nowhere/x.py"], "'nowhere/x.py' cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_written_is_said(capsys, tmp_path, arguments, said):
    ran = call(capsys, "new-rule", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert f"new-rule: {said}" in ran.err
    assert list(tmp_path.iterdir()) == []
