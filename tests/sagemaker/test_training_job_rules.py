"""status --training-job: all rules beside a training job, the hosted ones and ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.actions.receivers import Receiver, aws_error, receiver
from tests.commands.program import HEALTHY, TINY, call, small_trial

NAME = "My-Job"
ANY = pytest.CaptureFixture[str]
ARN = "arn:aws:sagemaker:eu-central-1:111122223333:processing-job/my-job-lossnotdecreasing-1a2b3c4d"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.fixture
def sagemaker(bucket: str, aws: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """SageMaker's answers are written down here: the server of the other tests tells of no hosted rules."""
    with receiver() as one:
        aws.setenv("AWS_REGION", "eu-central-1")
        aws.setenv("AWS_ENDPOINT_URL_SAGEMAKER", one.url)
        yield one


def says(sagemaker: Receiver, bucket: str | None, *hosted: tuple[str, str, str | None]) -> None:
    """Let the training job have these hosted rules: name, status, details."""
    answer: dict[str, Any] = {
        "TrainingJobName": NAME,
        "TrainingJobArn": f"arn:aws:sagemaker:eu-central-1:111122223333:training-job/{NAME}",
        "TrainingJobStatus": "InProgress",
        "DebugRuleConfigurations": [
            {"RuleConfigurationName": name, "RuleEvaluatorImage": "x", "RuleParameters": {"rule_to_invoke": "Overfit"}}
            for name, _, _ in hosted
        ],
        "DebugRuleEvaluationStatuses": [
            {
                "RuleConfigurationName": name,
                "RuleEvaluationJobArn": ARN,
                "RuleEvaluationStatus": status,
                "LastModifiedTime": 1_700_000_000.0,
                **({} if details is None else {"StatusDetails": details}),
            }
            for name, status, details in hosted
        ],
    }
    if bucket is not None:
        answer["DebugHookConfig"] = {"S3OutputPath": f"s3://{bucket}/debug"}
    sagemaker.answers[:] = [(200, {}, json.dumps(answer).encode())]


@pytest.fixture
def ours(tmp_path: Path, capsys: ANY, upload: Callable[[Path, str], str]) -> Callable[[float], None]:
    """Puts an output of ours beside the tensors of the training job, and the files of a hosted rule."""

    def evaluate(last: float) -> None:
        trial = small_trial(tmp_path / "trial", [HEALTHY, last])
        rule = ("--rule", "VanishingGradient:parameter_set=sagemaker")
        call(capsys, "run", trial, *rule, "--output", tmp_path / "out" / "mine")
        (tmp_path / "out" / "LossNotDecreasing").mkdir()
        (tmp_path / "out" / "LossNotDecreasing" / "claim.json").write_text("{}")
        upload(tmp_path / "out", f"debug/{NAME}/rule-output")

    return evaluate


def test_hosted_rules_and_ours_are_told_together(sagemaker: Receiver, bucket: str, ours, capsys: ANY):
    ours(TINY)
    says(sagemaker, bucket, ("LossNotDecreasing", "NoIssuesFound", None), ("mine too", "InProgress", None))
    ran = call(capsys, "status", "--training-job", NAME, "--json")
    document = ran.document
    rules = [(one["from"], one["RuleConfigurationName"], one["RuleEvaluationStatus"])
             for one in document["DebugRuleEvaluationStatuses"]]  # fmt: skip
    output = f"s3://{bucket}/debug/{NAME}/rule-output/mine"

    assert ran.code == document["exit_code"] == 1
    assert (document["TrainingJobName"], document["TrainingJobStatus"]) == (NAME, "InProgress")
    assert rules == [
        ("hosted", "LossNotDecreasing", "NoIssuesFound"),
        ("hosted", "mine too", "InProgress"),
        (output, "VanishingGradient", "IssuesFound"),
    ]
    assert [one["output"] for one in document["outputs"]] == [output]
    hosted = document["DebugRuleEvaluationStatuses"][0]
    assert (hosted["Rule"], hosted["RuleEvaluationJobArn"]) == ("Overfit", ARN)
    assert hosted["LastModifiedTime"].startswith("2023-11-14T22:13:20")


def test_people_get_a_line_for_each_rule(sagemaker: Receiver, bucket: str, ours, capsys: ANY):
    ours(TINY)
    said = "RuleEvaluationConditionMet: Evaluation of the rule Overfit at step 7 resulted in the condition being met\n"
    says(sagemaker, bucket, ("LossNotDecreasing", "IssuesFound", said))
    ran = call(capsys, "status", "--training-job", NAME)
    lines = ran.out.splitlines()

    assert lines[0] == f"training job {NAME}: InProgress"
    assert any("LossNotDecreasing" in line and "IssuesFound" in line and "hosted" in line for line in lines)
    assert any("VanishingGradient" in line and "rule-output/mine" in line and "step 1" in line for line in lines)
    assert lines[-1] == "1 output: 1 ended"


@pytest.mark.parametrize(
    ("status", "more", "code"),
    [
        ("NoIssuesFound", [], 0),
        ("InProgress", [], 0),
        ("Stopped", [], 0),
        ("Error", [], 3),
        ("IssuesFound", [], 1),
        ("IssuesFound", ["--exit-zero"], 0),
        ("IssuesFound", ["--fail-on", "critical"], 0),
    ],
)
def test_the_exit_code_is_that_of_hosted_rules_too(sagemaker: Receiver, capsys: ANY, status, more, code):
    says(sagemaker, None, ("LossNotDecreasing", status, None))

    assert call(capsys, "status", "--training-job", NAME, *more).code == code


def test_a_healthy_run_of_both_is_0(sagemaker: Receiver, bucket: str, ours, capsys: ANY):
    ours(HEALTHY)
    says(sagemaker, bucket, ("LossNotDecreasing", "NoIssuesFound", None))

    assert call(capsys, "status", "--training-job", NAME).code == 0


def test_a_training_job_without_rules_says_so(sagemaker: Receiver, bucket: str, capsys: ANY):
    says(sagemaker, bucket)
    ran = call(capsys, "status", "--training-job", NAME)

    assert ran.code == 0
    assert ran.out.splitlines()[1] == "no rules: neither hosted ones, nor an output of ours beside its tensors"


def test_an_output_of_ours_that_cannot_be_read_is_exit_2(sagemaker: Receiver, bucket: str, put, capsys: ANY):
    put(f"debug/{NAME}/rule-output/mine/status.json", b"nonsense")
    says(sagemaker, bucket, ("LossNotDecreasing", "NoIssuesFound", None))
    ran = call(capsys, "status", "--training-job", NAME)

    assert ran.code == 2
    assert "was not written by rule-evaluator" in ran.out


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        (
            aws_error("ValidationException", "Requested resource not found."),
            "there is none of that name in eu-c",
        ),
        (aws_error("AccessDeniedException", "no"), "permission sagemaker:DescribeTrainingJob"),
    ],
)
def test_a_training_job_that_is_not_told_is_exit_2(sagemaker: Receiver, capsys: ANY, answer, mistake):
    sagemaker.answers[:] = [answer]
    ran = call(capsys, "status", "--training-job", NAME)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"training job '{NAME}': ")
    assert mistake in ran.err


def test_outputs_or_a_training_job_are_given_and_not_both(capsys: ANY, tmp_path):
    for given in ([], [tmp_path, "--training-job", NAME]):
        ran = call(capsys, "status", *given)
        assert ran.code == 2
        assert "give outputs, or --training-job NAME" in ran.err
