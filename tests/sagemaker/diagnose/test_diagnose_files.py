"""Saved answers of AWS: what is not in the form is not there, and nothing in a document can do any harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import InputError, Mistake
from evaluator.sagemaker.diagnose import Found, Inputs, NotChecked, Ok, checks
from evaluator.sagemaker.diagnose._efa import has_efa
from evaluator.sagemaker.diagnose._file_systems import file_systems, throughput
from evaluator.sagemaker.diagnose._groups import security_groups
from evaluator.sagemaker.diagnose._job import job_facts
from evaluator.sagemaker.distributed import KNOWN_ERROR
from tests.sagemaker.diagnose.examples import gather, of

CHECKS = {check.name: check for check in checks()}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = (
    *(
        "SecurityGroups",
        "GroupId",
        "IpPermissions",
        "IpPermissionsEgress",
        "IpProtocol",
        "UserIdGroupPairs",
        "IpRanges",
    ),
    *("FileSystems", "FileSystemId", "LustreConfiguration", "StorageCapacity", "PerUnitStorageThroughput"),
    *("MetricDataResults", "Label", "Timestamps", "Values", "Datapoints", "Timestamp", "Sum"),
    *("ResourceConfig", "VpcConfig", "SecurityGroupIds", "InputDataConfig", "DataSource", "FileSystemDataSource"),
    *("TrainingJobArn", "TrainingJobName", "TrainingStartTime", "FailureReason", "DebugHookConfig", "S3OutputPath"),
)
DOCUMENTS = st.recursive(
    JSON | st.sampled_from(["-1", "DataReadBytes", "sg-1", "2026-01-01T00:00:00Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(KEYS), DOCUMENTS, max_size=5))
def test_any_document_is_read_or_is_a_mistake(document: dict[str, Any]):
    job_facts(document)
    for read in (security_groups, file_systems, throughput):
        result = read(document, "x.json")
        assert not isinstance(result, Mistake) or result.where == "x.json"


def write(path: Path, document: Any) -> str:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("security_groups", "lists no security groups; expected what 'aws ec2 describe-security-groups' answers"),
        ("file_systems", "lists no file systems; expected what 'aws fsx describe-file-systems' answers"),
        ("metrics", "holds no metrics of a file system; expected what 'aws cloudwatch get-metric-data' answers"),
        ("request", "is no request of a training job"),
    ],
)
def test_another_document_is_wrong_input(tmp_path: Path, option: str, expected: str):
    given: dict[str, Any] = {option: write(tmp_path / "x.json", {"Something": []})}

    with pytest.raises(InputError, match=expected):
        gather(Inputs(**given))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a": NaN}', "\x00"])
def test_what_is_no_json_is_wrong_input(tmp_path: Path, text: str):
    with pytest.raises(InputError, match="is not strict JSON"):
        gather(Inputs(security_groups=write(tmp_path / "x.json", text)))


def test_all_mistakes_are_told_at_once(tmp_path: Path):
    none = str(tmp_path / "none.json")
    with pytest.raises(InputError) as refusal:
        gather(Inputs(request=none, security_groups=none, file_systems=none, metrics=none, checkpoints=[none]))

    assert len(refusal.value.mistakes) == 5


@pytest.mark.parametrize(
    ("lustre", "size", "limit"),
    [
        ({"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}, 2400, 250e6 * 2400 / 1024),
        ({"DeploymentType": "SCRATCH_2"}, 1200, 200e6 * 1200 / 1024),
        ({"DeploymentType": "PERSISTENT_2", "ThroughputCapacity": 4000}, 1200, 4000e6),
        ({"DeploymentType": "PERSISTENT_1"}, 1200, None),
        ({}, None, None),
        ({"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": -1}, 1200, None),
    ],
)
def test_what_a_file_system_can_do_is_told_by_its_description(lustre: Any, size: Any, limit: float | None):
    described = {"FileSystemId": "fs-1", "FileSystemType": "LUSTRE", "StorageCapacity": size}
    read = file_systems({"FileSystems": [{**described, "LustreConfiguration": lustre}]}, "x")

    assert not isinstance(read, Mistake)
    assert [one.limit for one in read] == [limit]


def test_reads_and_writes_of_a_period_are_added_up():
    results = [
        {"Id": "m1", "Label": "DataReadBytes", "Timestamps": ["2026-01-01T00:01:00Z", 1767225600], "Values": [60, 120]},
        {"Id": "m2", "Label": "DataWriteBytes", "Timestamps": ["2026-01-01T00:00:00+00:00"], "Values": [60.0]},
        {"Id": "m3", "Label": "FreeDataStorageCapacity", "Timestamps": [1767225600], "Values": [1e12]},
    ]
    read = throughput({"MetricDataResults": results}, "x")

    assert not isinstance(read, Mistake)
    assert (read.by_period, read.period) == ((3.0, 1.0), 60.0)


def test_statistics_are_read_as_metric_data_are():
    points = [{"Timestamp": 1767225600 + 300 * at, "Sum": 300.0} for at in range(3)]
    read = throughput({"Label": "DataReadBytes", "Datapoints": points}, "x")

    assert not isinstance(read, Mistake)
    assert read.by_period == (1.0, 1.0, 1.0)


def test_a_file_system_whose_limit_is_not_known_is_not_checked(tmp_path: Path):
    system = {"FileSystemId": "fs-1", "LustreConfiguration": {"DeploymentType": "PERSISTENT_1"}, "StorageCapacity": 1}
    points = [{"Timestamp": 60 * at, "Sum": 1e12} for at in range(5)]
    inputs = Inputs(
        file_systems=write(tmp_path / "systems.json", {"FileSystems": [system]}),
        metrics=write(tmp_path / "metrics.json", {"Label": "DataReadBytes", "Datapoints": points}),
    )

    assert of(CHECKS["ScalingLoss"], inputs) == NotChecked(
        "what fs-1 (PERSISTENT_1) can do, its description does not tell"
    )


def test_two_groups_that_name_each_other_let_all_pass(tmp_path: Path):
    def rule(group: str) -> list[Any]:
        return [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]

    groups = [
        {"GroupId": "sg-1", "IpPermissions": rule("sg-2"), "IpPermissionsEgress": rule("sg-2")},
        {"GroupId": "sg-2", "IpPermissions": [], "IpPermissionsEgress": []},
        {"GroupId": "sg-9", "IpPermissions": rule("sg-9"), "IpPermissionsEgress": rule("sg-9")},
    ]

    def job(*named: str) -> Inputs:
        request = {
            "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 4},
            "VpcConfig": {"SecurityGroupIds": [*named]},
        }
        return Inputs(
            request=write(tmp_path / "request.json", request),
            security_groups=write(tmp_path / "groups.json", {"SecurityGroups": groups}),
        )

    assert isinstance(of(CHECKS["EfaSecurityGroup"], job("sg-1", "sg-2")), Ok)
    assert isinstance(of(CHECKS["EfaSecurityGroup"], job("sg-1")), Found)
    assert isinstance(of(CHECKS["EfaSecurityGroup"], job("sg-1", "sg-3")), NotChecked)


def test_a_rule_for_one_protocol_is_not_one_for_all_traffic(tmp_path: Path):
    rule = [{"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535, "UserIdGroupPairs": [{"GroupId": "sg-1"}]}]
    groups = [{"GroupId": "sg-1", "IpPermissions": rule, "IpPermissionsEgress": rule}]
    request = {
        "ResourceConfig": {"InstanceGroups": [{"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2}]},
        "VpcConfig": {"SecurityGroupIds": ["sg-1"]},
    }
    inputs = Inputs(
        request=write(tmp_path / "request.json", request),
        security_groups=write(tmp_path / "groups.json", {"SecurityGroups": groups}),
    )

    assert isinstance(of(CHECKS["EfaSecurityGroup"], inputs), Found)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ml.p4d.24xlarge", True),
        ("ml.p4de.24xlarge", True),
        ("ml.p5en.48xlarge", True),
        ("ml.p6-b200.48xlarge", True),
        ("ml.trn1.32xlarge", True),
        ("ml.p3.16xlarge", False),
        ("ml.g5.xlarge", False),
        ("ml.trn1.2xlarge", False),
        ("ml.m5.24xlarge", False),
        (None, False),
    ],
)
def test_which_instances_have_efa(kind: str | None, expected: bool):
    assert has_efa(kind) is expected


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ("OutOfMemory", "AlgorithmError: ... torch.cuda.OutOfMemoryError: CUDA out of memory"),
        ("CheckpointsWithDebugger", f"AlgorithmError: {KNOWN_ERROR}"),
        ("VanishedFiles", "FileNotFoundError: No such file or directory: '/opt/ml/checkpoints/x.sagemaker-uploading'"),
        ("ImageOfAnotherRegion", "ClientError: Cannot find repository: x in registry ID: 111122223333"),
    ],
)
def test_a_job_that_failed_is_judged_by_its_reason(tmp_path: Path, check: str, reason: str):
    job = {"TrainingJobName": "job", "TrainingJobStatus": "Failed", "FailureReason": reason}
    result = of(CHECKS[check], Inputs(request=write(tmp_path / "job.json", job)))

    assert isinstance(result, Found)
    assert result.evidence == (reason,)


def test_an_image_of_another_partition_is_found_by_the_role(tmp_path: Path):
    request = {
        "RoleArn": "arn:aws-cn:iam::111122223333:role/x",
        "AlgorithmSpecification": {"TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/train:1"},
    }
    # a request has no ARN of a job, so that the region is that of the image
    result = of(CHECKS["ImageOfAnotherRegion"], Inputs(request=write(tmp_path / "request.json", request)))

    assert isinstance(result, Found)
    assert result.evidence == ("the training image is in partition 'aws', and the job in 'aws-cn'",)


def test_an_image_of_a_rule_in_another_region_is_found_with_the_right_one(tmp_path: Path):
    arn = "arn:aws:sagemaker:us-east-2:111122223333:training-job/job"
    image = "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"
    rule = {"RuleConfigurationName": "x", "RuleEvaluatorImage": image, "RuleParameters": {"rule_to_invoke": "AllZero"}}
    request = {"TrainingJobArn": arn, "DebugRuleConfigurations": [rule]}
    result = of(CHECKS["ImageOfAnotherRegion"], Inputs(request=write(tmp_path / "request.json", request)))

    assert isinstance(result, Found)
    assert len(result.evidence) == len(result.remedy) == 1
    assert "915447279597.dkr.ecr.us-east-2" in result.remedy[0]


def test_the_arguments_of_an_estimator_are_a_request(tmp_path: Path):
    estimator = {
        "distribution": {"smdistributed": {"dataparallel": {"enabled": True}}},
        "checkpoint_s3_uri": "s3://bucket/ckpt",
        "rules": [{"name": "VanishingGradient"}],
        "instance_type": "ml.p4d.24xlarge",
        "instance_count": 2,
        "security_group_ids": ["sg-1"],
    }
    inputs = Inputs(request=write(tmp_path / "estimator.json", estimator))

    assert isinstance(of(CHECKS["CheckpointsWithDebugger"], inputs), Found)
    assert isinstance(of(CHECKS["EfaSecurityGroup"], inputs), NotChecked)


def test_an_hour_without_a_step_names_where_the_trial_is(tmp_path: Path):
    job = {
        "TrainingJobName": "job",
        "TrainingJobArn": "arn:aws:sagemaker:eu-central-1:111122223333:training-job/job",
        "TrainingJobStatus": "InProgress",
        "TrainingStartTime": "2023-11-14T21:00:00+00:00",
        "DebugHookConfig": {"S3OutputPath": "s3://bucket/out/"},
    }
    result = of(CHECKS["NoFirstStep"], Inputs(request=write(tmp_path / "job.json", job)))

    assert result == NotChecked("needs what was saved, or a log: --trial s3://bucket/out/job/debug-output")
