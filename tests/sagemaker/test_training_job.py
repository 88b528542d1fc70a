"""Asking how a training job stands: on a real server, and what becomes of answers that do not come."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore import exceptions as boto

from evaluator.errors import InputError
from evaluator.sagemaker.training_job import (
    ASK_EVERY,
    LONGEST_PAUSE,
    NoAnswer,
    TrainingJob,
    _no_answer,
    sagemaker_status,
)
from evaluator.testing import FakeClock
from tests.commands.program import FAST, run, save, writer

REGION = "eu-central-1"
IMAGE = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/x:1"


def at_once(work: Callable[[], None]) -> None:
    work()


@pytest.fixture
def sagemaker(s3_server: str, aws: pytest.MonkeyPatch) -> Any:
    """A client of the server, which the environment names."""
    aws.setenv("AWS_ENDPOINT_URL", s3_server)
    return boto3.session.Session().client("sagemaker", region_name=REGION)


def create(sagemaker: Any, name: str) -> None:
    sagemaker.create_training_job(
        TrainingJobName=name,
        RoleArn="arn:aws:iam::123456789012:role/SomeRoleName",
        AlgorithmSpecification={"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        OutputDataConfig={"S3OutputPath": "s3://bucket/out"},
        ResourceConfig={"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 10},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
    )


def test_a_server_says_how_a_training_job_stands(sagemaker):
    create(sagemaker, "job-1")
    said = sagemaker.describe_training_job(TrainingJobName="job-1")["TrainingJobStatus"]

    assert sagemaker_status(REGION)("job-1") == said


def test_a_followed_run_ends_with_its_training_job(sagemaker, s3_server, tmp_path):
    """No end marker: only SageMaker knows. The server's training jobs are over as soon as they are made."""
    create(sagemaker, "job-3")
    save(writer(tmp_path / "trial"), 0)
    ran = run(
        *("run", tmp_path / "trial", "--follow", "--training-job", "job-3", "--json", "--output", tmp_path / "out"),
        *("--rule", "VanishingGradient:parameter_set=sagemaker"),
        *(f"--set={setting}" for setting in FAST),
        environment={"AWS_ENDPOINT_URL": s3_server, "AWS_REGION": REGION},
    )

    job = ran.document["job"]
    assert (ran.code, job["ended_because"], job["steps"]["complete"]) == (0, "training_job_status", 1)
    assert job["notes"] == ["training job 'job-3': Completed"]


def test_a_training_job_that_is_not_there_is_no_answer(sagemaker):
    with pytest.raises(NoAnswer, match="no such training job"):
        sagemaker_status(REGION)("job-2")


def test_a_server_that_is_not_there_is_no_answer(aws):
    aws.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    with pytest.raises(NoAnswer, match="SageMaker does not answer"):
        sagemaker_status(REGION)("job-1")


def test_without_a_region_nothing_is_asked(aws):
    with pytest.raises(NoAnswer, match="in which region it is, is not known") as refusal:
        sagemaker_status(None)("job-1")

    assert refusal.value.would_be_right == "set AWS_REGION"


def test_without_credentials_nothing_is_asked(aws):
    aws.delenv("AWS_ACCESS_KEY_ID")
    aws.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(NoAnswer, match="no usable credentials"):
        sagemaker_status(REGION)("job-1")


def test_without_boto3_the_extra_is_named(monkeypatch):
    imported = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "boto3":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)

    with pytest.raises(InputError, match=r"pip install 'rule-evaluator\[s3\]'"):
        sagemaker_status(REGION)


@pytest.mark.parametrize(
    ("code", "what", "right"),
    [
        ("AccessDeniedException", "may not be asked for", "permission sagemaker:DescribeTrainingJob"),
        ("ValidationException", "no such training job", "the name of a training job in this account and region"),
        ("ThrottlingException", "too busy to answer (ThrottlingException)", ""),
        ("ServiceUnavailable", "too busy to answer", ""),
        ("ExpiredTokenException", "refuses to tell its status (ExpiredTokenException: said)", ""),
    ],
)
def test_each_refusal_says_what_would_be_right(code, what, right):
    error = boto.ClientError({"Error": {"Code": code, "Message": "said"}}, "DescribeTrainingJob")
    said = _no_answer(error)

    assert what in said.what
    assert said.would_be_right == right


class Answers:
    """A service that gives these answers, one after the other, and the last one for ever."""

    def __init__(self, clock: FakeClock, *answers: str | Exception) -> None:
        self._clock = clock
        self._answers = list(answers)
        self.asked: list[float] = []

    def __call__(self, name: str) -> str:
        self.asked.append(self._clock.monotonic())
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def watch(clock: FakeClock, answers: Answers, seconds: float) -> TrainingJob:
    """Ask every second for so long."""
    job = TrainingJob("job-1", clock, answers, at_once)
    while clock.monotonic() < seconds:
        job.over_at()
        clock.advance(1)
    return job


def test_it_is_asked_every_30_seconds_and_not_any_more_when_it_is_over():
    clock = FakeClock()
    answers = Answers(clock, "InProgress", "InProgress", "Stopping", "Stopped")
    job = watch(clock, answers, 1000)

    assert (job.over_at(), answers.asked) == (90, [0, 30, 60, 90])
    assert job.notes() == ["training job 'job-1': Stopped"]


def test_pauses_grow_while_nothing_is_answered_and_are_short_again_after():
    clock = FakeClock()
    answers = Answers(clock, *[NoAnswer("x")] * 5, "InProgress")
    watch(clock, answers, 1300)
    pauses = [later - earlier for earlier, later in zip(answers.asked, answers.asked[1:], strict=False)]

    assert pauses[:7] == [60, 120, 240, LONGEST_PAUSE, LONGEST_PAUSE, ASK_EVERY, ASK_EVERY]


def test_a_changed_reason_is_told_and_all_of_them_are_counted():
    clock = FakeClock()
    job = watch(clock, Answers(clock, NoAnswer("busy"), NoAnswer("gone", "come back"), "InProgress"), 300)
    (note,) = job.notes()

    assert note.startswith("training job 'job-1': gone; come back (2 of ")


def test_a_defect_in_asking_is_one_more_answer_that_did_not_come():
    clock = FakeClock()
    job = watch(clock, Answers(clock, RuntimeError("a secret"), "Failed"), 100)

    assert job.over_at() == 60
    assert "RuntimeError" in job.notes()[1]
    assert "a secret" not in job.notes()[1]


def test_an_answer_that_takes_long_holds_up_nothing_and_no_second_question_is_asked():
    clock = FakeClock()
    asked, go_on, answered = threading.Event(), threading.Event(), threading.Event()
    times: list[int] = []

    def describe(_: str) -> str:
        times.append(1)
        asked.set()
        assert go_on.wait(60)
        return "Completed"

    def aside(work: Callable[[], None]) -> None:
        def run() -> None:
            work()
            answered.set()

        threading.Thread(target=run, daemon=True).start()

    job = TrainingJob("job-1", clock, describe, aside)
    before = job.over_at()
    assert asked.wait(60)
    clock.advance(1000)
    meanwhile = job.over_at()
    go_on.set()
    assert answered.wait(60)

    assert (before, meanwhile, job.over_at(), len(times)) == (None, None, 1000, 1)
