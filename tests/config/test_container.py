import json

import pytest

from evaluator.modes import Mode
from evaluator.sagemaker.processing_job import ContainerConfig, read_container
from tests.config.small_rules import RULES


def load_container(root, environment, rules) -> ContainerConfig:
    """The configuration, which must be right."""
    reading = read_container(root, environment, rules)
    assert reading.mistakes == ()
    assert reading.config is not None
    return reading.config


@pytest.fixture
def root(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "processing" / "input" / "config").mkdir(parents=True)
    return tmp_path


def job_file(root, mode="Continuous", instances=1, **environment):
    source = {"S3Uri": "s3://bucket/job/debug-output", "S3DownloadMode": mode}
    content = {
        "ProcessingJobArn": "arn:aws:sagemaker:eu-west-1:111122223333:processing-job/x",
        "Environment": environment,
        "ProcessingInputs": [{"InputName": "other"}, {"InputName": "tensors", "S3Input": source}],
        "ProcessingResources": {"ClusterConfig": {"InstanceCount": instances}},
    }
    (root / "config" / "processingjobconfig.json").write_text(json.dumps(content))


def rule_file(root, *uses, name="rules.json"):
    path = root / "processing" / "input" / "config" / name
    path.write_text(json.dumps({"rule": [{"use": use} for use in uses]}))
    return path


def test_without_any_file_the_folders_of_the_container_are_used(root):
    config = load_container(root, {}, RULES)

    job = config.job
    assert (str(root / "processing/input/tensors"), str(root / "processing/output/rule"), True, None) == (
        job.trial,
        job.settings.output,
        job.settings.follow,
        config.arn,
    )
    assert (root / "output" / "message", False, "default") == (
        config.message_file,
        job.flat_output,
        job.origins["trial"],
    )
    assert all(rule.candidate for rule in job.rules)


def test_one_rule_of_the_environment_writes_directly_into_the_output_folder(root):
    job_file(root, rule_to_invoke="DeadLayer", threshold="20.0", odd="1")

    config = load_container(root, {"rule_to_invoke": "DeadLayer", "threshold": "20.0", "odd": "1"}, RULES)

    (rule,) = config.job.rules
    assert (config.job.flat_output, rule.name, rule.ignored, rule.candidate) == (True, "DeadLayer", ("odd",), False)
    assert (rule.shown["threshold"]["value"], rule.shown["steps"]["value"]) == (20.0, 10)
    assert config.arn is not None


@pytest.mark.parametrize(
    ("mode", "environment", "trial", "origin"),
    [
        ("Continuous", {}, "input/tensors", "default"),
        ("StartOfJob", {}, "s3://bucket/job/debug-output", "processingjobconfig.json"),
        (None, {}, "s3://bucket/job/debug-output", "processingjobconfig.json"),
        ("StartOfJob", {"RULE_EVALUATOR_TRIAL": "/there"}, "/there", "environment"),
    ],
)
def test_the_trial_is_chosen_in_this_order(root, mode, environment, trial, origin):
    job_file(root, mode)

    job = load_container(root, environment, RULES).job

    assert job.trial.endswith(trial)
    assert origin == job.origins["trial"]


def test_the_configuration_is_chosen_in_this_order(root):
    by_variable = root / "mine.json"
    by_variable.write_text(json.dumps({"rule": [{"use": "SimilarRuns"}]}))
    environment = {"rule_to_invoke": "DeadLayer"}

    found = [load_container(root, environment, RULES)]
    rule_file(root, "Overfit")
    found.append(load_container(root, environment, RULES))
    found.append(load_container(root, environment | {"RULE_EVALUATOR_CONFIG": str(by_variable)}, RULES))

    assert [(config.job.rules[0].name, config.job.flat_output) for config in found] == [
        ("DeadLayer", True),
        ("Overfit", False),
        ("SimilarRuns", False),
    ]
    assert "environment: 'rule_to_invoke' is not used" in found[1].job.notes[0]


def test_all_files_of_the_config_folder_are_read_in_order(root):
    rule_file(root, "Overfit", name="b.json")
    rule_file(root, "DeadLayer", name="a.json")

    assert [rule.name for rule in load_container(root, {}, RULES).job.rules] == ["DeadLayer", "Overfit"]


def test_names_of_all_files_of_the_config_folder_count_and_those_of_the_last_one_most(root):
    folder = root / "processing" / "input" / "config"
    first = {"collections": {"losses": "^a", "metrics": ["^m"]}, "modes": {"EVAL": "val"}}
    second = {"collections": {"losses": ["^b", "^c"]}, "modes": {"TRAIN": "fit"}}
    (folder / "1.json").write_text(json.dumps({"names": first}))
    (folder / "2.json").write_text(json.dumps({"names": second}))
    rule_file(root, "DeadLayer", name="3.json")

    naming = load_container(root, {}, RULES).job.naming

    assert naming is not None
    assert naming.collections == {"losses": ("^b", "^c"), "metrics": ("^m",)}
    assert naming.modes == {Mode.EVAL: ("val",), Mode.TRAIN: ("fit",)}


def test_files_of_the_config_folder_without_names_leave_the_inferred_ones(root):
    rule_file(root, "DeadLayer")

    assert load_container(root, {}, RULES).job.naming is None


