"""A training job is asked about by its name: description, security groups, file systems and logs, on a real server."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

import boto3
import pytest

from evaluator.aws import TRIES
from evaluator.errors import InputError
from evaluator.sagemaker.diagnose import (
    Evidence,
    Found,
    Inputs,
    NotChecked,
    Ok,
    Result,
    checks,
    image_of_another_region,
)
from evaluator.sagemaker.diagnose._aws import LOG_GROUP, Aws
from evaluator.testing import FakeClock
from tests.s3.traffic import serving
from tests.sagemaker.diagnose.examples import gather

REGION = "eu-central-1"
EVENT = {"logStreamName": "job/algo-1-1767261600", "timestamp": 1500, "message": "rank 0 step 1"}
IMAGE = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/train:1"


class Services(dict[str, Any]):
    """Clients by the names of services, each made when it is asked for."""

    def __missing__(self, name: str) -> Any:
        self[name] = boto3.session.Session().client(name)
        return self[name]


@pytest.fixture
def services(s3_server: str, aws: pytest.MonkeyPatch) -> Any:
    """Clients of the server, by the names of the services."""
    aws.setenv("AWS_ENDPOINT_URL", s3_server)
    aws.setenv("AWS_REGION", REGION)
    aws.setenv("AWS_DEFAULT_REGION", REGION)
    return Services()


def create(services: Any, **changes: Any) -> str:
    """A training job of two instances with EFA."""
    name = f"job-{secrets.token_hex(4)}"
    given: dict[str, Any] = {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/x",
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "ResourceConfig": {"InstanceCount": 2, "InstanceType": "ml.p4d.24xlarge", "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60},
    }
    services["sagemaker"].create_training_job(**{**given, **changes})
    return name


def say(services: Any, job: str, host: str, *lines: str) -> None:
    """Put lines into a log stream of a job."""
    stream = f"{job}/{host}-1767261600"
    for call, given in (
        (services["logs"].create_log_group, {"logGroupName": LOG_GROUP}),
        (services["logs"].create_log_stream, {"logGroupName": LOG_GROUP, "logStreamName": stream}),
    ):
        with suppress(services["logs"].exceptions.ResourceAlreadyExistsException):
            call(**given)
    now = int(datetime.now(UTC).timestamp() * 1000)
    events = [{"timestamp": now + at, "message": line} for at, line in enumerate(lines)]
    services["logs"].put_log_events(logGroupName=LOG_GROUP, logStreamName=stream, logEvents=events)


def group(services: Any) -> tuple[str, str]:
    """A security group with one rule, outbound to all addresses; and a subnet."""
    ec2 = services["ec2"]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
    name = f"group-{secrets.token_hex(4)}"
    made = ec2.create_security_group(GroupName=name, Description="x", VpcId=vpc)["GroupId"]
    return made, subnet


def results(evidence: Evidence) -> Mapping[str, Result]:
    return {check.name: check.check(evidence) for check in checks()}


def now() -> FakeClock:
    """A clock that shows the server's time."""
    return FakeClock(datetime.now(UTC).timestamp())


def test_a_group_without_rules_of_its_own_is_found_and_with_them_it_is_not(services):
    made, subnet = group(services)
    job = create(services, VpcConfig={"SecurityGroupIds": [made], "Subnets": [subnet]})

    before = results(gather(Inputs(training_job=job), now()))["EfaSecurityGroup"]
    rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": made}]}]
    services["ec2"].authorize_security_group_ingress(GroupId=made, IpPermissions=rule)
    half = results(gather(Inputs(training_job=job), now()))["EfaSecurityGroup"]
    services["ec2"].authorize_security_group_egress(GroupId=made, IpPermissions=rule)
    after = results(gather(Inputs(training_job=job), now()))["EfaSecurityGroup"]

    assert isinstance(before, Found)
    assert "has an inbound and outbound rule" in before.what
    assert before.evidence == (f"{made}: all traffic from nobody, to addresses only (0.0.0.0/0)",)
    assert isinstance(half, Found)
    assert "has an outbound rule" in half.what
    assert after == Ok(f"all traffic may pass from {made} and to {made}")


def test_a_group_that_is_gone_is_not_checked_and_says_why(services):
    job = create(services, VpcConfig={"SecurityGroupIds": ["sg-0123456789abcdef0"], "Subnets": ["subnet-1"]})
    result = results(gather(Inputs(training_job=job), now()))["EfaSecurityGroup"]

    assert isinstance(result, NotChecked)
    assert "InvalidGroup.NotFound" in result.why


def test_the_logs_of_all_hosts_of_the_job_are_read_and_of_no_other(services):
    job = create(services)
    say(services, job, "algo-1", "[rank0]: step 1", "[rank0]: step 2")
    say(services, job, "algo-2", "[rank1]: step 1", "[rank1]: CUDA out of memory")
    say(services, f"{job}-2", "algo-1", "[rank7]: SMDebug Does Not Currently Support")
    evidence = gather(Inputs(training_job=job), now())
    found = results(evidence)

    assert evidence.log is not None
    assert evidence.log.sources == {"algo-1": 2, "algo-2": 2}
    assert list(evidence.log.speakers) == ["rank 0", "rank 1"]
    memory = found["OutOfMemory"]
    assert isinstance(memory, Found)
    assert memory.evidence == ("algo-2:2: [rank1]: CUDA out of memory",)
    assert isinstance(found["CheckpointsWithDebugger"], Ok)


