import pytest

from evaluator.config.environment import edits, read_environment
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


def test_a_users_rule_file_is_not_supported_yet():
    (mistake,) = read_environment({"rule_to_invoke": "Mine", "source_s3_uri": "s3://a/b.py"}, {}, RULES).mistakes

    assert "users' rule files are not supported yet by this version" in str(mistake)


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
