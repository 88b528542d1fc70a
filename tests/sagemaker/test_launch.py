"""launch: the request of a processing job beside a training job, on a server that behaves like SageMaker and S3."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import botocore.validate
import pytest
import structlog

from evaluator.sagemaker.launch_rules import LONGEST, MOST_VARIABLES
from evaluator.sagemaker.processing_job import read_container
from tests.commands.program import Ran, call

REGION = "eu-central-1"
IMAGE = f"123456789012.dkr.ecr.{REGION}.amazonaws.com/rule-evaluator:1.0"
ROLE = "arn:aws:iam::111122223333:role/Training"
TRIAL = "s3://bucket/runs/one/debug-output"
BESIDE = ("--image", IMAGE, "--trial", TRIAL, "--role", ROLE)
RULE = ("--rule", "VanishingGradient:threshold=1e-6")
ANY = pytest.CaptureFixture[str]
Launch = Callable[..., Ran]

FILE = """
from smdebug.rules.rule import Rule

class TooBig(Rule):
    def __init__(self, base_trial, limit="1"):
        super().__init__(base_trial)

    def invoke_at_step(self, step):
        return False
"""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.fixture
def shown(capsys: ANY) -> Callable[..., dict[str, Any]]:
    """What a dry run over a trial shows; nothing of AWS is asked."""

    def show(*arguments: object) -> dict[str, Any]:
        ran = call(capsys, "launch", *BESIDE, *arguments, "--dry-run", "--json")
        assert (ran.code, ran.err) == (0, "")
        document: dict[str, Any] = ran.document
        valid(document["request"])
        return document

    return show


@dataclass
class Account:
    """The servers of a test, with a training job that has everything that can be taken over."""

    sagemaker: Any
    s3: Any
    bucket: str
    job: str

    @property
    def folder(self) -> str:
        return f"s3://{self.bucket}/debug/{self.job}"


@pytest.fixture
def account(s3_server: str, bucket: str, aws: pytest.MonkeyPatch) -> Account:
    aws.setenv("AWS_REGION", REGION)
    session = boto3.session.Session()
    sagemaker = session.client("sagemaker", region_name=REGION, endpoint_url=s3_server)
    s3 = session.client("s3", region_name=REGION, endpoint_url=s3_server)
    return Account(sagemaker, s3, bucket, f"A-training-job-with-a-long-name-{secrets.token_hex(4)}")


def train(account: Account, **more: Any) -> None:
    request: dict[str, Any] = {
        "TrainingJobName": account.job,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": f"s3://{account.bucket}/out", "KmsKeyId": "key-of-outputs"},
        "ResourceConfig": {
            "InstanceCount": 1,
            "InstanceType": "ml.m5.large",
            "VolumeSizeInGB": 10,
            "VolumeKmsKeyId": "key-of-disks",
        },
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1", "subnet-2"]},
        "StoppingCondition": {"MaxRuntimeInSeconds": 7200},
        "DebugHookConfig": {"S3OutputPath": f"s3://{account.bucket}/debug/"},
        "EnableInterContainerTrafficEncryption": True,
    }
    account.sagemaker.create_training_job(**{name: value for name, value in {**request, **more}.items() if value})


def valid(request: dict[str, Any]) -> None:
    """The request is one that CreateProcessingJob takes, as the model of the service has it."""
    shape = botocore.session.get_session().get_service_model("sagemaker").operation_model("CreateProcessingJob")
    report = botocore.validate.ParamValidator().validate(request, shape.input_shape)
    assert not report.has_errors(), report.generate_report()
    assert len(request["Environment"]) <= MOST_VARIABLES
    assert all(len(value) <= LONGEST for value in request["Environment"].values())
    assert len(request["ProcessingJobName"]) <= 63


def evaluated_in_container(
    document: dict[str, Any], root: Path, put: Callable[..., None] | None = None
) -> list[tuple[str, str, dict[str, Any]]]:
    """(configuration, rule, parameters) that the image makes of a request: what is launched is what is evaluated."""
    if put is not None:
        for uri, text in document["objects"].items():
            put(uri.removeprefix("s3://").partition("/")[2], text.encode())
    environment = document["request"]["Environment"]
    (root / "config").mkdir()
    (root / "config" / "processingjobconfig.json").write_text(json.dumps({"Environment": environment}))
    reading = read_container(root, environment)
    assert reading.mistakes == ()
    assert reading.config is not None
    assert reading.config.job.trial == environment.get("RULE_EVALUATOR_TRIAL", reading.config.job.trial)
    return [
        (rule.name, rule.rule.name, {name: one["value"] for name, one in rule.shown.items()})
        for rule in reading.config.job.rules
    ]


def test_everything_is_taken_over_from_the_training_job(account: Account, capsys: ANY):
    train(account)
    ran = call(capsys, "launch", "--training-job", account.job, "--image", IMAGE, *RULE, "--json", "--dry-run")
    request = ran.document["request"]

    assert ran.code == 0
    valid(request)
    assert request["RoleArn"] == ROLE
    assert request["NetworkConfig"] == {
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1", "subnet-2"]},
        "EnableInterContainerTrafficEncryption": True,
    }
    assert request["ProcessingResources"]["ClusterConfig"]["VolumeKmsKeyId"] == "key-of-disks"
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 7200 + 3600}
    assert request["ProcessingOutputConfig"] == {
        "Outputs": [
            {
                "OutputName": "rule",
                "S3Output": {
                    "S3Uri": f"{account.folder}/rule-output/VanishingGradient",
                    "LocalPath": "/opt/ml/processing/output/rule",
                    "S3UploadMode": "Continuous",
                },
            }
        ],
        "KmsKeyId": "key-of-outputs",
    }
    assert request["Environment"] == {
        "RULE_EVALUATOR_TRIAL": f"{account.folder}/debug-output",
        "RULE_EVALUATOR_TRAINING_JOB_NAME": account.job,
        "rule_to_invoke": "VanishingGradient",
        "threshold": "1e-6",
        "parameter_set": "recommended",
    }
    assert "ProcessingInputs" not in request
    assert request["ProcessingJobName"].startswith(f"{account.job[:26]}-VanishingGradient-")


def test_a_processing_job_is_started_with_what_was_shown(account: Account, capsys: ANY):
    train(account)
    ran = call(capsys, "launch", "--training-job", account.job, "--image", IMAGE, *RULE, "--json")
    document = ran.document
    made = account.sagemaker.describe_processing_job(ProcessingJobName=document["request"]["ProcessingJobName"])

    assert ran.code == 0
    assert document["processing_job_arn"] == made["ProcessingJobArn"]
    assert made["AppSpecification"] == {"ImageUri": IMAGE}
    assert made["RoleArn"] == ROLE
    assert made["NetworkConfig"]["VpcConfig"]["Subnets"] == ["subnet-1", "subnet-2"]
    assert made["ProcessingOutputConfig"]["Outputs"][0]["S3Output"]["S3Uri"] == document["output"]


def test_people_are_told_where_to_look(account: Account, capsys: ANY):
    train(account)
    ran = call(capsys, "launch", "--training-job", account.job, "--image", IMAGE, *RULE)

    assert ran.code == 0
    assert ran.out.splitlines()[1:] == [
        f"output: {account.folder}/rule-output/VanishingGradient",
        f"see how it goes on: rule-evaluator status {account.folder}/rule-output/VanishingGradient",
    ]


def test_a_dry_run_prints_the_request_and_starts_nothing(account: Account, capsys: ANY):
    train(account)
    before = len(account.sagemaker.list_processing_jobs()["ProcessingJobSummaries"])
    ran = call(
        capsys, "launch", "--training-job", account.job, "--image", IMAGE, *RULE, "--rule", "Overfit", "--dry-run"
    )
    valid(ran.document)

    assert len(account.sagemaker.list_processing_jobs()["ProcessingJobSummaries"]) == before
    assert "Contents" not in account.s3.list_objects_v2(Bucket=account.bucket)
    assert "config.json has to be there before" in ran.err


def test_what_does_not_fit_into_the_environment_is_put_to_s3_first(account: Account, capsys: ANY, tmp_path: Path):
    train(account)
    (tmp_path / "mine.py").write_text(FILE)
    given = (*RULE, "--rule-file", tmp_path / "mine.py", "--label", "team=vision", "--name", "mine")
    ran = call(capsys, "launch", "--training-job", account.job, "--image", IMAGE, *given, "--json")
    document = ran.document
    there = {one["Key"] for one in account.s3.list_objects_v2(Bucket=account.bucket)["Contents"]}
    read = evaluated_in_container(document, tmp_path)

    assert ran.code == 0
    assert there == {uri.removeprefix(f"s3://{account.bucket}/") for uri in document["objects"]}
    assert len(there) == 2
    assert document["output"] == f"{account.folder}/rule-output/mine"
    assert document["request"]["Environment"]["RULE_EVALUATOR_CONFIG"] in document["objects"]
    assert [(name, rule) for name, rule, _ in read] == [("VanishingGradient",) * 2, ("mine", "mine")]


def test_without_a_hook_there_is_nothing_to_evaluate(account: Account, capsys: ANY):
    train(account, DebugHookConfig=None)
    ran = call(capsys, "launch", "--training-job", account.job, "--image", IMAGE, *RULE)

    assert ran.code == 2
    assert "has no hook, so it saves no tensors; one with a DebugHookConfig, or --trial" in ran.err


def test_a_training_job_that_is_not_there_is_said(account: Account, capsys: ANY):
    ran = call(capsys, "launch", "--training-job", "nobody", "--image", IMAGE, *RULE)

    assert ran.code == 2
    assert ran.err.startswith(f"training job 'nobody': there is none of that name in {REGION};")


def test_an_isolated_training_job_has_rules_that_are_not(account: Account, capsys: ANY):
    train(account, EnableNetworkIsolation=True, VpcConfig=None, EnableInterContainerTrafficEncryption=None)
    ran = call(capsys, "launch", "--training-job", account.job, "--image", IMAGE, *RULE, "--json", "--dry-run")

    assert "NetworkConfig" not in ran.document["request"]
    assert ran.document["notes"] == [
        "the training job may reach no network; the processing job may, since it reads the trial from S3"
    ]


def test_a_long_training_job_does_not_ask_for_more_than_there_is(account: Account, capsys: ANY):
    train(account, StoppingCondition={"MaxRuntimeInSeconds": 2_000_000})
    ran = call(capsys, "launch", "--training-job", account.job, "--image", IMAGE, *RULE, "--json", "--dry-run")

    assert ran.document["request"]["StoppingCondition"] == {"MaxRuntimeInSeconds": 777_600}


def test_without_a_region_that_is_said(aws: pytest.MonkeyPatch, capsys: ANY):
    ran = call(capsys, "launch", "--training-job", "job", "--image", IMAGE, *RULE)

    assert (ran.code, ran.err) == (2, "SageMaker: sagemaker: in which region is not known; set AWS_REGION\n")


def test_a_trial_needs_no_training_job_and_a_dry_run_of_it_nothing_of_aws(shown, aws: pytest.MonkeyPatch):
    aws.delenv("AWS_ACCESS_KEY_ID")
    request = shown(*RULE)["request"]

    assert request["Environment"]["RULE_EVALUATOR_TRIAL"] == TRIAL
    assert "RULE_EVALUATOR_TRAINING_JOB_NAME" not in request["Environment"]
    assert "NetworkConfig" not in request
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 86_400}
    assert request["ProcessingResources"]["ClusterConfig"] == {
        "InstanceCount": 1,
        "InstanceType": "ml.t3.medium",
        "VolumeSizeInGB": 30,
    }


@pytest.mark.parametrize(
    ("trial", "output"),
    [
        ("s3://b/runs/one/debug-output", "s3://b/runs/one/rule-output/VanishingGradient"),
        ("s3://b/runs/one/debug-output/", "s3://b/runs/one/rule-output/VanishingGradient"),
        ("s3://b/debug-output", "s3://b/rule-output/VanishingGradient"),
        ("s3://b/runs/one", "s3://b/runs/one-rules/rule-output/VanishingGradient"),
    ],
)
def test_results_lie_beside_the_tensors_and_never_among_them(capsys: ANY, trial: str, output: str):
    given = ("--image", IMAGE, "--trial", trial, "--role", ROLE, *RULE)
    document = call(capsys, "launch", *given, "--dry-run", "--json").document

    assert document["output"] == output
    assert not output.startswith(trial.rstrip("/") + "/")


def test_options_of_the_machine_and_the_places_are_taken(shown):
    more = ("--instance-type", "ml.m5.large", "--volume-size", 5, "--max-runtime", 60, "--output", "s3://other/x/")
    document = shown(*RULE, *more)
    request = document["request"]

    assert request["ProcessingResources"]["ClusterConfig"]["InstanceType"] == "ml.m5.large"
    assert request["ProcessingResources"]["ClusterConfig"]["VolumeSizeInGB"] == 5
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 60}
    assert document["output"] == "s3://other/x"


def test_a_rule_of_the_command_line_has_the_parameters_that_run_gives_it(shown, tmp_path: Path):
    document = shown("--rule", "Overfit:patience=7,name=mine,severity=critical")
    ((name, rule, parameters),) = evaluated_in_container(document, tmp_path)

    assert document["objects"] == {}
    assert (name, rule, parameters["patience"], parameters["severity"]) == ("mine", "Overfit", 7, "critical")
    assert parameters["ratio_threshold"] == _recommended("Overfit", "ratio_threshold")


def test_without_any_rule_every_one_is_tried(shown, tmp_path: Path):
    document = shown()

    assert set(document["request"]["Environment"]) == {"RULE_EVALUATOR_TRIAL"}
    assert document["output"].endswith("/rule-output/rules")
    assert len(evaluated_in_container(document, tmp_path)) > 20


def test_settings_go_along(shown):
    environment = shown(*RULE, "--set", "late_grace=5", "--other-trial", "s3://b/other")["request"]["Environment"]

    assert environment["RULE_EVALUATOR_LATE_GRACE"] == "5"
    assert environment["RULE_EVALUATOR_OTHER_TRIALS"] == "s3://b/other"


LONG = "x" * 300


@pytest.mark.parametrize(
    "given",
    [
        ("--rule", f"VanishingGradient:exclude_regex={LONG}"),
        ("--rule", "VanishingGradient:threshold=1e-6", "--other-trial", f"s3://b/{LONG}"),
        ("--rule", "VanishingGradient:threshold=1e-6", "--rule", "Overfit"),
        ("--rule", "VanishingGradient:threshold=1e-6", "--label", "a=b"),
        ("--rule", "VanishingGradient:threshold=1e-6", "--action", "stop_training:training_job=x,at_least=critical"),
    ],
    ids=["a long value", "a long setting", "two rules", "a label", "an action"],
)
def test_more_than_fits_goes_to_a_configuration_object(capsys: ANY, bucket: str, put: Any, tmp_path: Path, given):
    place = ("--image", IMAGE, "--trial", f"s3://{bucket}/debug-output", "--role", ROLE)
    document = call(capsys, "launch", *place, *given, "--dry-run", "--json").document
    valid(document["request"])
    read = evaluated_in_container(document, tmp_path, put)

    assert read[0][:2] == ("VanishingGradient", "VanishingGradient")
    assert LONG not in str(document["request"])
    assert "rule_to_invoke" not in document["request"]["Environment"]
    assert list(document["objects"]) == [document["request"]["Environment"]["RULE_EVALUATOR_CONFIG"]]


def test_a_trial_whose_name_is_too_long_for_a_variable_is_in_the_configuration(
    capsys: ANY, bucket: str, put: Any, tmp_path: Path
):
    trial = f"s3://{bucket}/{LONG}/debug-output"
    place = ("--image", IMAGE, "--trial", trial, "--role", ROLE, "--output", f"s3://{bucket}/out")
    document = call(capsys, "launch", *place, *RULE, "--dry-run", "--json").document
    ((name, _, parameters),) = evaluated_in_container(document, tmp_path, put)

    assert (name, parameters["threshold"]) == ("VanishingGradient", 1e-6)
    assert trial in next(iter(document["objects"].values()))


def test_a_configuration_file_goes_along_with_its_rule_files(capsys: ANY, bucket: str, put: Any, tmp_path: Path):
    for folder in ("a", "b"):
        (tmp_path / "rules" / folder).mkdir(parents=True)
        (tmp_path / "rules" / folder / "mine.py").write_text(FILE)
    config = tmp_path / "job.toml"
    config.write_text(
        """
        [[rule]]
        file = "rules/a/mine.py:TooBig"
        name = "first"
        limit = "3"
        [[rule]]
        file = "rules/b/mine.py"
        name = "second"
        [[DebugRuleConfigurations]]
        RuleConfigurationName = "third"
        RuleEvaluatorImage = "x"
        [DebugRuleConfigurations.RuleParameters]
        rule_to_invoke = "TooBig"
        source_s3_uri = "rules/a/mine.py"
        [labels]
        team = "vision"
        [settings]
        late_grace = 5
        """
    )
    place = ("--image", IMAGE, "--trial", f"s3://{bucket}/debug-output", "--role", ROLE)
    given = ("--config", config, "--rule", "Overfit")
    document = call(capsys, "launch", *place, *given, "--dry-run", "--json").document
    (tmp_path / "root").mkdir()
    read = evaluated_in_container(document, tmp_path / "root", put)

    assert [name for name, _, _ in read] == ["Overfit", "first", "second", "third"]
    assert read[1][2]["limit"] == "3"
    assert len(document["objects"]) == 3
    assert len(document["notes"]) == 2
    assert str(tmp_path) not in json.dumps(document["objects"])


def test_the_configuration_file_of_the_user_stays_as_it_is(capsys: ANY, tmp_path: Path):
    config = tmp_path / "job.json"
    config.write_text(json.dumps({"rule": [{"use": "Overfit"}]}))
    before = config.read_bytes()
    call(capsys, "launch", *BESIDE, "--config", config, *RULE, "--dry-run", "--json")

    assert config.read_bytes() == before


def test_secrets_of_actions_are_named_and_never_sent(shown, aws: pytest.MonkeyPatch):
    aws.setenv("MY_WEBHOOK", "https://hidden.example.org")
    document = shown(*RULE, "--action", "webhook:url_variable=MY_WEBHOOK")

    assert "hidden" not in json.dumps(document)
    assert "MY_WEBHOOK" in json.dumps(document["objects"])


@pytest.mark.parametrize(
    ("given", "mistake"),
    [
        ((), "launch: neither a training job nor a trial is given; give --training-job NAME, or --trial s3://"),
        (("--trial", TRIAL, "--training-job", "x"), "launch: a training job and a trial are given"),
        (("--trial", TRIAL), "--role: no role is given; for example arn:aws:iam::"),
        (("--trial", TRIAL, "--role", "x"), "--role: 'x' is no role"),
        (("--trial", "/any/x", "--role", ROLE), "--trial: '/any/x' is on no storage that a processing job reaches"),
        (("--trial", "s3://bucket", "--role", ROLE), "--output: the trial 's3://bucket' is a whole bucket"),
        (("--trial", TRIAL, "--role", ROLE, "--output", "out"), "--output: 'out' is not on S3; s3://BUCKET/PREFIX"),
        (("--trial", TRIAL, "--role", ROLE, "--rule", "Overfitt"), "--rule: rule 'Overfitt' is not known; did you m"),
        (("--trial", TRIAL, "--role", ROLE, "--rule", "Overfit:patiense=1"), "Overfit: parameter 'patiense' is not"),
        (("--trial", TRIAL, "--role", ROLE, "--set", "late_grave=1"), "command line: setting 'late_grave' is not kn"),
        (("--trial", TRIAL, "--role", ROLE, "--set", "output=x"), "setting 'output': is given by the processing job"),
        (("--trial", TRIAL, "--role", ROLE, "--other-trial", "/x"), "other trial '/x': is on no storage that a proc"),
        (("--trial", TRIAL, "--role", ROLE, "--action", "emial"), "--action emial: action 'emial' is not known"),
        (("--trial", TRIAL, "--role", ROLE, "--config", "no.json"), "no.json: there is no such file"),
        (("--trial", TRIAL, "--role", ROLE, "--rule-file", "no.py"), "--rule-file no.py: rule file 'no.py' does not"),
        (("--trial", TRIAL, "--role", ROLE, "--label", "x"), "--label: 'x' has no name and value"),
    ],
)
def test_each_mistake_says_what_would_be_right(capsys: ANY, tmp_path, monkeypatch, given, mistake):
    monkeypatch.chdir(tmp_path)
    ran = call(capsys, "launch", "--image", IMAGE, *given, "--dry-run")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(mistake)
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("image", "mistake"),
    [
        ("rule-evaluator:latest", "is in no registry of Amazon ECR"),
        ("503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest", "is the hosted service's own"),
    ],
)
def test_an_image_that_would_not_do_is_said(capsys: ANY, image: str, mistake: str):
    ran = call(capsys, "launch", "--image", image, "--trial", TRIAL, "--role", ROLE, "--dry-run")

    assert ran.code == 2
    assert mistake in ran.err


def test_an_image_of_another_region_is_said(account: Account, capsys: ANY):
    train(account)
    other = IMAGE.replace(REGION, "us-east-1")
    ran = call(capsys, "launch", "--image", other, "--training-job", account.job, *RULE)

    assert ran.code == 2
    assert f"is in another region than the job, {REGION}" in ran.err


def test_all_mistakes_are_told_at_once(capsys: ANY):
    given = ("--image", "x", "--trial", "/x", "--output", "/y", "--rule", "Overfitt", "--set", "x=1", "--label", "z")
    ran = call(capsys, "launch", *given, "--dry-run")

    assert len(ran.err.splitlines()) == 7


def test_a_refusal_of_sagemaker_is_wrong_input(account: Account, capsys: ANY, aws: pytest.MonkeyPatch):
    train(account)
    aws.setenv("AWS_ENDPOINT_URL_SAGEMAKER", "http://127.0.0.1:9")
    ran = call(capsys, "launch", *BESIDE, *RULE)

    assert ran.code == 2
    assert ran.err.startswith("CreateProcessingJob: sagemaker:CreateProcessingJob: the service does not answer")


def _recommended(rule: str, parameter: str) -> object:
    from evaluator.registry import builtin_rules  # noqa: PLC0415 - of this one test

    one = builtin_rules()[rule]
    recommended = one.recommended.get(parameter)
    return one.parameters.model_fields[parameter].default if recommended is None else recommended.value
