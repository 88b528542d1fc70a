"""What SageMaker hands to a rule container, and what it finds afterwards, on a folder instead of /opt/ml."""

from __future__ import annotations

import json

import pytest

from tests.commands.program import HEALTHY, TINY, small_trial
from tests.container.below_opt_ml import entry

CLASS = """
from smdebug.rules.rule import Rule


class Mine(Rule):
    def __init__(self, base_trial, other_trials=None, threshold="1", **others):
        super().__init__(base_trial, other_trials=other_trials)
        print(f"threshold={threshold!r} trials={len(other_trials)} others={sorted(others)}")

    def invoke_at_step(self, step):
        print(f"step={step}")
        return False
"""

ACTIONS = '[{"name": "stoptraining", "training_job_prefix": "My-Job"}, {"endpoint": "abc@x.com", "name": "email"}]'
AS_THE_SDK_SENDS_IT = ACTIONS.replace('"', '\\"')


def test_many_rules_in_one_container_have_a_folder_each_and_a_line_each_in_the_message(container):
    container.tensors(HEALTHY, TINY, HEALTHY)
    container.rules(
        entry("first", rule_to_invoke="VanishingGradient", threshold="1e-7"),
        entry("second", rule_to_invoke="VanishingGradient", threshold="1e-2"),
        entry("third", rule_to_invoke="ExplodingTensor"),
    )

    ran = container.run()

    output = container.root / "processing" / "output" / "rule"
    assert ran.code == 1
    assert [
        (rule["RuleConfigurationName"], rule["RuleEvaluationStatus"])
        for rule in container.status()["DebugRuleEvaluationStatuses"]
    ] == [("second", "IssuesFound"), ("first", "IssuesFound"), ("third", "NoIssuesFound")]
    assert sorted(path.parent.name for path in output.rglob("findings.jsonl")) == ["first", "second"]
    assert len(container.message.splitlines()) == 2


def test_one_rule_of_the_job_s_environment_alone_lies_directly_in_the_output(container):
    """The process's environment may lack what the configuration has, as when somebody starts the image by hand."""
    container.tensors(HEALTHY, TINY, HEALTHY)
    container.job({"rule_to_invoke": "VanishingGradient", "threshold": "1e-7"})

    ran = container.run()

    assert (ran.code, container.rule["RuleEvaluationStatus"]) == (1, "IssuesFound")
    assert (container.root / "processing" / "output" / "rule" / "findings.jsonl").exists()


@pytest.mark.parametrize("actions", [ACTIONS, AS_THE_SDK_SENDS_IT], ids=["plain", "escaped"])
@pytest.mark.parametrize("place", ["environment", "file"])
def test_actions_in_either_spelling_are_a_known_key_and_no_parameter(container, actions, place):
    container.tensors(HEALTHY, TINY, HEALTHY)
    if place == "environment":
        container.environment(rule_to_invoke="VanishingGradient", threshold="1e-7", action_json=actions)
    else:
        container.rules(entry("x", rule_to_invoke="VanishingGradient", threshold="1e-7", action_json=actions))

    ran = container.run()

    assert (ran.code, container.rule["RuleEvaluationStatus"]) == (1, "IssuesFound"), ran.err
    assert "action_json" not in container.rule["Parameters"]


def test_other_trials_of_the_environment_are_what_the_rule_compares_with(container):
    container.tensors()
    other = small_trial(container.root / "other", [HEALTHY] * 6)
    container.environment(rule_to_invoke="SimilarAcrossRuns", other_trial_0=str(other))

    ran = container.run()

    assert (ran.code, container.rule["RuleEvaluationStatus"]) == (0, "NoIssuesFound"), ran.err
    assert container.rule["Evaluation"]["evaluated"] > 0
    assert [str(other)] == [str(one) for one in container.status()["job"]["other_trials"]]


