"""container: the contract of a SageMaker processing job, on a folder instead of /opt/ml."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.commands import container
from evaluator.loop import Loop
from evaluator.output_folder import OutputFolder
from evaluator.storage.file import FileStore
from evaluator.testing import FakeClock
from tests.commands.program import (
    HEALTHY,
    TINY,
    call,
    check_outputs,
    finish,
    log_lines,
    save,
    small_trial,
    start,
    wait_for,
    writer,
)
from tests.s3.jobs import Output
from tests.s3.traffic import Wrong

RULE = {"rule_to_invoke": "VanishingGradient"}
ARN = "arn:aws:sagemaker:eu-central-1:123456789012:processing-job/x"


@pytest.fixture
def _one_rule(monkeypatch: pytest.MonkeyPatch):
    for variable, value in {**RULE, "RULE_EVALUATOR_FOLLOW": "false"}.items():
        monkeypatch.setenv(variable, value)


def output(root: Path) -> Path:
    return root / "processing" / "output" / "rule"


def message(root: Path) -> str:
    return (root / "output" / "message").read_text()


def tensors(root: Path, *g1: float) -> Path:
    return small_trial(root / "processing" / "input" / "tensors", g1)


@pytest.mark.usefixtures("_one_rule")
def test_one_rule_of_the_environment_writes_directly_into_the_output_folder(tmp_path, capsys):
    tensors(tmp_path, HEALTHY, TINY)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "processingjobconfig.json").write_text(json.dumps({"ProcessingJobArn": ARN}))

    ran = call(capsys, "container", "--ml-root", tmp_path)

    status = check_outputs(output(tmp_path))
    assert (ran.code, ran.out) == (1, "")
    assert message(tmp_path).startswith("RuleEvaluationConditionMet: ")
    assert (output(tmp_path) / "findings.jsonl").exists()
    assert [rule["RuleEvaluationJobArn"] for rule in status["DebugRuleEvaluationStatuses"]] == [ARN]
    assert all(json.loads(line)["event"] for line in ran.err.splitlines())


@pytest.mark.usefixtures("_one_rule")
def test_a_quiet_run_leaves_no_message(tmp_path, capsys):
    tensors(tmp_path, HEALTHY)

    assert call(capsys, "container", "--ml-root", tmp_path).code == 0
    assert not (tmp_path / "output" / "message").exists()


def test_mistakes_are_in_status_message_and_log(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("rule_to_invoke", "VanishinGradient")
    monkeypatch.setenv("RULE_EVALUATOR_LATE_GRACE", "soon")

    ran = call(capsys, "container", "--ml-root", tmp_path)

    status = check_outputs(output(tmp_path))
    (rule,) = status["DebugRuleEvaluationStatuses"]
    assert ran.code == 2
    assert (rule["RuleConfigurationName"], rule["RuleEvaluationStatus"]) == ("VanishinGradient", "Error")
    assert rule["StatusDetails"].startswith("ClientError: environment: rule 'VanishinGradient' is not known; ")
    assert "RULE_EVALUATOR_LATE_GRACE" in rule["StatusDetails"]
    assert status["job"]["ended_because"] == "failed"
    assert [line.split(": ")[0] for line in message(tmp_path).splitlines()] == ["ClientError", "ClientError"]
    assert [json.loads(line)["event"] for line in ran.err.splitlines()] == ["input_is_wrong", "input_is_wrong"]


def test_every_configured_rule_is_in_error(tmp_path, capsys):
    folder = tmp_path / "processing" / "input" / "config"
    folder.mkdir(parents=True)
    rules = [{"use": "VanishingGradient", "name": "mine", "treshold": 1}, {"use": "vanishinggradient"}, {"use": "No"}]
    (folder / "job.json").write_text(json.dumps({"rule": rules}))

    assert call(capsys, "container", "--ml-root", tmp_path).code == 2
    assert [
        (rule["RuleConfigurationName"], rule["Rule"], rule["RuleEvaluationStatus"])
        for rule in check_outputs(output(tmp_path))["DebugRuleEvaluationStatuses"]
    ] == [
        ("mine", "VanishingGradient", "Error"),
        ("vanishinggradient", "VanishingGradient", "Error"),
        ("No", "No", "Error"),
    ]


@pytest.mark.usefixtures("_one_rule")
def test_a_trial_that_is_not_there_is_in_the_status_too(tmp_path, capsys):
    ran = call(capsys, "container", "--ml-root", tmp_path)

    (rule,) = check_outputs(output(tmp_path))["DebugRuleEvaluationStatuses"]
    assert (ran.code, rule["RuleEvaluationStatus"]) == (2, "Error")
    assert message(tmp_path).startswith("ClientError: ")


def test_the_status_of_an_unfinished_job_is_not_replaced(tmp_path, capsys, monkeypatch):
    tensors(tmp_path, HEALTHY)
    monkeypatch.setenv("rule_to_invoke", "VanishingGradient")
    monkeypatch.setenv("RULE_EVALUATOR_LATE_GRACE", "0")
    output(tmp_path).mkdir(parents=True)
    path = output(tmp_path) / "status.json"
    path.write_text(json.dumps({"schema": 1, "trial": "elsewhere"}))

    assert call(capsys, "container", "--ml-root", tmp_path).code == 2
    assert json.loads(path.read_text()) == {"schema": 1, "trial": "elsewhere"}
    assert "unfinished job" in message(tmp_path)


@pytest.mark.usefixtures("_one_rule")
def test_an_output_that_is_in_use_is_exit_2_and_left_alone(tmp_path, capsys):
    tensors(tmp_path, HEALTHY)
    other = OutputFolder(FileStore(output(tmp_path)), FakeClock())
    other.prepare()

    ran = call(capsys, "container", "--ml-root", tmp_path)
    other.release()

    assert ran.code == 2
    assert not (output(tmp_path) / "status.json").exists()
    assert "another evaluator" in message(tmp_path)


@pytest.mark.usefixtures("_one_rule")
def test_a_message_that_cannot_be_written_is_a_warning(tmp_path, capsys):
    (tmp_path / "output").touch()

    ran = call(capsys, "container", "--ml-root", tmp_path)

    assert ran.code == 2
    assert "message_not_written" in [json.loads(line)["event"] for line in ran.err.splitlines()]


@pytest.mark.usefixtures("_one_rule")
def test_a_defect_is_exit_4_with_a_message(tmp_path, capsys, monkeypatch):
    def stumble(self):
        raise RuntimeError("a secret")

    tensors(tmp_path, HEALTHY)
    monkeypatch.setattr(Loop, "read_once", stumble)

    ran = call(capsys, "container", "--ml-root", tmp_path)

    assert ran.code == 4
    assert message(tmp_path).startswith("InternalServerError: ")
    assert "a secret" not in message(tmp_path) + ran.err
    assert (output(tmp_path) / "traceback.txt").exists()
    check_outputs(output(tmp_path))


@pytest.mark.usefixtures("_one_rule")
def test_a_wrong_word_on_its_command_line_is_told_where_mistakes_are_told(tmp_path, capsys):
    tensors(tmp_path, HEALTHY)

    assert call(capsys, "container", "--ml-root", tmp_path, "--after-end", "stay").code == 2
    assert message(tmp_path) == "ClientError: --after-end: 'stay' does not fit; expected exit or wait"


def test_sigterm_drains(tmp_path):
    one = writer(tmp_path / "processing" / "input" / "tensors")
    save(one, 0, HEALTHY)
    process = start(
        *("container", "--ml-root", tmp_path),
        environment={**RULE, "RULE_EVALUATOR_POLL_MIN": "0.05", "RULE_EVALUATOR_POLL_MAX": "0.1"},
    )
    lines = log_lines(process)
    wait_for(lines, "job_started")
    save(one, 1, HEALTHY)

    process.terminate()
    ran = finish(process)

    status = check_outputs(output(tmp_path))
    (rule,) = status["DebugRuleEvaluationStatuses"]
    assert (ran.code, status["job"]["ended_because"]) == (0, "stop_signal")
    assert (rule["RuleEvaluationStatus"], rule["Evaluation"]["evaluated"]) == ("Stopped", 2)
    assert not (tmp_path / "output" / "message").exists()


@pytest.mark.usefixtures("_one_rule")
def test_an_output_on_storage_that_is_not_known_makes_no_folder(tmp_path, capsys, monkeypatch):
    tensors(tmp_path, HEALTHY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RULE_EVALUATOR_OUTPUT", "gs://bucket/out")

    assert call(capsys, "container", "--ml-root", tmp_path).code == 2
    assert message(tmp_path).startswith("ClientError: 'gs://bucket/out': storage 'gs://' is not part of this version")
    assert not (tmp_path / "gs:").exists()


@pytest.mark.usefixtures("_one_rule")
def test_the_container_writes_to_s3_where_that_is_its_output(tmp_path, capsys, monkeypatch, bucket):
    tensors(tmp_path, TINY, HEALTHY)
    monkeypatch.setenv("RULE_EVALUATOR_OUTPUT", f"s3://{bucket}/out")
    ran = call(capsys, "container", "--ml-root", tmp_path)

    # the environment names one rule, whose files lie directly in the output
    assert (ran.code, Output(f"s3://{bucket}/out").keys) == (1, ["findings.jsonl", "status.json"]), ran.err
    assert message(tmp_path).startswith("RuleEvaluationConditionMet: ")


@pytest.mark.usefixtures("_one_rule")
def test_what_is_wrong_with_the_configuration_is_told_on_s3_too(tmp_path, capsys, monkeypatch, bucket):
    tensors(tmp_path, HEALTHY)
    monkeypatch.setenv("RULE_EVALUATOR_OUTPUT", f"s3://{bucket}/out")
    monkeypatch.setenv("RULE_EVALUATOR_LATE_GRACE", "soon")
    ran = call(capsys, "container", "--ml-root", tmp_path)
    (rule,) = Output(f"s3://{bucket}/out").status["DebugRuleEvaluationStatuses"]

    assert (ran.code, rule["RuleEvaluationStatus"]) == (2, "Error")
    assert "RULE_EVALUATOR_LATE_GRACE: 'soon' does not fit" in rule["StatusDetails"]


@pytest.mark.usefixtures("_one_rule")
def test_an_output_on_s3_that_may_not_be_written_is_exit_2_and_said_in_the_message(
    tmp_path, capsys, monkeypatch, bucket, s3
):
    tensors(tmp_path, HEALTHY)
    monkeypatch.setenv("RULE_EVALUATOR_OUTPUT", f"s3://{bucket}/out")
    s3.fault = lambda asked: Wrong(403, "AccessDenied") if asked.kind == "PUT" else None

    assert call(capsys, "container", "--ml-root", tmp_path).code == 2
    assert message(tmp_path).startswith(f"ClientError: s3://{bucket}/out/.lock: may not be written (AccessDenied)")


def test_a_defect_in_reading_the_configuration_has_a_message_too(tmp_path, capsys, monkeypatch):
    def stumble(*_):
        raise RuntimeError("a secret")

    monkeypatch.setattr(container, "read_container", stumble)

    assert call(capsys, "container", "--ml-root", tmp_path).code == 4
    assert message(tmp_path).startswith("InternalServerError: ")
