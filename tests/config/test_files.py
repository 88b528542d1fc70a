import json

import pytest

from evaluator.config.files import read_config_file
from evaluator.config.request import RuleFile, RuleRequest

SDK = {
    "RuleConfigurationName": "VanishingGradient",
    "RuleEvaluatorImage": "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest",
    "RuleParameters": {"rule_to_invoke": "VanishingGradient", "threshold": "20.0"},
}


@pytest.fixture
def read(tmp_path):
    def _read(content, name="job.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return read_config_file(str(path))

    return _read


def texts(content):
    return [str(mistake).split("job.")[-1] for mistake in content.mistakes]


def test_sagemakers_list_is_taken_as_the_sdk_sends_it(read):
    content = read({"DebugRuleConfigurations": [SDK]})

    assert [] == content.mistakes == content.notes
    (request,) = content.requests
    assert (
        request.use,
        request.parameters,
        request.shape,
        request.name,
    ) == ("VanishingGradient", {"threshold": "20.0"}, "sagemaker", "VanishingGradient")


def test_every_documented_field_is_tolerated(read):
    rule = SDK | {"LocalPath": "/a", "S3OutputPath": "s3://a/b", "InstanceType": "ml.t3.medium", "VolumeSizeInGB": 30}

    content = read({"DebugRuleConfigurations": [rule], "DebugHookConfig": {"S3OutputPath": "s3://a/b"}})

    assert content.mistakes == []
    assert [note.split(": ")[2 if "Local" in note else 1].split(" and is")[0] for note in content.notes] == [
        "LocalPath and S3OutputPath not used",
        "'DebugHookConfig' is for the training job",
    ]


def test_action_and_other_trials_stay_with_the_request(read):
    parameters = {"other_trial_0": "s3://a/b", "rule_to_invoke": "SimilarAcrossRuns", "action_json": "[]"}

    content = read({"DebugRuleConfigurations": [SDK | {"RuleParameters": parameters}]})

    assert content.requests[0].parameters == {"other_trial_0": "s3://a/b", "action_json": "[]"}


def test_profiler_rules_are_listed_as_not_evaluated(read):
    content = read({"ProfilerRuleConfigurations": [SDK | {"RuleConfigurationName": "ProfilerReport"}]})

    assert (content.requests, content.mistakes) == ([], [])
    assert [note.split(": ")[2] for note in content.notes] == ["'ProfilerReport' is not evaluated"]


OUR_TOML = """
[[rule]]
use = "VanishingGradient"
threshold = 1e-8
severity = "warning"

[[rule]]
use = "VanishingGradient"
name = "mine"
collection_names = ["a", "b"]

[settings]
idle_timeout = 60

[labels]
team = "vision"
run = 7
"""
OUR_JSON = {
    "rule": [
        {"use": "VanishingGradient", "threshold": 1e-8, "severity": "warning"},
        {"use": "VanishingGradient", "name": "mine", "collection_names": ["a", "b"]},
    ],
    "settings": {"idle_timeout": 60},
    "labels": {"team": "vision", "run": 7},
}


@pytest.mark.parametrize(("content", "name"), [(OUR_TOML, "job.toml"), (OUR_JSON, "job.json")])
def test_our_shape_is_the_same_in_toml_and_json(read, tmp_path, content, name):
    result = read(content, name)

    where = f"{tmp_path / name}: rule"
    assert result.mistakes == []
    assert [
        RuleRequest(
            "VanishingGradient", {"threshold": 1e-8, "severity": "warning"}, "ours", f"{where}[0] VanishingGradient"
        ),
        RuleRequest("VanishingGradient", {"collection_names": ["a", "b"]}, "ours", f"{where}[1] mine", "mine"),
    ] == result.requests
    assert (result.settings, result.labels) == ({"idle_timeout": 60}, {"team": "vision", "run": "7"})


@pytest.mark.parametrize("name", ["job.json", "job.toml"])
def test_a_byte_order_mark_does_no_harm(read, name):
    assert read("\ufeff" + ("{}" if name.endswith("json") else ""), name).mistakes == []


def test_a_file_uri_is_a_path(tmp_path):
    (tmp_path / "a b.json").write_text("{}")

    assert read_config_file((tmp_path / "a b.json").as_uri()).mistakes == []


@pytest.mark.parametrize(
    ("content", "name", "what"),
    [
        ('{"a": 1,\n "b" 2}', "job.json", "json: is not JSON: line 2, column 6: Expecting ':' delimiter"),
        ("[[rule]]\nuse = \n", "job.toml", "toml: is not TOML: Invalid value (at line 2, column 7)"),
        ('{"settings": {"a": NaN}}', "job.json", "json: is not JSON: NaN is no JSON value; write it as a string"),
        ('{"rule": [], "rule": []}', "job.json", "json: is not JSON: 'rule' is given twice in one object"),
        ("[" * 100_000, "job.json", "json: is nested too deep"),
        ("{}", "job.yaml", "yaml: configuration file ends in '.yaml'; expected .json or .toml"),
    ],
)
def test_a_file_that_cannot_be_parsed_says_where(read, content, name, what):
    assert [what] == texts(read(content, name))


def test_bytes_that_are_no_text_are_a_mistake(tmp_path):
    (tmp_path / "job.json").write_bytes(b'{"a": "\xff"}')

    assert texts(read_config_file(str(tmp_path / "job.json"))) == ["json: is not JSON: not UTF-8 at byte 7"]


@pytest.mark.parametrize("location", ["missing.json", "ftp://host/job.json", "s3:///job.json"])
def test_a_file_that_cannot_be_read_is_a_mistake(location):
    assert len(read_config_file(location).mistakes) == 1


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "job.json").mkdir()

    assert texts(read_config_file(str(tmp_path / "job.json"))) == ["json: cannot be read: Is a directory"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ([], "holds a list, not named parts"),
        ({"DebugRulesConfigurations": []}, "write 'DebugRuleConfigurations' (AWS's guide has this misspelling)"),
        ({"rules": []}, "'rules' is not known; did you mean 'rule'?"),
        ({"rule": {"use": "A"}}, "expected a list (in TOML [[rule]])"),
        ({"rule": ["A"]}, "rule[0]: is a str; expected an object"),
        ({"rule": [{"threshold": 1}]}, "rule[0]: 'use' is missing"),
        ({"rule": [{"use": 5}]}, "rule[0]: 'use' is 5"),
        ({"rule": [{"use": "A", "name": 5}]}, "rule[0]: 'name' is 5"),
        ({"rule": [{"use": "A", "file": "x.py:X"}]}, "rule[0]: 'use' and 'file' are given"),
        ({"rule": [{"use": "A", "sha256": "0"}]}, "rule[0]: 'sha256' is given without 'file'"),
        ({"rule": [{"file": "x.py", "sha256": 5}]}, "rule[0]: 'sha256' is 5; expected 64 hexadecimal digits"),
        ({"rule": [{"file": 5}]}, "rule[0]: 'file' is 5; expected a Python file"),
        ({"rule": [{"file": "rules"}]}, "rule[0]: 'file' is 'rules'; expected a Python file"),
        ({"rule": [{"file": "x.py:a=1"}]}, "rule[0]: 'file' is 'x.py:a=1'; expected a Python file"),
        ({"settings": []}, "settings: is []; expected a table"),
        ({"labels": {"a": {}}}, "labels: 'a' is {}; expected text"),
        ({"DebugRuleConfigurations": [SDK | {"Name": "x"}]}, "'Name' is not known"),
        (
            {"DebugRuleConfigurations": [{"RuleParameters": {"rule_to_invoke": "A"}}]},
            "RuleConfigurationName is missing",
        ),
        ({"DebugRuleConfigurations": [SDK | {"RuleConfigurationName": "n" * 257}]}, "expected 1 to 256 characters"),
        ({"DebugRuleConfigurations": [SDK | {"RuleParameters": {}}]}, "VanishingGradient: 'rule_to_invoke' is missing"),
        ({"DebugRuleConfigurations": [SDK | {"RuleParameters": []}]}, "'rule_to_invoke' is missing"),
        ({"DebugRuleConfigurations": [SDK | {"RuleParameters": ["a"]}]}, "RuleParameters is ['a']"),
        (
            {"DebugRuleConfigurations": [SDK | {"RuleParameters": {"source_s3_uri": 5}}]},
            "'source_s3_uri' is 5; expected where the Python file with the rule is",
        ),
    ],
)
def test_what_is_not_in_either_shape_is_a_mistake(read, content, what):
    (mistake,) = texts(read(content))

    assert what in mistake


