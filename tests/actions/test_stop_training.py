"""Stopping a training job: a stand-in for SageMaker says what it was asked, and answers as the service does."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from evaluator.actions.base import NotDone, Surroundings
from evaluator.actions.stop_training import ACTION, StopTrainingParameters, check
from tests.actions.receivers import Receiver, aws_error, do, operations, receiver

NOT_FOUND = aws_error("ValidationException", "Requested resource not found.")
NOWHERE = Surroundings("/trials/one", region="eu-central-1")
NAME = "My-Job-2024"


def jobs(*names: str, more: str | None = None) -> tuple[int, dict[str, str], bytes]:
    found = [
        {
            "TrainingJobName": name,
            "TrainingJobArn": f"arn:aws:sagemaker:eu-central-1:111122223333:training-job/{name}",
            "CreationTime": 1.7e9,
            "TrainingJobStatus": "InProgress",
        }
        for name in names
    ]
    left = {} if more is None else {"NextToken": more}
    return 200, {}, json.dumps({"TrainingJobSummaries": found, **left}).encode()


@pytest.fixture
def sagemaker(aws: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as one:
        aws.setenv("AWS_ENDPOINT_URL_SAGEMAKER", one.url)
        yield one


def asked(one: Receiver) -> list[tuple[str, str | None]]:
    return [(name, given.get("TrainingJobName")) for name, given in operations(one.received)]


def test_a_training_job_of_that_name_is_stopped(sagemaker: Receiver):
    assert do(ACTION, around=NOWHERE, training_job=NAME) == {"training_job": NAME}
    assert asked(sagemaker) == [("StopTrainingJob", NAME)]


def test_the_job_that_is_followed_needs_no_name(sagemaker: Receiver):
    do(ACTION, around=Surroundings("/trials/one", training_job=NAME, region="eu-central-1"))

    assert asked(sagemaker) == [("StopTrainingJob", NAME)]


def test_a_prefix_that_is_a_whole_name_is_that_job_whatever_else_begins_so(sagemaker: Receiver):
    """The SDK gives the training job's own name, and only the permission to stop it is needed."""
    assert do(ACTION, around=NOWHERE, training_job_prefix=NAME) == {"training_job": NAME}
    assert asked(sagemaker) == [("StopTrainingJob", NAME)]


def test_a_prefix_keeps_its_case_and_finds_the_one_job_in_progress(sagemaker: Receiver):
    sagemaker.answers[:] = [NOT_FOUND, jobs("other-My-Job", more="t"), jobs(NAME), 200]
    details = do(ACTION, around=NOWHERE, training_job_prefix="My-Job")

    assert details == {"training_job": NAME}
    assert [name for name, _ in asked(sagemaker)] == [
        "StopTrainingJob",
        "ListTrainingJobs",
        "ListTrainingJobs",
        "StopTrainingJob",
    ]
    listed = operations(sagemaker.received)[1][1]
    assert (listed["NameContains"], listed["StatusEquals"]) == ("My-Job", "InProgress")


def test_of_several_none_is_stopped(sagemaker: Receiver):
    sagemaker.answers[:] = [NOT_FOUND, jobs("My-Job-1", "My-Job-2")]
    with pytest.raises(NotDone, match="2 training jobs in progress begin with 'My-Job', so none is stopped: My-Job-1"):
        do(ACTION, around=NOWHERE, training_job_prefix="My-Job")

    assert [name for name, _ in asked(sagemaker)] == ["StopTrainingJob", "ListTrainingJobs"]


def test_that_there_is_none_is_a_failure_and_not_silence(sagemaker: Receiver):
    sagemaker.answers[:] = [NOT_FOUND, jobs("my-job-1")]
    with pytest.raises(NotDone, match="no training job in progress in eu-central-1 has a name that begins with 'My-J"):
        do(ACTION, around=NOWHERE, training_job_prefix="My-Job")


def test_a_name_that_is_not_there_is_not_looked_for(sagemaker: Receiver):
    sagemaker.answers[:] = [NOT_FOUND]
    with pytest.raises(NotDone, match="StopTrainingJob is refused"):
        do(ACTION, around=NOWHERE, training_job=NAME)

    assert len(sagemaker.received) == 1


@pytest.mark.parametrize("status", ["Stopping", "Stopped", "Completed", "Failed"])
def test_a_job_that_is_over_needs_no_stop(sagemaker: Receiver, status: str):
    said = f"The request was rejected because the training job is in status {status}."
    sagemaker.answers[:] = [aws_error("ValidationException", said)]

    assert do(ACTION, around=NOWHERE, training_job=NAME) == {"training_job": NAME, "was": status}


def test_a_missing_permission_is_named(sagemaker: Receiver):
    sagemaker.answers[:] = [aws_error("AccessDeniedException", "no")]
    with pytest.raises(NotDone, match="permission sagemaker:StopTrainingJob"):
        do(ACTION, around=NOWHERE, training_job_prefix=NAME)


def test_throttling_is_tried_again(sagemaker: Receiver):
    sagemaker.answers[:] = [aws_error("ThrottlingException", "slow down"), 200]

    assert do(ACTION, around=NOWHERE, training_job=NAME) == {"training_job": NAME}


def test_without_a_region_nothing_is_asked(sagemaker: Receiver):
    with pytest.raises(NotDone, match="set AWS_REGION"):
        do(ACTION, training_job=NAME)

    assert sagemaker.received == []


def test_without_credentials_nothing_is_stopped(sagemaker: Receiver, aws: pytest.MonkeyPatch):
    aws.delenv("AWS_ACCESS_KEY_ID")
    aws.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(NotDone, match="no usable credentials"):
        do(ACTION, around=NOWHERE, training_job=NAME)


def test_without_any_name_that_is_said_before_anything_is_found():
    ((what, _),) = check(StopTrainingParameters(), NOWHERE)

    assert what == "no training job is named"
    assert check(StopTrainingParameters(), Surroundings("x", training_job=NAME)) == ()
    assert check(StopTrainingParameters(training_job_prefix="My"), NOWHERE) == ()
