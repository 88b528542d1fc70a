import json

import pytest

from evaluator.config.job_config import JobConfig
from evaluator.config.load import Arguments, load
from evaluator.errors import InputError
from tests.config.small_rules import RULES


def loaded(environment=None, **arguments):
    return load(Arguments(**{"trial": "run1", **arguments}), environment or {}, RULES)


def refused(environment=None, **arguments):
    with pytest.raises(InputError) as error:
        loaded(environment, **arguments)
    return [str(mistake) for mistake in error.value.mistakes]


def test_a_trial_alone_makes_every_rule_a_candidate():
    config = loaded()

    assert isinstance(config, JobConfig)
    assert [(name, True) for name in RULES] == [(rule.name, rule.candidate) for rule in config.rules]
    assert (
        config.trial,
        config.fail_on,
        config.on_sigterm,
        config.labels,
        config.notes,
        config.flat_output,
    ) == ("run1", "info", "drain", {}, (), False)
    assert (config.origins["trial"], config.origins["output"]) == ("command line", "default")


def test_rules_of_the_command_line_stand_before_those_of_the_file(tmp_path):
    path = tmp_path / "job.json"
    path.write_text(
        json.dumps({"rule": [{"use": "overfit"}], "labels": {"a": "1", "b": "1"}, "settings": {"relist": 9}})
    )

    config = loaded(config=str(path), rules=["Overfit:patience=2", "DeadLayer"], labels=["b=2=3"])

    assert [rule.name for rule in config.rules] == ["Overfit", "DeadLayer", "Overfit-2"]
    assert config.labels == {"a": "1", "b": "2=3"}
    assert (config.settings.relist, config.origins["relist"]) == (9, "configuration file")


def test_a_file_without_rules_leaves_every_rule_a_candidate(tmp_path):
    (tmp_path / "job.toml").write_text("[settings]\nrelist = 9")

    assert len(RULES) == len(loaded(config=str(tmp_path / "job.toml")).rules)


def test_options_and_set_give_settings():
    config = loaded(follow=True, output="there", set=["late_grace=0", "memory_budget=1 GiB"], until_pid=7)

    assert (
        config.settings.follow,
        config.settings.output,
        config.settings.late_grace,
        config.settings.memory_budget,
        config.until_pid,
    ) == (True, "there", 0, 2**30, 7)


def test_the_training_job_is_a_setting_and_the_region_is_the_one_of_the_environment():
    environment = {"RULE_EVALUATOR_TRAINING_JOB_NAME": "job-1", "AWS_REGION": "eu-central-1"}
    config = load(Arguments(trial="t", follow=True, after_end="wait"), environment)

    assert (config.settings.training_job_name, config.region, config.after_end) == ("job-1", "eu-central-1", "wait")
    assert loaded(follow=True, training_job="job-2").settings.training_job_name == "job-2"


def test_the_trial_may_come_from_the_environment():
    assert loaded({"RULE_EVALUATOR_TRIAL": "there"}, trial=None).trial == "there"


def test_job_wide_other_trials_are_added_to_rules_that_take_some():
    config = loaded(rules=["SimilarRuns:other_trials=a", "Overfit"], other_trials=["b,c", "a"])

    assert [rule.other_trials for rule in config.rules] == [("a", "b,c"), ()]


def test_other_trials_that_no_rule_takes_are_noted():
    (note,) = loaded(rules=["Overfit"], other_trials=["b"]).notes

    assert "no rule of this job compares with other trials" in note


def test_notes_of_rules_and_environment_are_kept(tmp_path):
    rule = {"RuleConfigurationName": "x", "RuleParameters": {"rule_to_invoke": "Overfit", "odd": "1"}}
    (tmp_path / "job.json").write_text(json.dumps({"DebugRuleConfigurations": [rule]}))

    config = loaded({"RULE_EVALUATOR_CONFIG": "c.json"}, config=str(tmp_path / "job.json"))

    assert [part in note for part, note in zip(("'odd'", "RULE_EVALUATOR_CONFIG"), config.notes, strict=True)] == [
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("arguments", "fail_on"),
    [
        ({}, "info"),
        ({"fail_on": "Critical"}, "critical"),
        ({"fail_on": "never"}, "never"),
        ({"exit_zero": True}, "never"),
    ],
)
def test_the_least_severity_that_counts(arguments, fail_on):
    assert fail_on == loaded(**arguments).fail_on


