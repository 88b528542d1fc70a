"""Which actions are asked for: in both spellings of SageMaker, in our shape, and as arguments; all mistakes at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluator.actions.base import Action
from evaluator.config.job_config import JobConfig
from evaluator.config.load import Arguments, load
from evaluator.errors import InputError
from evaluator.sagemaker.processing_job import read_container
from tests.config.small_rules import RULES

PLAIN = '[{"name": "StopTraining", "training_job_prefix": "My-Job"}, {"endpoint": "A.b@X.org", "name": "email"}]'
ESCAPED = PLAIN.replace('"', '\\"')


def loaded(environment: Mapping[str, str] | None = None, **arguments: Any) -> JobConfig:
    return load(Arguments(**{"trial": "run1", **arguments}), environment or {}, RULES)


def refused(environment: Mapping[str, str] | None = None, **arguments: Any) -> list[str]:
    with pytest.raises(InputError) as error:
        loaded(environment, **arguments)
    return [str(mistake) for mistake in error.value.mistakes]


def written(folder: Path, document: object) -> str:
    path = folder / "job.json"
    path.write_text(json.dumps(document))
    return str(path)


def toml(folder: Path, text: str) -> str:
    path = folder / "job.toml"
    path.write_text(text)
    return str(path)


def in_sagemakers_shape(folder: Path, text: object) -> str:
    parameters = {"rule_to_invoke": "DeadLayer", "action_json": text}
    entry = {"RuleConfigurationName": "mine", "RuleEvaluatorImage": "x", "RuleParameters": parameters}
    return written(folder, {"DebugRuleConfigurations": [entry]})


def told(actions: tuple[Action, ...]) -> list[tuple[str, str | None, str | None, dict[str, Any]]]:
    return [
        (one.name, one.rule, one.at_least, one.parameters.model_dump(exclude_unset=True, mode="json"))
        for one in actions
    ]


def test_nothing_is_done_unless_it_is_asked_for():
    assert loaded(rules=["DeadLayer"]).actions == ()


@pytest.mark.parametrize("text", [PLAIN, ESCAPED], ids=["plain", "escaped"])
def test_both_spellings_of_action_json_are_taken_and_values_keep_their_case(tmp_path, text):
    config = loaded(config=in_sagemakers_shape(tmp_path, text))

    assert told(config.actions) == [
        ("stop_training", "mine", None, {"training_job_prefix": "My-Job"}),
        ("email", "mine", None, {"endpoint": "A.b@X.org"}),
    ]
    assert (config.rules[0].ignored, config.notes) == ((), ())


@pytest.mark.parametrize("text", ["", " ", "None", "[]", None])
def test_an_action_json_without_any_is_none(tmp_path, text):
    assert loaded(config=in_sagemakers_shape(tmp_path, text)).actions == ()


def test_a_single_object_is_a_list_of_one(tmp_path):
    config = loaded(config=in_sagemakers_shape(tmp_path, '{"name": "sms", "endpoint": "+15550100"}'))

    assert told(config.actions) == [("sms", "mine", None, {"endpoint": "+15550100"})]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("[{", "action_json: is not JSON ("),
        ('["email"]', "action_json[0]: is 'email'; expected an object with a name"),
        ('[{"endpoint": "a@b.org"}]', "action_json[0]: action '' is not known"),
        ('[{"name": "emial", "endpoint": "a@b.org"}]', "action 'emial' is not known; did you mean 'email'?"),
        ('[{"name": "email"}]', "'endpoint' is missing"),
        ('[{"name": "sms", "endpoint": "5550100"}]', "endpoint '5550100' does not fit"),
        ('[{"name": "stoptraining"}]', "no training job is named; give training_job, or the setting training_job"),
        ("[" * 100_000, "action_json: is not JSON"),
    ],
)
def test_what_is_wrong_in_action_json_is_said_before_anything_is_found(tmp_path, text, mistake):
    (one,) = refused(config=in_sagemakers_shape(tmp_path, text))

    assert mistake in one
    assert one.startswith(str(tmp_path / "job.json"))


def test_the_environment_of_a_container_gives_the_actions_of_its_rule(tmp_path):
    environment = {"rule_to_invoke": "DeadLayer", "action_json": ESCAPED}
    reading = read_container(tmp_path, environment, RULES)

    assert reading.mistakes == ()
    assert reading.config is not None
    assert [(one.name, one.rule) for one in reading.config.job.actions] == [
        ("stop_training", "DeadLayer"),
        ("email", "DeadLayer"),
    ]


def test_a_container_takes_actions_for_all_rules_from_its_file(tmp_path):
    folder = tmp_path / "processing" / "input" / "config"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(json.dumps({"action": [{"use": "stop_file", "folder": "/x"}]}))
    reading = read_container(tmp_path, {}, RULES)

    assert reading.config is not None
    assert told(reading.config.job.actions) == [("stop_file", None, "error", {"folder": "/x"})]


def test_our_shape_has_actions_of_a_rule_and_of_all(tmp_path):
    config = loaded(
        config=toml(
            tmp_path,
            """
            [[rule]]
            use = "DeadLayer"
            actions = [{use = "command", argv = ["true", "a b"]}, {use = "stop_file"}]

            [[action]]
            use = "command"
            argv = ["true"]
            at_least = "Warning"

            [[action]]
            use = "email"
            endpoint = "a@b.org"
            """,
        )
    )

    assert told(config.actions) == [
        ("command", None, "warning", {"argv": ["true"]}),
        ("email", None, "error", {"endpoint": "a@b.org"}),
        ("command-2", "DeadLayer", None, {"argv": ["true", "a b"]}),
        ("stop_file", "DeadLayer", None, {}),
    ]


def test_arguments_have_the_grammar_of_rules():
    config = loaded(
        actions=['command:argv=["true", "a,b"],timeout=5,at_least=info', "command:argv=true 'a b'", "stop_file"]
    )

    assert told(config.actions) == [
        ("command", None, "info", {"argv": ["true", "a,b"], "timeout": 5}),
        ("command-2", None, "error", {"argv": ["true", "a b"]}),
        ("stop_file", None, "error", {}),
    ]


def test_the_same_action_has_the_same_key_in_every_run_and_another_one_has_not():
    keys = [one.key for one in loaded(actions=["command:argv=true", "command:argv=true x", "stop_file"]).actions]
    again = [one.key for one in loaded(actions=["stop_file", "command:argv=true x", "command:argv=true"]).actions]

    assert keys == again[::-1]
    assert len(set(keys)) == 3


def test_a_secret_comes_from_a_variable_and_is_shown_nowhere():
    config = loaded({"A_WEBHOOK": "https://x.org/hidden"}, actions=["webhook:shape=slack,url_variable=A_WEBHOOK"])
    (action,) = config.actions

    assert action.secrets["url"].read() == "https://x.org/hidden"
    assert "hidden" not in repr(config)


def test_a_secret_comes_from_a_file(tmp_path):
    (tmp_path / "url").write_text("https://x.org/hidden\n")
    (action,) = loaded(actions=[f"webhook:url_file={tmp_path / 'url'}"]).actions

    assert action.secrets["url"].read() == "https://x.org/hidden"


def test_pagerduty_needs_a_key_and_no_url():
    config = loaded({"PD_KEY": "k"}, actions=["webhook:shape=pagerduty,routing_key_variable=PD_KEY"])

    assert list(config.actions[0].secrets) == ["routing_key"]


@pytest.mark.parametrize(
    ("argument", "mistake"),
    [
        (
            "webhook:url=https://x.org/hidden",
            "--action webhook: 'url' may not stand here; it is a secret: give u",
        ),
        ("webhook", "--action webhook: no URL is named; give url_variable or url_file"),
        ("webhook:url_variable=A_TOKEN", "--action webhook: environment variable 'A_TOKEN' is not set"),
        ("webhook:url_variable=HOME", "--action webhook: variable 'HOME' would be seen by users' rule files"),
        ("webhook:url_variable=SET_KEY,url_file=/x", "--action webhook: url_variable and url_file are given"),
        ("webhook:shape=pagerduty", "--action webhook: no routing key is named"),
        ("webhook:url_variable=SET_KEY,routing_key_variable=SET_KEY", "--action webhook: a routing key is for PagerDu"),
        ("webhook:url_variable=SET_KEY,tries=0", "--action webhook: tries '0' does not fit; expected a number at leas"),
        ("webhook:url_variable=SET_KEY,urll=x", "--action webhook: parameter 'urll' is not known; did you mean 'url_"),
        ("webhook:url_variable=SET_KEY,at_least=bad", "--action webhook: at_least 'bad' does not fit; expected one of"),
        ("webhok", "--action webhok: action 'webhok' is not known; did you mean 'webhook'?"),
        ("command", "--action command: 'argv' is missing; The program and its arguments"),
        ("command:argv=no-such-program", "--action command: there is no program 'no-such-program' that may be run"),
        ("email:endpoint=nobody", "--action email: endpoint 'nobody' does not fit; The address"),
        ("stop_training", "--action stop_training: no training job is named"),
        ("stop_training:training_job=a,training_job_prefix=b", "--action stop_training: its parameters do not go tog"),
        ("email:name=x,endpoint=a@b.org", "--action email: parameter 'name' is not known"),
        (":x=y", "--action ':x=y': has no name; the form is KIND:key=value,key=value"),
        ("email:x", "--action 'email:x': has 'x' where key=value should stand; the form is KIND:key=value"),
    ],
)
def test_each_mistake_says_what_would_be_right(argument, mistake):
    (one,) = refused({"SET_KEY": "https://x.org", "HOME": "/root"}, actions=[argument])

    assert one.startswith(mistake)
    assert "hidden" not in one


def test_the_file_of_a_trial_on_s3_needs_a_folder():
    (one,) = refused(trial="s3://bucket/run", actions=["stop_file"])

    assert one.startswith("--action stop_file: the trial is at s3://bucket/run, where no script looks for a file STOP;")


def test_the_setting_names_the_training_job_to_stop():
    assert loaded(follow=True, training_job="job-1", actions=["stop_training"]).actions[0].name == "stop_training"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ('[[rule]]\nuse = "DeadLayer"\nactions = "email"', "actions: is 'email'; expected a list"),
        ('[[rule]]\nuse = "DeadLayer"\nactions = ["email"]', "actions[0]: is 'email'; expected a table"),
        (
            '[[rule]]\nuse = "DeadLayer"\nactions = [{use = "stop_file", at_least = "info"}]',
            "has no meaning for the",
        ),
        ('[[rule]]\nuse = "DeadLayer"\naction_json = "[]"', "parameter 'action_json' is not known"),
        ("[[action]]\nx = 1", "action[0]: 'use' is missing; the kind of action: command, email,"),
        ("action = 1", "action: is a int; expected a list"),
    ],
)
def test_mistakes_of_our_shape_say_where_they_are(tmp_path, text, mistake):
    (one,) = refused(config=toml(tmp_path, text))

    assert mistake in one


def test_all_mistakes_are_told_at_once(tmp_path):
    path = toml(tmp_path, '[[action]]\nuse = "emial"\n[[rule]]\nuse = "DeadLayr"')

    assert len(refused(config=path, actions=["webhook", "command"])) == 4