def test_all_mistakes_of_a_file_are_said_at_once_and_the_rest_is_understood(read):
    content = read({"labels": 1, "rule": [{"use": ""}, {"use": "A"}, {"file": "x"}], "seting": {}})

    assert (len(content.mistakes), [request.use for request in content.requests]) == (4, ["A"])


def test_a_rule_file_of_our_shape_is_found_from_the_folder_of_the_configuration(read, tmp_path):
    text = """
[[rule]]
name = "mine"
file = "rules/x.py:X"
sha256 = "ABC"
threshold = 20.0

[[rule]]
file = "/there/y.py"
"""

    content = read(text, "job.toml")

    assert content.mistakes == []
    first, second = content.requests
    assert (first.use, first.name, first.shape, first.parameters) == ("X", "mine", "ours", {"threshold": 20.0})
    assert first.file == RuleFile(str(tmp_path / "rules" / "x.py"), "X", "abc")
    assert (second.use, second.name, second.file) == ("y", None, RuleFile("/there/y.py"))
    assert (first.where[-12:], second.where[-9:]) == ("rule[0] mine", "rule[1] y")


def test_a_configuration_given_as_uri_has_a_folder_too(tmp_path):
    (tmp_path / "job.json").write_text(json.dumps({"rule": [{"file": "x.py"}, {"file": "file:///there/y.py"}]}))

    first, second = read_config_file((tmp_path / "job.json").as_uri()).requests

    assert (first.file, second.file) == (RuleFile(str(tmp_path / "x.py")), RuleFile("file:///there/y.py"))


