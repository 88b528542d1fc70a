"""Actions in whole jobs: asked for, done once, kept in the status, and never what a job waits for or dies of."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.actions.receivers import Receiver, operations, receiver
from tests.commands.program import (
    FAST,
    HEALTHY,
    TINY,
    call,
    check_outputs,
    clean_up,
    findings,
    finish,
    log_lines,
    run,
    save,
    small_trial,
    start,
    wait_for,
    writer,
)

RULE = ("--rule", "VanishingGradient:parameter_set=sagemaker")
FOLLOW = ("--follow", *(f"--set={setting}" for setting in FAST))
URL = "RECEIVER_WEBHOOK"
WEBHOOK = ("--action", f"webhook:url_variable={URL}")
ANY = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()
    clean_up()


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as one:
        one.url += "/very/secret"
        yield one


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that writes what it gets into `got`, one line each."""
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\ncat >> '{tmp_path / 'got'}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def actions_of(output: Path) -> list[dict[str, Any]]:
    """The actions of the first rule, in a status that is as its schema says."""
    found: list[dict[str, Any]] = check_outputs(output)["DebugRuleEvaluationStatuses"][0]["Actions"]
    return found


def test_a_finding_is_sent_as_it_is_written_and_the_status_says_so(tmp_path, capsys: ANY, monkeypatch, hook: Receiver):
    monkeypatch.setenv(URL, hook.url)
    ran = call(capsys, "run", small_trial(tmp_path / "trial"), *RULE, *WEBHOOK, "--output", tmp_path / "out")
    (sent,) = hook.received
    (finding,) = findings(tmp_path / "out")
    (action,) = actions_of(tmp_path / "out")

    assert ran.code == 1
    assert {name: value for name, value in sent.document.items() if name != "recorded_at"} == finding
    assert (action["action"], action["finding"], action["result"]) == ("webhook", finding["id"], "done")
    assert action["details"] == {"status": 200, "tries": 1}


def test_the_url_is_in_no_output_and_no_log(tmp_path, capsys: ANY, monkeypatch, hook: Receiver):
    hook.answers[:] = [404]
    monkeypatch.setenv(URL, hook.url)
    ran = call(capsys, "run", small_trial(tmp_path / "trial"), *RULE, *WEBHOOK, "--output", tmp_path / "out", "--json")
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()).decode()

    assert "the receiver answers 404" in ran.out
    assert "very/secret" not in ran.out + ran.err + written
    assert hook.url.split("/")[2] not in ran.out + ran.err + written


def test_without_being_asked_for_nothing_is_done(tmp_path, capsys: ANY, monkeypatch, hook: Receiver):
    monkeypatch.setenv(URL, hook.url)
    call(capsys, "run", small_trial(tmp_path / "trial"), *RULE, "--output", tmp_path / "out")

    assert (hook.received, actions_of(tmp_path / "out")) == ([], [])
    assert not list((tmp_path / "out").rglob("actions.jsonl"))


def test_a_healthy_run_sets_nothing_off(tmp_path, capsys: ANY, monkeypatch, hook: Receiver):
    monkeypatch.setenv(URL, hook.url)
    trial = small_trial(tmp_path / "trial", [HEALTHY] * 3)

    assert call(capsys, "run", trial, *RULE, *WEBHOOK, "--output", tmp_path / "out").code == 0
    assert hook.received == []


@pytest.mark.parametrize(("severity", "times"), [("warning", 0), ("error", 1), ("critical", 1)])
def test_a_finding_that_is_not_severe_enough_sets_nothing_off(tmp_path, capsys: ANY, program, severity, times):
    trial = small_trial(tmp_path / "trial")
    rule = ("--rule", f"VanishingGradient:parameter_set=sagemaker,severity={severity}")
    call(capsys, "run", trial, *rule, "--action", f"command:argv={program}", "--output", tmp_path / "out")

    assert (tmp_path / "got").exists() == bool(times)


