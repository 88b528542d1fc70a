"""Actions that a rule's own file makes: done where the job's configuration allows it, and not otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from evaluator.actions.base import Action, NotDone, Surroundings
from evaluator.actions.rule_file import ACTION, RuleFileParameters
from tests.actions.receivers import Receiver, do, operations, receiver
from tests.commands.program import call, check_outputs, findings, small_trial
from tests.sinks.made import make_finding

HERE = Surroundings("/trials/one", region="eu-central-1")
FILE = """
from smdebug.rules.rule import Rule

class Asks(Rule):
    def __init__(self, base_trial):
        text = '[{"name": "StopTraining", "training_job_prefix": "My-Job"}]'
        super().__init__(base_trial, action_str=text)

    def invoke_at_step(self, step):
        return step == 1
"""
ANY = pytest.CaptureFixture[str]


@pytest.fixture
def sagemaker(aws: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as one:
        aws.setenv("AWS_REGION", "eu-central-1")
        aws.setenv("AWS_ENDPOINT_URL_SAGEMAKER", one.url)
        yield one
    structlog.reset_defaults()


def evaluate(capsys: ANY, folder: Path, *more: object) -> dict[str, Any]:
    """The status of the rule of the file, over a run that it fires on."""
    (folder / "asks.py").write_text(FILE)
    rules = ("--rule-file", folder / "asks.py", "--rule", "VanishingGradient:parameter_set=sagemaker")
    ran = call(capsys, "run", small_trial(folder / "trial"), *rules, *more, "--output", folder / "out")
    assert ran.code == 1
    status = check_outputs(folder / "out")
    return {one["RuleConfigurationName"]: one for one in status["DebugRuleEvaluationStatuses"]}


def test_where_it_is_allowed_it_is_done_and_kept(tmp_path, sagemaker: Receiver, capsys: ANY):
    rules = evaluate(capsys, tmp_path, "--action", "rule_file")
    (action,) = rules["asks"]["Actions"]

    assert operations(sagemaker.received) == [("StopTrainingJob", {"TrainingJobName": "My-Job"})]
    assert (action["action"], action["result"]) == ("rule_file", "done")
    assert action["details"] == {"done": [{"use": "stop_training", "training_job": "My-Job"}]}
    assert rules["VanishingGradient"]["Actions"] == []


def test_without_that_the_file_can_do_nothing_and_the_finding_says_what_it_asked_for(
    tmp_path, sagemaker: Receiver, capsys: ANY
):
    rules = evaluate(capsys, tmp_path)
    (finding,) = findings(tmp_path / "out", "asks")

    assert (sagemaker.received, rules["asks"]["Actions"]) == ([], [])
    assert finding["details"]["actions"] == [{"name": "stoptraining", "training_job_prefix": "My-Job"}]


def asked(*entries: object) -> Any:
    return make_finding(details={"actions": list(entries)})


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"name": "command", "argv": ["true"]}, "command: is none that a rule file can ask for"),
        ({"name": "webhook", "url_file": "/etc/passwd"}, "webhook: is none that a rule file can ask for"),
        ({"name": "email", "endpoint": "nobody"}, "email: its parameters do not fit"),
        ({"name": "stoptraining", "training_job_prefix": "a b"}, "stoptraining: its parameters do not fit"),
        ({"name": "sms", "endpoint": "+1", "more": 1}, "sms: its parameters do not fit"),
        ("email", "an action without a name: is none"),
    ],
)
def test_what_a_configuration_could_not_say_is_not_done(sagemaker: Receiver, entry: object, why: str):
    with pytest.raises(NotDone, match=why):
        do(ACTION, finding=asked(entry), around=HERE)

    assert sagemaker.received == []


def test_one_that_fails_does_not_keep_the_others(sagemaker: Receiver):
    stop = {"name": "stoptraining", "training_job_prefix": "My-Job"}
    with pytest.raises(NotDone, match="command"):
        do(ACTION, finding=asked({"name": "command"}, stop), around=HERE)

    assert len(sagemaker.received) == 1


def test_a_finding_that_asks_for_nothing_does_not_concern_it():
    action = Action("rule_file", "key", ACTION, RuleFileParameters())

    assert not action.concerns(make_finding())
    assert action.concerns(asked())