def test_all_that_is_wrong_with_one_rule_file_is_told_at_once(read):
    content = read({"rule": [{"use": "A", "file": 5, "sha256": 5}]})

    assert len(content.mistakes) == 2


@pytest.mark.parametrize(
    ("source", "path"),
    [("x.py", "{folder}/x.py"), ("/there/x.py", "/there/x.py"), ("s3://bucket/x.py", "s3://bucket/x.py")],
)
def test_a_rule_file_of_sagemakers_shape_is_named_exactly(read, tmp_path, source, path):
    parameters = {"source_s3_uri": source, "rule_to_invoke": "check_accuracy", "threshold": "20.0"}

    content = read({"DebugRuleConfigurations": [SDK | {"RuleParameters": parameters}]})

    assert content.mistakes == []
    (request,) = content.requests
    assert (request.use, request.name, request.shape) == ("check_accuracy", "VanishingGradient", "sagemaker")
    assert request.parameters == {"threshold": "20.0"}
    assert request.file == RuleFile(path.format(folder=tmp_path), "check_accuracy")


def test_without_rule_to_invoke_the_only_rule_of_the_file_is_meant(read):
    (request,) = read({"DebugRuleConfigurations": [SDK | {"RuleParameters": {"source_s3_uri": "/x.py"}}]}).requests

    assert (request.use, request.file) == ("x", RuleFile("/x.py"))


def test_a_source_that_is_empty_is_not_given(read):
    parameters = {"source_s3_uri": "", "rule_to_invoke": "AllZero"}

    (request,) = read({"DebugRuleConfigurations": [SDK | {"RuleParameters": parameters}]}).requests

    assert (request.use, request.file) == ("AllZero", None)
