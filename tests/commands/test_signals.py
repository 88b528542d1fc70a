"""Signals: the first one lets the job end in order, the second one ends the process."""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest

from evaluator.commands.signals import Signals
from tests.commands.program import (
    HEALTHY,
    TINY,
    check_outputs,
    findings,
    finish,
    log_lines,
    save,
    small_trial,
    start,
    wait_for,
    writer,
)

CONTINUE = (
    "--rule",
    "VanishingGradient:parameter_set=sagemaker,on_finding=continue",
    "--rule",
    "VanishingGradient:parameter_set=sagemaker,threshold=1e-30,name=quiet",
)
RULE = "VanishingGradient:parameter_set=sagemaker"
RULES = "DebugRuleEvaluationStatuses"
RAISES = """
from smdebug.rules.rule import Rule


class Raises(Rule):
    def invoke_at_step(self, step):
        raise ValueError(step)
"""
SLEEPY = ("--set", "poll_min=600", "--set", "poll_max=600", "--set", "late_grace=0")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_drain_takes_what_is_saved_and_ends_the_rest_as_stopped(tmp_path, number):
    one = writer(tmp_path / "trial")
    save(one, 0, TINY)
    process = start("run", tmp_path / "trial", *CONTINUE, "--follow", *SLEEPY, "--output", tmp_path / "out", "--json")
    lines = log_lines(process)
    wait_for(lines, "condition_met", step=0)
    for step in (1, 2, 3):
        save(one, step, TINY if step == 3 else HEALTHY)

    process.send_signal(number)
    wait_for(lines, "signal_received", signal=number.name)
    ran = finish(process)

    status = check_outputs(tmp_path / "out")
    assert ran.code == 1
    assert ran.document == status
    assert (status["job"]["ended_because"], status["job"]["steps"]["complete"]) == ("stop_signal", 4)
    assert [rule["RuleEvaluationStatus"] for rule in status["DebugRuleEvaluationStatuses"]] == [
        "IssuesFound",
        "Stopped",
    ]
    assert [line["step"] for line in findings(tmp_path / "out") if line["event"] == "met"] == [0, 3]


def test_stop_takes_nothing_more(tmp_path):
    one = writer(tmp_path / "trial")
    save(one, 0, TINY)
    process = start(
        *("run", tmp_path / "trial", *CONTINUE, "--follow", *SLEEPY, "--on-sigterm", "stop", "--output"),
        *(tmp_path / "out", "--exit-zero"),
    )
    lines = log_lines(process)
    wait_for(lines, "condition_met", step=0)
    save(one, 1, HEALTHY)

    process.terminate()
    ran = finish(process)

    status = check_outputs(tmp_path / "out")
    assert (ran.code, status["job"]["ended_because"]) == (0, "stop_signal")
    assert status["DebugRuleEvaluationStatuses"][1]["RuleEvaluationStatus"] == "Stopped"


def test_a_signal_while_waiting_for_the_trial_is_exit_0(tmp_path):
    process = start("run", tmp_path / "later", *CONTINUE, "--follow", *SLEEPY, "--output", tmp_path / "out")
    lines = log_lines(process)
    wait_for(lines, "job_started")

    process.terminate()
    ran = finish(process)

    status = check_outputs(tmp_path / "out")
    assert (ran.code, status["job"]["ended_because"]) == (0, "stop_signal")
    assert {rule["RuleEvaluationStatus"] for rule in status["DebugRuleEvaluationStatuses"]} == {"Stopped"}


def test_a_rule_in_error_is_exit_3_also_after_a_signal(tmp_path):
    (tmp_path / "raises.py").write_text(RAISES)
    one = writer(tmp_path / "trial")
    save(one, 0)
    process = start(
        *("run", tmp_path / "trial", *CONTINUE, "--rule-file", f"{tmp_path}/raises.py:Raises", "--follow", *SLEEPY),
        *("--output", tmp_path / "out"),
    )
    lines = log_lines(process)
    wait_for(lines, "rule_ended", rule_configuration="Raises")

    process.terminate()
    ran = finish(process)

    words = {rule["RuleConfigurationName"]: rule for rule in check_outputs(tmp_path / "out")[RULES]}
    assert ran.code == 3
    assert [words[name]["RuleEvaluationStatus"] for name in ("Raises", "quiet")] == ["Error", "Stopped"]


@pytest.mark.parametrize("command", ["run", "container"])
def test_a_job_that_stays_after_its_end_waits_for_a_signal_and_keeps_its_exit_code(tmp_path, command):
    root = tmp_path / "ml"
    trial, output = root / "processing" / "input" / "tensors", root / "processing" / "output" / "rule"
    small_trial(trial, [HEALTHY, TINY])
    by_hand = ["run", trial, "--follow", "--json", "--output", output, "--rule", RULE]
    arguments = by_hand if command == "run" else ["container", "--ml-root", root]
    environment = {} if command == "run" else {"rule_to_invoke": "VanishingGradient"}
    process = start(*arguments, "--after-end", "wait", environment=environment)
    lines = log_lines(process)
    wait_for(lines, "waiting_for_a_stop_signal")
    final = (output / "status.json").read_bytes()

    process.terminate()
    ran = finish(process)

    assert (ran.code, json.loads(final)["job"]["ended_because"]) == (1, "all_rules_ended")
    assert (output / "status.json").read_bytes() == final
    # what a reader of standard output waits for came before the wait
    assert (ran.out == "") if command == "container" else (ran.document == json.loads(final))


def test_a_second_signal_is_exit_130_whatever_the_program_is_stuck_in(tmp_path):
    """Nobody reads the status that it prints, which is longer than a pipe holds, so it never comes to its end."""
    small_trial(tmp_path / "trial", [HEALTHY])
    rules = [{"use": "VanishingGradient", "name": f"rule {number} {'x' * 200}"} for number in range(200)]
    (tmp_path / "job.json").write_text(json.dumps({"rule": rules}))
    process = start(
        *("run", tmp_path / "trial", "--config", tmp_path / "job.json", "--follow", *SLEEPY, "--json"),
        *("--output", tmp_path / "out"),
    )
    lines = log_lines(process)
    wait_for(lines, "job_started")

    process.terminate()
    wait_for(lines, "job_ended")
    process.terminate()

    assert process.wait(timeout=60) == 130
    process.communicate()


def test_a_signal_that_came_early_is_not_lost():
    asked = threading.Event()
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        signals.call(asked.set)

        assert asked.wait(60)


def test_handlers_are_left_as_they_were():
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]

    with Signals():
        pass

    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == before


def test_outside_the_main_thread_nothing_is_listened_to():
    came = []

    def use() -> None:
        with Signals() as signals:
            signals.call(lambda: came.append(1))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(60)

    assert (thread.is_alive(), came) == (False, [])