def test_one_action_for_each_issue_and_none_when_it_is_over(tmp_path, capsys: ANY, program):
    trial = small_trial(tmp_path / "trial", [HEALTHY, TINY, TINY, HEALTHY, TINY])
    rule = ("--rule", "VanishingGradient:parameter_set=sagemaker,on_finding=continue")
    call(capsys, "run", trial, *rule, "--action", f"command:argv={program}", "--output", tmp_path / "out")
    got = [json.loads(line) for line in (tmp_path / "got").read_text().splitlines()]

    assert [(one["step"], one["event"], one["last_healthy_step"]) for one in got] == [(1, "met", 0), (4, "met", 3)]
    assert [one["event"] for one in findings(tmp_path / "out")] == ["met", "cleared"] * 2


def test_an_action_of_a_rule_is_set_off_by_that_rule(tmp_path, capsys: ANY, program):
    config = tmp_path / "job.toml"
    config.write_text(
        f"""
        [[rule]]
        use = "VanishingGradient"
        parameter_set = "sagemaker"
        [[rule]]
        use = "VanishingGradient"
        name = "mine"
        parameter_set = "sagemaker"
        actions = [{{use = "command", argv = ["{program}"]}}]
        """
    )
    call(capsys, "run", small_trial(tmp_path / "trial"), "--config", config, "--output", tmp_path / "out")
    got = [json.loads(line) for line in (tmp_path / "got").read_text().splitlines()]

    assert [one["rule_configuration"] for one in got] == ["mine"]


def test_a_failed_action_is_a_note_and_changes_no_verdict(tmp_path, capsys: ANY):
    trial = small_trial(tmp_path / "trial")
    ran = call(capsys, "run", trial, *RULE, "--action", "command:argv=false", "--output", tmp_path / "out")
    status = check_outputs(tmp_path / "out")

    assert (ran.code, status["job"]["notes"]) == (1, ["action command: failed: 'false': exit code 1"])
    assert [one["result"] for one in actions_of(tmp_path / "out")] == ["failed"]
    assert "note: action command: failed: 'false': exit code 1" in ran.out


def test_a_job_that_begins_anew_does_everything_anew(tmp_path, capsys: ANY, program):
    trial = small_trial(tmp_path / "trial")
    for _ in range(2):
        call(capsys, "run", trial, *RULE, "--action", f"command:argv={program}", "--output", tmp_path / "out")

    assert len((tmp_path / "got").read_text().splitlines()) == 2
    assert len((tmp_path / "out" / "VanishingGradient" / "actions.jsonl").read_text().splitlines()) == 1


def test_a_job_that_is_started_again_after_it_was_killed_does_nothing_twice(tmp_path, program):
    one = writer(tmp_path / "trial")
    save(one, 0)
    save(one, 1, TINY)
    rule = ("--rule", "VanishingGradient:parameter_set=sagemaker,on_finding=continue")
    given = (tmp_path / "trial", *rule, *FOLLOW, "--action", f"command:argv={program}", "--output", tmp_path / "out")
    process = start("run", *given)
    wait_for(log_lines(process), "action_done")
    wait_for_text(process, tmp_path / "out" / "status.json", '"result": "done"')
    process.kill()
    finish(process)
    save(one, 2)
    save(one, 3, TINY)
    one.close()
    ran = run("run", *given)
    got = [json.loads(line)["step"] for line in (tmp_path / "got").read_text().splitlines()]

    assert (ran.code, got) == (1, [1, 3])
    assert [one["result"] for one in actions_of(tmp_path / "out")] == ["done", "done"]


def wait_for_text(process: Any, path: Path, text: str) -> None:
    """Wait until a file of the running program holds this."""
    while text not in path.read_text():
        assert process.poll() is None