def test_only_the_steps_from_start_to_end_are_judged(container):
    container.tensors(TINY, HEALTHY, HEALTHY, HEALTHY, TINY)
    container.environment(rule_to_invoke="VanishingGradient", threshold="1e-7", start_step="1", end_step="4")

    ran = container.run()

    found = container.rule["Evaluation"]
    assert (ran.code, found["evaluated"], found["first_step"], found["last_step"]) == (0, 3, 1, 3)


def test_reserved_names_never_reach_the_class_of_a_rule_file(container):
    container.tensors()
    (container.root / "mine.py").write_text(CLASS)
    reserved = {
        "base_trial": "s3://elsewhere/trial",
        "action_json": AS_THE_SDK_SENDS_IT,
        "start_step": "2",
        "end_step": "4",
        "other_trial_0": str(small_trial(container.root / "other", [HEALTHY] * 6)),
    }
    container.job(
        {"source_s3_uri": str(container.root / "mine.py"), "rule_to_invoke": "Mine", "threshold": "20.0", **reserved}
    )

    ran = container.run()

    printed = (container.root / "processing" / "output" / "rule" / "output.txt").read_text()
    assert ran.code == 0, ran.err
    # other trials arrive as trials, and nothing else does
    assert "threshold='20.0' trials=1 others=[]" in printed
    assert [line for line in printed.splitlines() if line.startswith("step=")] == ["step=2", "step=3"]


def test_what_the_job_was_given_and_nobody_knows_is_listed(container):
    container.tensors()
    container.job({"rule_to_invoke": "VanishingGradient", "treshold": "1", "UNRELATED": "x"})
    container.environment(HOSTNAME_OF_NOBODY="y")

    container.run()

    assert sorted(container.rule["ignored_parameters"]) == ["UNRELATED", "treshold"]
    assert any("did you mean 'threshold'?" in note for note in container.status()["job"]["notes"])


@pytest.mark.parametrize(
    ("g1", "variables", "code", "start"),
    [
        ([HEALTHY] * 6, {"rule_to_invoke": "VanishingGradient"}, 0, None),
        ([HEALTHY, TINY], {"rule_to_invoke": "VanishingGradient"}, 1, "RuleEvaluationConditionMet: "),
        ([HEALTHY] * 6, {"rule_to_invoke": "Vanishing"}, 2, "ClientError: "),
        ([HEALTHY] * 6, {"rule_to_invoke": "TreeDepth"}, 3, "ClientError: "),
    ],
)
def test_exit_code_and_message_go_together(container, g1, variables, code, start):
    container.tensors(*g1)
    container.environment(**variables)

    ran = container.run()
    message = container.root / "output" / "message"

    assert ran.code == code, ran.err
    assert (message.read_text()[: len(start)] if start else None) == start
    assert message.exists() is (start is not None)


def test_the_message_is_whole_characters_within_its_limit(container):
    """ClientError is the end of a job whose message is no UTF-8."""
    container.tensors(HEALTHY, TINY, HEALTHY)
    names = [f"{number}-" + "ü" * 100 for number in range(20)]
    container.rules(*(entry(name, rule_to_invoke="VanishingGradient", threshold="1e-7") for name in names))

    container.run()

    content = (container.root / "output" / "message").read_bytes()
    assert 900 < len(content) <= 1024
    assert content.decode().startswith("RuleEvaluationConditionMet: ")


def test_a_message_of_a_container_before_does_not_stay(container):
    (container.root / "output").mkdir()
    (container.root / "output" / "message").write_text("RuleEvaluationConditionMet: of yesterday")
    container.tensors()
    container.environment(rule_to_invoke="ExplodingTensor")

    assert container.run().code == 0
    assert not (container.root / "output" / "message").exists()


def test_a_message_that_cannot_be_written_is_said_at_the_start(container):
    (container.root / "output").write_text("a file where the folder should be")
    container.tensors()
    container.environment(rule_to_invoke="ExplodingTensor")

    ran = container.run()

    events = [json.loads(line)["event"] for line in ran.err.splitlines()]
    assert ran.code == 0
    assert events.index("message_cannot_be_written") < events.index("job_started")
