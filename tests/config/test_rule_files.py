import hashlib
import os
from pathlib import Path

import pytest

from evaluator.config.parameters import RuleConfiguration, configure, configure_file, with_offered
from evaluator.config.request import RuleFile, RuleRequest
from evaluator.config.rule_files import fetch_rule_file
from evaluator.errors import Mistake
from tests.config.small_rules import LAYER, SIMILAR


@pytest.fixture
def path(tmp_path):
    """A file that would raise if it were imported."""
    (tmp_path / "mine.py").write_text("raise RuntimeError('imported')")
    return tmp_path / "mine.py"


def asked(location, parameters=None, shape="ours", name="Mine", **how):
    file = RuleFile(str(location), name, **how)
    return RuleRequest("Mine", parameters or {}, shape, "job.toml", file=file)


def configured(*args, **how):
    configuration = configure_file(asked(*args, **how))
    assert isinstance(configuration, RuleConfiguration)
    return configuration


def mistakes_of(*args, **how):
    mistakes = configure_file(asked(*args, **how))
    assert isinstance(mistakes, list)
    return [str(mistake) for mistake in mistakes]


def test_a_file_is_configured_without_being_imported(path):
    configuration = configured(path, {"threshold": "20.0", "end_step": "9", "severity": "warning"})

    assert configuration.file == RuleFile(str(path), "Mine")
    assert (configuration.name, configuration.rule.name, configuration.candidate) == ("Mine", "Mine", False)
    assert (configuration.loop.end_step, configuration.severity) == (9, "warning")
    assert {name: one["value"] for name, one in configuration.shown.items()} == {
        "threshold": "20.0",
        "end_step": 9,
        "severity": "warning",
    }
    assert {one["from"] for one in configuration.shown.values()} == {"configuration"}


def test_without_a_severity_a_rule_of_a_file_is_an_error(path):
    assert configured(path).severity == "error"


def test_the_stand_in_needs_nothing_and_refuses_to_judge(path):
    rule = configured(path).rule

    assert list(rule.requires(rule.parameters())) == []
    assert rule.condition is not None
    with pytest.raises(TypeError, match="in its own process"):
        rule.condition(rule.parameters())


def test_the_request_goes_on_to_the_process_that_loads_the_file(path):
    uri = asked(path.as_uri(), {"threshold": "1"})

    configuration = configure_file(uri)

    assert isinstance(configuration, RuleConfiguration)
    assert configuration.request is not None
    assert configuration.request.parameters == {"threshold": "1"}
    assert configuration.request.file == configuration.file == RuleFile(str(path), "Mine")


def test_other_trials_are_taken_in_every_spelling(path):
    assert configured(path, {"other_trial_0": "a", "other_trials": "b,c"}).other_trials == ("a", "b", "c")


def test_what_says_not_given_and_what_is_no_parameter_is_not_shown(path):
    parameters = {
        "a": "None",
        "base_trial": "x",
        "action_json": "[]",
        "other_trial_0": "y",
        "parameter_set": "sagemaker",
    }

    assert configured(path, parameters, "sagemaker").shown == {}


def test_values_of_variables_that_sound_like_secrets_are_not_shown(path):
    assert configured(path, {"HF_TOKEN": "x", "api_key": "x", "limit": "1"}, "sagemaker").shown.keys() == {"limit"}
    assert configured(path, {"token_thresholds": "50"}, "command line").shown.keys() == {"token_thresholds"}


def test_all_mistakes_are_found_at_once(path):
    wrong = {"start_step": "-1", "exclude_regex": "(", "on_finding": "end", "severity": "bad", "parameter_set": "ours"}

    mistakes = mistakes_of(path.with_name("other.py"), wrong, name="not a name", sha256="0" * 63)

    assert all(mistake.startswith("job.toml: ") for mistake in mistakes)
    for what in (
        "'not a name' is no name of a class or RULE",
        "sha256 '" + "0" * 63 + "' does not fit; expected 64 hexadecimal digits",
        "other.py' does not exist; give the path of a Python file",
        "parameter 'start_step' is '-1'",
        "parameter 'exclude_regex' is '('",
        "parameter 'on_finding' is 'end'",
        "parameter 'severity' is 'bad'",
        "parameter 'parameter_set' is 'ours'",
    ):
        assert [mistake for mistake in mistakes if what in mistake], what
    assert len(mistakes) == 8


def test_an_end_before_the_start_leaves_no_step(path):
    (mistake,) = mistakes_of(path, {"start_step": "5", "end_step": "5"})

    assert "so no step would be judged" in mistake