def test_a_receiver_that_hangs_holds_up_no_evaluation_and_no_stop(tmp_path, hook: Receiver):
    hook.answers[:] = [None]
    one = writer(tmp_path / "trial")
    save(one, 0)
    save(one, 1, TINY)
    rule = ("--rule", "VanishingGradient:parameter_set=sagemaker,on_finding=continue")
    process = start(
        *("run", tmp_path / "trial", *rule, *FOLLOW, "--output", tmp_path / "out"),
        *("--action", f"webhook:url_variable={URL},timeout=60"),
        environment={URL: hook.url},
    )
    lines = log_lines(process)
    wait_for(lines, "condition_met", step=1)
    save(one, 2)
    save(one, 3, TINY)
    wait_for(lines, "condition_met", step=3)
    process.terminate()
    ran = finish(process)

    assert ran.code == 1
    assert [(one["result"], one["reason"]) for one in actions_of(tmp_path / "out")] == [
        ("failed", "had not ended when the job did")
    ] * 2


def test_a_stop_file_ends_a_script_that_our_writer_saves(tmp_path):
    """As a script outside of SageMaker does: it looks whether it should stop after each step."""
    one = writer(tmp_path / "trial")
    save(one, 0)
    given = ("--action", "stop_file", "--output", tmp_path / "out")
    process = start("run", tmp_path / "trial", *RULE, *FOLLOW, *given)
    wait_for(log_lines(process), "job_started")
    before = one.should_stop
    save(one, 1, TINY)
    ran = finish(process)

    assert (before, ran.code) == (False, 1)
    assert json.loads((tmp_path / "trial" / "STOP").read_text())["rule"] == "VanishingGradient"
    assert writer(tmp_path / "trial").should_stop


def test_a_container_stops_its_training_job(tmp_path, capsys: ANY, aws: pytest.MonkeyPatch):
    small_trial(tmp_path / "processing" / "input" / "tensors")
    text = '[{\\"name\\": \\"stoptraining\\", \\"training_job_prefix\\": \\"My-Job-2024\\"}]'
    environment = {
        "rule_to_invoke": "VanishingGradient",
        "action_json": text,
        "AWS_REGION": "eu-central-1",
        "RULE_EVALUATOR_FOLLOW": "false",
    }
    with receiver() as sagemaker:
        for name, value in {**environment, "AWS_ENDPOINT_URL_SAGEMAKER": sagemaker.url}.items():
            aws.setenv(name, value)
        ran = call(capsys, "container", "--ml-root", tmp_path)
    output = tmp_path / "processing" / "output" / "rule"

    assert ran.code == 1
    assert operations(sagemaker.received) == [("StopTrainingJob", {"TrainingJobName": "My-Job-2024"})]
    assert actions_of(output)[0]["details"] == {"training_job": "My-Job-2024"}
    assert check_outputs(output)["DebugRuleEvaluationStatuses"][0]["ignored_parameters"] == []
    assert (output / "actions.jsonl").exists()


def test_what_came_of_actions_is_kept_on_s3_too(tmp_path, capsys: ANY, bucket: str, put: Any):
    trial = small_trial(tmp_path / "trial")
    ran = call(capsys, "run", trial, *RULE, "--action", "command:argv=true", "--output", f"s3://{bucket}/out", "--json")

    assert [one["result"] for one in ran.document["DebugRuleEvaluationStatuses"][0]["Actions"]] == ["done"]


def test_a_file_of_that_name_that_is_not_ours_refuses_the_output(tmp_path, capsys: ANY):
    (tmp_path / "out" / "VanishingGradient").mkdir(parents=True)
    (tmp_path / "out" / "VanishingGradient" / "actions.jsonl").write_text("somebody else's")
    trial = small_trial(tmp_path / "trial")
    ran = call(capsys, "run", trial, *RULE, "--action", "stop_file", "--output", tmp_path / "out")

    assert ran.code == 2
    assert "was not written by rule-evaluator" in ran.err