def test_all_mistakes_are_said_at_once(tmp_path):
    (tmp_path / "job.toml").write_text('[[rule]]\nuse = "Overfitt"\n[settings]\nrelists = 1')

    mistakes = refused(
        {"RULE_EVALUATOR_FOLOW": "1"},
        trial=None,
        config=str(tmp_path / "job.toml"),
        rules=["DeadLayer:treshold=1", "DeadLayer:x", "Overfit:name=a", "DeadLayer:name=a"],
        set=["idle_timeout=soon", "relist"],
        labels=["x"],
        fail_on="fatal",
        on_sigterm="wait",
        until_pid=0,
    )

    parts = (
        "no trial is given",
        "RULE_EVALUATOR_FOLOW",
        "'Overfitt' is not known; did you mean 'Overfit'?",
        "setting 'relists' is not known; did you mean 'relist'?",
        "'treshold' is not known; did you mean 'threshold'?",
        "has 'x' where key=value should stand",
        "'a' is given twice",
        "'soon' does not fit",
        "--set: 'relist' has no name and value",
        "--label: 'x' has no name and value",
        "--fail-on: 'fatal' does not fit",
        "--on-sigterm: 'wait' does not fit",
        "0 is no process id",
        "has no meaning when nothing is followed",
    )
    assert len(parts) == len(mistakes)
    assert [part for part in parts if not any(part in mistake for mistake in mistakes)] == []


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"output": "a", "set": ["output=b"]}, "--set: 'output' is given by an argument of its own too"),
        ({"set": ["relist=1", "relist=2"]}, "--set: 'relist' is given twice"),
        ({"set": ["=1"]}, "--set: '=1' has no name and value"),
        ({"config": "missing.json"}, "missing.json: there is no such file"),
        ({"trial": ""}, "command line: trial: '' does not fit"),
        ({"rules": ["Nothing"]}, "--rule: rule 'Nothing' is not known; rules: DeadLayer, Overfit, SimilarRuns"),
        ({"set": ["checkpoint_interval=1"]}, "setting 'checkpoint_interval' is not known"),
        ({"training_job": "a"}, "--training-job: has no meaning when nothing is followed; add --follow"),
        ({"training_job": "a b", "follow": True}, "command line: training_job_name: 'a b' does not fit"),
        ({"after_end": "wait"}, "--after-end: has no meaning when nothing is followed; add --follow"),
        ({"after_end": "stay"}, "--after-end: 'stay' does not fit; expected exit or wait"),
    ],
)
def test_a_single_mistake_is_said_alone(arguments, what):
    (mistake,) = refused(**arguments)

    assert what in mistake


@pytest.fixture
def rule_file(tmp_path):
    (tmp_path / "mine.py").write_text("raise RuntimeError('imported')")
    return tmp_path / "mine.py"


def test_a_rule_file_is_one_more_rule_and_not_every_rule_beside_it(rule_file):
    config = loaded(rule_files=[f"{rule_file}:Mine:threshold=1"])

    (rule,) = config.rules
    assert (rule.name, rule.candidate, rule.shown["threshold"]["value"]) == ("Mine", False, "1")
    assert rule.file is not None
    assert rule.request is not None
    assert (rule.file.path, rule.request.where) == (str(rule_file), f"--rule-file {rule_file}:Mine")


def test_rule_files_are_named_by_name_or_stem_and_numbered_where_they_are_alike(rule_file, tmp_path):
    (tmp_path / "job.toml").write_text('[[rule]]\nfile = "mine.py"\n[[rule]]\nname = "first"\nfile = "mine.py:Mine"')

    config = loaded(
        rules=["DeadLayer"],
        rule_files=[f"{rule_file}:Mine", f"{rule_file}:Mine:x=1", f"{rule_file}", f"{rule_file}:Mine:name=own"],
        config=str(tmp_path / "job.toml"),
    )

    assert [rule.name for rule in config.rules] == ["DeadLayer", "Mine", "Mine-2", "mine", "own", "mine-2", "first"]
    assert {rule.file.path for rule in config.rules if rule.file is not None} == {str(rule_file)}


def test_other_trials_of_the_job_are_those_of_a_rule_file_too(rule_file):
    config = loaded(rule_files=[f"{rule_file}:other_trial_0=a"], other_trials=["b"])

    assert (config.rules[0].other_trials, config.notes) == (("a", "b"), ())


def test_mistakes_of_rule_files_stand_among_all_others(rule_file):
    mistakes = refused(
        rules=["DeadLayr"],
        rule_files=["mine", "s3://b/mine.py:Mine", f"{rule_file}:Mine:start_step=x"],
        set=["relist=never"],
    )

    assert len(mistakes) == 5
    for what in (
        "--rule-file 'mine': names no file that ends in .py",
        "--rule-file s3://b/mine.py:Mine: rule file 's3://b/mine.py': 'b' is not the name of a bucket",
        f"--rule-file {rule_file}:Mine: parameter 'start_step' is 'x'",
    ):
        assert [mistake for mistake in mistakes if mistake.startswith(what)], what


def test_a_rule_file_that_could_not_be_understood_does_not_make_every_rule_a_candidate():
    assert len(refused(rule_files=["mine"])) == 1


def test_rule_files_are_refused_where_only_built_in_rules_may_run(rule_file, tmp_path):
    entries = {"rule": [{"name": "a", "file": "mine.py"}, {"use": "DeadLayer"}]}
    sagemakers = {"RuleConfigurationName": "b", "RuleParameters": {"source_s3_uri": "s3://x/y.py"}}
    (tmp_path / "job.json").write_text(json.dumps({**entries, "DebugRuleConfigurations": [sagemakers]}))

    mistakes = refused(
        {"RULE_EVALUATOR_ALLOW_USER_RULES": "false"}, rule_files=[str(rule_file)], config=str(tmp_path / "job.json")
    )

    assert len(mistakes) == 3
    assert all("runs built-in rules only (allow_user_rules=false); name a built-in rule" in one for one in mistakes)
