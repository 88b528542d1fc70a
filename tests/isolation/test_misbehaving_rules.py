"""Whatever a rule of a user's file does, only that rule ends, and the status says why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluator.job import Result
from tests.isolation.jobs import Asked, place, rule, run_job, saved

BAD = "misbehaving.py"
STEPS = 6

ENDS = {
    "Hangs": "took longer than 3 s, which is the setting user_step_timeout",
    "HangsDeaf": "took longer than 3 s, which is the setting user_step_timeout",
    "ReadsForEver": "took longer than 3 s, which is the setting user_step_timeout",
    "Ends": "its process ended by itself, with exit code 7",
    "Exits": "at step 0: called sys.exit('enough') {}",
    "Crashes": "its process was ended by SIGSEGV",
    "EatsMemory": "at step 0: MemoryError {}",
    "Raises": "at step 3: ZeroDivisionError: division by zero {}",
    "RaisesWhenMade": "at step 0: KeyError: 'learning_rate' {}",
    "ClosesEverything": "its process ended by itself, with exit code 1",
}
LINES = {
    "Exits": 'sys.exit("enough")',
    "EatsMemory": "self.eaten = bytearray(4 * 2**30)",
    "Raises": "return 1 / (step - step)",
    "RaisesWhenMade": 'raise KeyError("learning_rate")',
}
DUCK = "class Duck has no method invoke; derive it from smdebug.rules.rule.Rule"
HEALTHY = ("Quiet", "Floods", "LeavesChildren", "SeesSecrets", "StartsAPool", "OddDefault")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path, Path]:
    """One job with all of them, each in its own process, beside a built-in rule."""
    folder = tmp_path_factory.mktemp("misbehaving")
    children = folder / "children"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CHILD_FILE", str(children))
        environment.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        environment.setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/secret")
        environment.setenv("RULE_EVALUATOR_WEBHOOK", "https://secret")
        environment.setenv("MY_API_TOKEN", "secret")
        asked = [
            Asked(BAD, name)
            for name in (*ENDS, *HEALTHY, "SaysAnything", "Duck", "TellsTooMuch", "DiesAfterItsFinding")
        ]
        trial = saved(folder / "trial", STEPS)
        result = run_job(trial, folder / "out", asked, ["ExplodingTensor"], ["user_step_timeout=3"])
    return result, folder / "out", children


@pytest.mark.parametrize("name", ENDS)
def test_a_rule_that_goes_wrong_ends_alone_and_says_how(job: tuple[Result, Path, Path], name: str):
    status = rule(job[0], name)
    assert status.RuleEvaluationStatus == "Error"
    where = f"{place(BAD, LINES[name])} (traceback: {name}/traceback.txt)" if name in LINES else ""
    assert status.StatusDetails == f"ClientError: rule {name}: {ENDS[name].format(where)}"


@pytest.mark.parametrize("name", HEALTHY)
def test_rules_beside_them_judge_every_step(job: tuple[Result, Path, Path], name: str):
    status = rule(job[0], name)
    assert (status.RuleEvaluationStatus, status.Evaluation.evaluated) == ("NoIssuesFound", STEPS)


def test_a_builtin_rule_of_the_same_job_finishes(job: tuple[Result, Path, Path]):
    status = rule(job[0], "ExplodingTensor")
    assert (status.RuleEvaluationStatus, status.Evaluation.evaluated) == ("NoIssuesFound", STEPS)
    assert job[0].exit_code == 1


def test_an_answer_that_makes_no_sense_is_not_believed(job: tuple[Result, Path, Path]):
    status = rule(job[0], "SaysAnything")
    assert status.RuleEvaluationStatus == "Error"
    assert "its process sent what is no answer" in str(status.StatusDetails)


def test_a_class_without_the_base_is_refused_before_the_first_step(job: tuple[Result, Path, Path]):
    status = rule(job[0], "Duck")
    assert status.RuleEvaluationStatus == "Error"
    assert str(status.StatusDetails).endswith(DUCK)


def test_what_a_rule_found_stands_when_its_process_dies_afterwards(job: tuple[Result, Path, Path]):
    status = rule(job[0], "DiesAfterItsFinding")
    assert (status.RuleEvaluationStatus, status.Findings) == ("IssuesFound", 1)


def test_a_text_without_end_is_cut(job: tuple[Result, Path, Path]):
    status = rule(job[0], "TellsTooMuch")
    assert status.RuleEvaluationStatus == "IssuesFound"
    assert (job[1] / "TellsTooMuch" / "findings.jsonl").stat().st_size < 10_000


def test_the_traceback_holds_the_authors_lines_only(job: tuple[Result, Path, Path]):
    text = (job[1] / "Raises" / "traceback.txt").read_text()
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "return self.ratio(step)" in text
    assert "return 1 / (step - step)" in text
    assert "class_rule.py" not in text


def test_of_a_flood_the_beginning_is_kept_and_the_rest_counted(job: tuple[Result, Path, Path]):
    text = (job[1] / "Floods" / "output.txt").read_bytes()
    printed = STEPS * 100_000 * len("flood ")
    assert text.startswith(b"Printed by the process of rule Floods:\nflood flood ")
    assert text.endswith(f"\n... and {printed - 2**20} bytes more\n".encode())


def test_what_a_rule_started_ends_with_it(job: tuple[Result, Path, Path]):
    children = [int(line) for line in job[2].read_text().split()]
    assert len(children) == STEPS
    assert [child for child in children if _lives(child)] == []


def test_a_rule_that_prints_nothing_leaves_no_file(job: tuple[Result, Path, Path]):
    assert not (job[1] / "Quiet" / "output.txt").exists()


def _lives(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    if status.exists():
        # ended, and not collected yet by whoever adopted it
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