def test_settings_of_the_processing_jobs_environment_count_once(root):
    job_file(root, RULE_EVALUATOR_FOLLOW="false", RULE_EVALUATOR_RELIST="7", RULE_EVALUATOR_FOLOW="x")

    mistakes = read_container(root, {"RULE_EVALUATOR_FOLOW": "x"}, RULES).mistakes

    assert [str(mistake).split(";")[0] for mistake in mistakes] == ["environment: RULE_EVALUATOR_FOLOW is not known"]


def test_a_setting_of_the_processing_jobs_environment_has_its_origin(root):
    job_file(root, RULE_EVALUATOR_RELIST="7")

    job = load_container(root, {}, RULES).job

    assert (job.settings.relist, job.origins["relist"]) == (7, "processingjobconfig.json")


@pytest.mark.parametrize(
    ("instances", "hosts", "notes"), [(1, ["algo-1"], 0), (2, ["algo-1"], 1), (1, ["a", "b", "c"], 1)]
)
def test_several_instances_are_noted(root, instances, hosts, notes):
    job_file(root, instances=instances)
    (root / "config" / "resourceconfig.json").write_text(json.dumps({"current_host": "algo-1", "hosts": hosts}))

    assert notes == len(load_container(root, {}, RULES).job.notes)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        '{"Environment": null, "ProcessingInputs": null, "ProcessingResources": null}',
        '{"Environment": [], "ProcessingInputs": [{"InputName": "tensors", "S3Input": 5}], "ProcessingResources": 5}',
        '{"ProcessingInputs": [{"InputName": "tensors", "S3Input": {"S3Uri": 5}}], "ProcessingJobArn": 5}',
    ],
)
def test_odd_but_readable_files_do_no_harm(root, content):
    (root / "config" / "processingjobconfig.json").write_text(content)

    assert load_container(root, {}, RULES).job.trial.endswith("tensors")


@pytest.mark.parametrize("content", ["", "[]", "{"])
@pytest.mark.parametrize("name", ["processingjobconfig.json", "resourceconfig.json"])
def test_files_that_cannot_be_read_are_mistakes(root, content, name):
    (root / "config" / name).write_text(content)

    (mistake,) = read_container(root, {}, RULES).mistakes
    assert mistake.where.endswith(name)


def test_mistakes_leave_known_where_to_report_them_and_for_which_rules(root):
    reading = read_container(
        root, {"rule_to_invoke": "DeadLayr", "RULE_EVALUATOR_OUTPUT": "/there", "RULE_EVALUATOR_FOLOW": "1"}, RULES
    )

    assert (
        reading.config,
        reading.output,
        reading.asked_for,
        reading.flat_output,
        len(reading.mistakes),
    ) == (None, "/there", (("DeadLayr", "DeadLayr"),), True, 2)


def test_every_rule_that_was_asked_for_is_known_although_one_is_mistaken(root):
    rule_file(root, "Overfit", "Nothing")

    assert read_container(root, {}, RULES).asked_for == (("Overfit", "Overfit"), ("Nothing", "Nothing"))


def test_a_rule_file_of_the_environment_writes_directly_into_the_output_folder(root):
    (root / "mine.py").write_text("raise RuntimeError('imported')")
    given = {"source_s3_uri": str(root / "mine.py"), "rule_to_invoke": "check_accuracy", "threshold": "20.0"}
    job_file(root, **given, odd="1")

    config = load_container(root, {**given, "odd": "1", "HOME": "/root", "HF_TOKEN": "x"}, RULES)

    (rule,) = config.job.rules
    assert (config.job.flat_output, rule.name, rule.candidate) == (True, "check_accuracy", False)
    assert rule.file is not None
    assert rule.request is not None
    assert (rule.file.path, rule.file.name, rule.file.offered) == (
        given["source_s3_uri"],
        "check_accuracy",
        {"HOME": "/root"},
    )
    assert rule.request.parameters == {"threshold": "20.0", "odd": "1"}


def test_a_rule_file_of_the_environment_is_not_used_beside_a_configuration_file(root):
    rule_file(root, "Overfit")

    config = load_container(root, {"source_s3_uri": "s3://a/b.py", "rule_to_invoke": "B"}, RULES)

    assert [rule.name for rule in config.job.rules] == ["Overfit"]
    assert "'rule_to_invoke' and 'source_s3_uri' are not used" in config.job.notes[0]


def test_a_rule_file_that_cannot_be_fetched_is_reported_for_the_rule_that_was_asked_for(root):
    reading = read_container(root, {"source_s3_uri": "s3://a/b.py", "rule_to_invoke": "Mine"}, RULES)

    assert (reading.config, reading.asked_for, reading.flat_output) == (None, (("Mine", "Mine"),), True)
    (mistake,) = reading.mistakes
    assert str(mistake).startswith("environment: rule file 's3://a/b.py': 'a' is not the name of a bucket")


def test_a_container_may_be_restricted_to_built_in_rules(root):
    job_file(root, RULE_EVALUATOR_ALLOW_USER_RULES="false")

    reading = read_container(root, {"source_s3_uri": "/there/mine.py"}, RULES)

    (mistake,) = reading.mistakes
    assert "this installation runs built-in rules only (allow_user_rules=false)" in str(mistake)
    assert (reading.user_rules, reading.asked_for) == (False, (("mine", "mine"),))