@pytest.mark.parametrize(
    ("location", "what"),
    [
        ("there/", "does not end in .py; give the one Python file that the rule is in, not a folder or prefix"),
        ("there/rule.pyc", "does not end in .py"),
        ("there/rule.PY", "does not end in .py"),
        (
            "s3://bucket/rules/",
            "does not end in .py; give the one Python file that the rule is in, not a folder or prefix",
        ),
        ("s3://b/rule.py", "rule file 's3://b/rule.py': 'b' is not the name of a bucket; s3://BUCKET/PREFIX"),
        (
            "https://host/rule.py",
            "is at https://, which is not supported; give a local path, a file:// or an s3:// URI",
        ),
        ("there/rule.py", "does not exist"),
        ("a\0.py", "cannot be read"),
    ],
)
def test_a_location_that_is_no_python_file_is_a_mistake(location, what):
    (mistake,) = mistakes_of(location)

    assert mistake.startswith(f"job.toml: rule file {location!r}")
    assert what in mistake


def test_a_folder_or_pipe_called_like_a_file_is_a_mistake(tmp_path):
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")

    for name in ("folder.py", "pipe.py"):
        assert "is no file; give the Python file" in mistakes_of(tmp_path / name)[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_a_mistake(path):
    path.chmod(0)

    assert "cannot be read: Permission denied" in mistakes_of(path)[0]


def test_the_content_must_have_the_given_sha256(path):
    right = hashlib.sha256(path.read_bytes()).hexdigest()

    assert configured(path, sha256=right).file == RuleFile(str(path), "Mine", right)
    (mistake,) = mistakes_of(path, sha256="0" * 64)
    assert f"has another sha256 than the one given: {right}" in mistake


@pytest.mark.parametrize("form", ["path", "relative", "uri"])
def test_a_local_file_is_fetched_as_an_absolute_path(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a b.py"

    location = {"path": str(path), "relative": "a b.py", "uri": path.as_uri()}[form]

    assert fetch_rule_file(location) == path


def test_what_cannot_be_fetched_is_a_mistake():
    assert isinstance(fetch_rule_file("https://host/x.py"), Mistake)
    assert fetch_rule_file("x.py") == Path.cwd() / "x.py"


def test_offered_variables_that_the_rule_takes_count_as_parameters_and_given_ones_win(path):
    offered = {"threshold": "1", "steps": "7", "HOME": "/root", "action_json": "[]", "start_step": "9"}
    request = asked(path, {"threshold": "2", "odd": "x"}, "sagemaker", offered=offered)

    assert with_offered(request, LAYER).parameters == {"threshold": "2", "odd": "x", "steps": "7"}


def test_a_request_without_offered_variables_stays_as_it_is(path):
    request = asked(path, {"threshold": "2"})

    assert with_offered(request, LAYER) == request


def test_the_real_rule_judges_the_parameters_of_its_file(path):
    request = with_offered(asked(path, {"odd": "1"}, "sagemaker", offered={"threshold": "3", "step": "4"}), LAYER)

    configuration = configure(request, LAYER)

    assert isinstance(configuration, RuleConfiguration)
    assert configuration.parameters.model_dump()["threshold"] == 3
    assert configuration.ignored == ("odd",)
    assert "job.toml: variable 'step' is not used; did you mean 'steps'?" in configuration.notes


@pytest.mark.parametrize("shape", ["ours", "command line"])
def test_an_unknown_parameter_of_a_file_is_a_mistake_with_the_nearest(path, shape):
    mistakes = configure(asked(path, {"treshold": "1"}, shape), LAYER)

    assert isinstance(mistakes, list)
    assert str(mistakes[0]).startswith("job.toml: parameter 'treshold' is not known; did you mean 'threshold'?")


@pytest.mark.parametrize("name", ["source_s3_uri", "rule_to_invoke", "base_trial"])
def test_keys_that_name_the_rule_never_count_as_parameters(path, name):
    in_sagemakers_shape = configure(asked(path, {name: "x"}, "sagemaker"), SIMILAR)
    in_ours = configure(asked(path, {name: "x"}), SIMILAR)

    assert isinstance(in_sagemakers_shape, RuleConfiguration)
    assert (in_sagemakers_shape.ignored, name in in_sagemakers_shape.shown) == ((), False)
    assert isinstance(in_ours, list)


def test_actions_are_the_jobs_and_its_process_hears_nothing_of_them(path):
    text = '[{"name": "email", "endpoint": "a@b.org"}]'
    configuration = configure_file(asked(path, {"action_json": text, "x": "1"}, "sagemaker"))

    assert isinstance(configuration, RuleConfiguration)
    assert configuration.request is not None
    assert [one.use for one in configuration.actions] == ["email"]
    assert (configuration.ignored, configuration.request.parameters) == ((), {"x": "1"})