def test_a_log_of_many_pages_is_read_to_its_end(services):
    job = create(services)
    for part in range(3):
        say(services, job, "algo-1", *(f"rank 0 step {part * 4000 + at}" for at in range(4000)))
    evidence = gather(Inputs(training_job=job), now())

    assert evidence.log is not None
    assert evidence.log.sources == {"algo-1": 12_000}


def test_a_job_without_a_log_is_not_checked_and_says_so(services):
    job = create(services)
    say(services, "another", "algo-1", "x")
    evidence = gather(Inputs(training_job=job), now())
    result = results(evidence)["OutOfMemory"]

    assert result == NotChecked(f"needs a log (no log stream begins with '{job}/')")
    assert evidence.notes() == [f"log: no log stream begins with '{job}/'"]


def test_a_file_system_at_its_limit_is_named(services):
    subnet = group(services)[1]
    made = services["fsx"].create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[subnet],
        LustreConfiguration={"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 50},
    )["FileSystem"]["FileSystemId"]
    channel = {
        "ChannelName": "train",
        "DataSource": {
            "FileSystemDataSource": {
                "FileSystemId": made,
                "FileSystemType": "FSxLustre",
                "FileSystemAccessMode": "ro",
                "DirectoryPath": "/x",
            }
        },
    }
    job = create(services, InputDataConfig=[channel])
    start = services["sagemaker"].describe_training_job(TrainingJobName=job)["TrainingStartTime"].timestamp()
    dimension = [{"Name": "FileSystemId", "Value": made}]
    limit = 50e6 * 1200 / 1024
    # the server's jobs are over at once, so that the time goes on from their start only here
    data = [
        {
            "MetricName": "DataReadBytes",
            "Dimensions": dimension,
            "Timestamp": datetime.fromtimestamp(start + 60 * at, UTC),
            "Value": 60 * limit,
        }
        for at in range(5)
    ]
    services["cloudwatch"].put_metric_data(Namespace="AWS/FSx", MetricData=data)
    points = Aws(now()).transferred(made, start - 60, start + 600)

    evidence = gather(Inputs(training_job=job), now())
    assert evidence.file_systems is not None
    assert [(one.id, one.limit) for one in evidence.file_systems] == [(made, limit)]
    assert made in evidence.throughput
    assert sorted(points.values()) == [pytest.approx(60 * limit)] * 5


def test_a_job_that_is_not_there_is_wrong_input(services):
    with pytest.raises(InputError, match="--training-job: there is no training job 'none'"):
        gather(Inputs(training_job="none"), now())


def test_without_an_answer_nothing_is_checked_and_each_check_says_why(aws):
    aws.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    aws.setenv("AWS_REGION", REGION)
    aws.setenv("AWS_DEFAULT_REGION", REGION)
    found = results(gather(Inputs(training_job="job"), now()))

    assert all(isinstance(result, NotChecked) for result in found.values())
    assert all(
        "the service does not answer" in result.why
        for name, result in found.items()
        if isinstance(result, NotChecked) and name != "UnexpectedPrefix"
    ), found


def test_without_a_region_it_is_said_what_to_set(aws):
    result = results(gather(Inputs(training_job="job"), now()))["OutOfMemory"]

    assert isinstance(result, NotChecked)
    assert "set AWS_REGION" in result.why


def test_an_image_in_the_region_of_the_job_is_right(services):
    evidence = gather(Inputs(training_job=create(services)), now())

    assert image_of_another_region.check(evidence) == Ok(f"1 image in region {REGION}")


def test_saved_groups_go_before_those_of_the_service(services, tmp_path):
    made, subnet = group(services)
    job = create(services, VpcConfig={"SecurityGroupIds": [made], "Subnets": [subnet]})
    path = tmp_path / "groups.json"
    rule = f'[{{"IpProtocol": "-1", "UserIdGroupPairs": [{{"GroupId": "{made}"}}]}}]'
    path.write_text(
        f'{{"SecurityGroups": [{{"GroupId": "{made}", "IpPermissions": {rule}, "IpPermissionsEgress": {rule}}}]}}'
    )
    evidence = gather(Inputs(training_job=job, security_groups=str(path)), now())

    assert isinstance(results(evidence)["EfaSecurityGroup"], Ok)


def test_what_is_refused_for_being_too_much_is_asked_again_by_the_clock(aws):
    """As many refusals as boto3 repeats by itself, and one more."""

    class Busy(BaseHTTPRequestHandler):
        asked = 0

        def do_POST(self) -> None:
            type(self).asked += 1
            self.rfile.read(int(self.headers["Content-Length"]))
            busy = type(self).asked <= TRIES + 1
            answer = {"__type": "ThrottlingException", "message": "Rate exceeded"} if busy else {"events": [EVENT]}
            data = json.dumps(answer).encode()
            self.send_response(400 if busy else 200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    clock = FakeClock()
    with serving(Busy) as url:
        aws.setenv("AWS_ENDPOINT_URL", url)
        aws.setenv("AWS_DEFAULT_REGION", REGION)
        lines = list(Aws(clock).log("job"))

    assert lines == [("algo-1", 1.5, "rank 0 step 1")]
    assert clock.waits == [1.0]
