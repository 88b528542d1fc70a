import pytest

from evaluator.config.environment import read_environment
from evaluator.config.request import RuleFile
from evaluator.config.spelling import edits
from tests.config.small_rules import RULES


def test_without_rule_to_invoke_the_environment_names_no_rule():
    assert read_environment({"threshold": "1", "thresold": "1"}, {"threshold": "1"}, RULES).request is None


def test_of_plain_variables_only_known_names_are_taken():
    environment = {
        "rule_to_invoke": "deadlayer",
        "threshold": "1e-8",
        "start_step": "5",
        "parameter_set": "recommended",
        "other_trial_0": "s3://a/b",
        "name": "mine",
        "HOME": "/root",
        "PATH": "/bin",
        "http_proxy": "x",
        "_": "x",
    }

    found = read_environment(environment, {}, RULES)

    assert (found.notes, found.mistakes) == ((), ())
    assert found.request is not None
    assert (found.request.use, found.request.shape, found.request.name) == ("deadlayer", "sagemaker", "mine")
    assert found.request.parameters == {
        "threshold": "1e-8",
        "start_step": "5",
        "parameter_set": "recommended",
        "other_trial_0": "s3://a/b",
    }


def test_all_of_the_processing_jobs_environment_was_meant():
    job = {"rule_to_invoke": "DeadLayer", "threshold": "1", "who_knows": "x", "RULE_EVALUATOR_FOLLOW": "false"}

    found = read_environment({"threshold": "2", "who_knows": "x", "HOME": "/"}, job, RULES)

    assert found.request is not None
    assert found.request.parameters == {"threshold": "2", "who_knows": "x"}


@pytest.mark.parametrize("variable", ["treshold", "num_step", "ony_nan", "steps_"])
def test_a_variable_close_to_a_known_name_is_noted(variable):
    found = read_environment({"rule_to_invoke": "DeadLayer", variable: "1"}, {}, RULES)

    assert [f"environment: variable {variable!r} is not used"] == [note.split(";")[0] for note in found.notes]


@pytest.mark.parametrize("variable", ["HOME", "THRESHOLD", "words", "cane", "RULE_EVALUATOR_OUTPUT"])
def test_a_variable_far_from_every_known_name_is_not(variable):
    assert read_environment({"rule_to_invoke": "DeadLayer", variable: "1"}, {}, RULES).notes == ()


def test_an_unknown_rule_is_a_mistake_with_the_nearest():
    (mistake,) = read_environment({"rule_to_invoke": "DeadLayr"}, {}, RULES).mistakes

    assert str(mistake).startswith("environment: rule 'DeadLayr' is not known; did you mean 'DeadLayer'?")


FILE = {"rule_to_invoke": "check_accuracy", "source_s3_uri": "/there/mine.py"}


def test_a_rule_file_is_asked_for_and_named_exactly():
    request = read_environment(FILE, {}, RULES).request

    assert request is not None
    assert (request.use, request.shape, request.parameters) == ("check_accuracy", "sagemaker", {})
    assert request.file == RuleFile("/there/mine.py", "check_accuracy")


def test_what_every_rule_takes_is_given_to_a_rule_file_and_the_rest_is_offered():
    environment = FILE | {
        "start_step": "5",
        "other_trial_0": "/other",
        "action_json": "[]",
        "name": "mine",
        "threshold": "20.0",
        "HOME": "/root",
        "AWS_REGION": "eu-west-1",
        "RULE_EVALUATOR_FOLLOW": "false",
        "my_api_key": "x",
        "HF_TOKEN": "x",
        "Secret": "x",
        "PASSWORDS": "x",
        "credentials": "x",
        "TEAM_WEBHOOK": "x",
    }

    found = read_environment(environment, {}, RULES)

    assert (found.notes, found.mistakes) == ((), ())
    assert found.request is not None
    assert found.request.name == "mine"
    assert found.request.parameters == {"start_step": "5", "other_trial_0": "/other", "action_json": "[]"}
    assert found.request.file == RuleFile(
        "/there/mine.py", "check_accuracy", offered={"threshold": "20.0", "HOME": "/root"}
    )


def test_the_processing_jobs_environment_is_given_to_a_rule_file_and_the_process_wins():
    job = FILE | {"threshold": "1", "token_limit": "2", "AWS_REGION": "x", "RULE_EVALUATOR_FOLLOW": "false"}

    found = read_environment({"threshold": "3", "HOME": "/root"}, job, RULES)

    assert found.request is not None
    assert found.request.file is not None
    assert found.request.parameters == {"threshold": "3", "token_limit": "2"}
    assert (found.request.file.path, found.request.file.offered) == ("/there/mine.py", {"HOME": "/root"})
    assert found.notes == ("environment: variable 'AWS_REGION' is not used: it is never a parameter of a rule file",)


@pytest.mark.parametrize("blank", [{}, {"rule_to_invoke": ""}, {"rule_to_invoke": " "}])
def test_a_rule_file_needs_no_rule_to_invoke(blank):
    found = read_environment({"source_s3_uri": "/there/mine.py"} | blank, {}, RULES)

    assert found.request is not None
    assert (found.request.use, found.request.file, found.asked_for) == ("mine", RuleFile("/there/mine.py"), "mine")


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("abc", "ab", 1),
        ("abc", "axc", 1),
        ("abc", "acb", 2),
        ("abc", "xyz", 3),
        ("a", "abcd", 3),
    ],
)
def test_edits_between_two_words(first, second, count):
    assert count == edits(first, second) == edits(second, first)
