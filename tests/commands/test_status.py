"""status: one table over many outputs, and the exit code of the worst."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.program import HEALTHY, TINY, call, small_trial

RULE = ("--rule", "VanishingGradient:parameter_set=sagemaker", "--exit-zero")
ANY = pytest.CaptureFixture[str]


@pytest.fixture
def outputs(tmp_path: Path, capsys: ANY) -> Path:
    """A folder with the outputs of a healthy run and of one with a finding."""
    for name, last in (("good", HEALTHY), ("bad", TINY)):
        trial = small_trial(tmp_path / "trials" / name, [HEALTHY, last])
        assert call(capsys, "run", trial, *RULE, "--output", tmp_path / "out" / name).code == 0
    return tmp_path / "out"


def change(output: Path, *, rule: dict[str, object] | None = None, **job: object) -> None:
    """Let a status say something else of the job, or of its rule."""
    path = output / "status.json"
    status = json.loads(path.read_bytes())
    status["job"].update(job)
    status["DebugRuleEvaluationStatuses"][0].update(rule or {})
    path.write_text(json.dumps(status))


def states(document: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {Path(one["output"]).name: one["state"] for one in document["outputs"]}


@pytest.mark.parametrize("given", [["out/good", "out/bad"], ["out"], ["out/*"], ["out/good/status.json", "out"]])
def test_outputs_are_named_by_folder_parent_or_pattern(
    outputs: Path, capsys: ANY, monkeypatch: pytest.MonkeyPatch, given: list[str]
):
    monkeypatch.chdir(outputs.parent)
    ran = call(capsys, "status", *given, "--json")

    assert ran.code == ran.document["exit_code"] == 1
    assert states(ran.document) == {"good": "ended", "bad": "ended"}
    bad = next(one for one in ran.document["outputs"] if one["output"] == "out/bad")
    assert (bad["steps"], bad["findings"], bad["rules"]) == (2, 1, {"IssuesFound": 1})
    assert (bad["first_finding"]["rule_configuration"], bad["first_finding"]["step"]) == ("VanishingGradient", 1)


def test_people_get_a_table(outputs: Path, capsys: ANY):
    ran = call(capsys, "status", outputs)
    lines = {line.split()[0]: line for line in ran.out.splitlines() if line.strip()}

    assert ran.code == 1
    assert "error: VanishingGradient at step 1" in lines["bad"]
    assert "1 NoIssuesFound" in lines["good"]
    assert ran.out.splitlines()[-1] == "2 outputs: 2 ended"


@pytest.mark.parametrize(
    ("name", "more", "code"),
    [("good", [], 0), ("bad", [], 1), ("bad", ["--fail-on", "critical"], 0), ("bad", ["--exit-zero"], 0)],
)
def test_the_exit_code_is_that_of_the_verdict(outputs: Path, capsys: ANY, name: str, more: list[str], code: int):
    assert call(capsys, "status", outputs / name, *more).code == code


def test_a_job_that_is_running_is_no_error(outputs: Path, capsys: ANY):
    change(outputs / "good", ended_at=None, ended_because=None, rule={"RuleEvaluationStatus": "InProgress"})
    ran = call(capsys, "status", outputs / "good", "--json")

    assert (ran.code, states(ran.document)) == (0, {"good": "running"})


def test_a_job_that_does_not_write_any_more_is_lost(outputs: Path, capsys: ANY):
    change(outputs / "good", ended_at=None, ended_because=None, updated_at="2024-01-01T00:00:00.000Z")
    ran = call(capsys, "status", outputs / "good", "--json")

    assert (ran.code, states(ran.document)) == (3, {"good": "lost"})
    assert "lost since 2024-01-01" in call(capsys, "status", outputs / "good").out


def test_a_rule_in_error_is_exit_3_and_a_finding_elsewhere_comes_before_it(outputs: Path, capsys: ANY):
    change(outputs / "good", rule={"RuleEvaluationStatus": "Error", "StatusDetails": "ClientError: x"})

    assert call(capsys, "status", outputs / "good").code == 3
    assert call(capsys, "status", outputs).code == 1


@pytest.mark.parametrize("content", ["{", "{}x", '{"schema": 2}', "[]"])
def test_a_status_that_is_not_ours_is_exit_2_and_the_others_are_shown(outputs: Path, capsys: ANY, content: str):
    (outputs / "good" / "status.json").write_text(content)
    ran = call(capsys, "status", outputs, "--exit-zero", "--json")

    assert ran.code == 2
    assert states(ran.document) == {"good": "unreadable", "bad": "ended"}
    assert "was not written by rule-evaluator" in call(capsys, "status", outputs).out


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("nowhere", "does not exist; name the output of run, wrap or watch"),
        ("trials", "holds no status.json, nor do folders in it; name the output of run, wrap or watch, or a folder of"),
        ("trials/*", "no folder that matches holds a status.json"),
    ],
)
def test_a_path_without_outputs_is_exit_2(outputs: Path, capsys: ANY, given: str, what: str):
    ran = call(capsys, "status", outputs.parent / given, outputs / "good")

    assert ran.code == 2
    assert what in ran.out
    assert "1 NoIssuesFound" in ran.out


def test_wrong_options_are_said_at_once(outputs: Path, capsys: ANY):
    ran = call(capsys, "status", outputs, "--fail-on", "bad")

    assert ran.code == 2
    assert ran.err.startswith("--fail-on: 'bad' does not fit; expected one of critical")


def test_outputs_on_s3_are_read_over_one_client(
    outputs: Path, upload: Callable[[Path, str], str], capsys: ANY, monkeypatch: pytest.MonkeyPatch
):
    from evaluator.storage import _s3_connection  # noqa: PLC0415

    uri = upload(outputs, "many")
    made: list[str] = []
    real = _s3_connection.make_client

    def make(where: str) -> object:
        made.append(where)
        return real(where)

    monkeypatch.setattr(_s3_connection, "make_client", make)

    for given in (uri, f"{uri}/*", f"{uri}/good"):
        made.clear()
        ran = call(capsys, "status", given, "--json")
        assert set(states(ran.document).values()) == {"ended"}
        assert len(made) == 1


@pytest.mark.parametrize(
    ("given", "names"),
    [(["out"], ["bad", "good"]), (["out/good"], ["out/good"]), (["out/good", "other/x"], ["out/good", "other/x"])],
)
def test_names_leave_out_the_folders_that_all_share(
    outputs: Path, capsys: ANY, monkeypatch: pytest.MonkeyPatch, given: list[str], names: list[str]
):
    monkeypatch.chdir(outputs.parent)

    assert [one["name"] for one in call(capsys, "status", *given, "--json").document["outputs"]] == names


def test_names_cannot_steer_the_terminal(tmp_path: Path, outputs: Path, capsys: ANY):
    (outputs / "good").rename(outputs / "\x1b[2J")
    ran = call(capsys, "status", outputs)

    assert "\x1b" not in ran.out
    assert "\\x1b[2J" in ran.out
