"""run: verdicts, files, exit codes and mistakes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from evaluator.errors import StorageUnavailable
from evaluator.loop import Loop
from evaluator.output_folder import OutputFolder
from evaluator.storage.file import FileStore
from evaluator.testing import FakeClock
from evaluator.writer import TrialWriter
from tests.commands.program import (
    FAST,
    HEALTHY,
    TINY,
    TRIALS,
    call,
    check_outputs,
    findings,
    finish,
    log_lines,
    run,
    save,
    small_trial,
    start,
    wait_for,
    writer,
)

NAMED = ("--rule", "VanishingGradient:parameter_set=sagemaker")


def fast() -> list[str]:
    return [word for setting in FAST for word in ("--set", setting)]


# verdicts and exit codes


def test_a_finding_is_exit_1_with_files_and_a_table(tmp_path):
    trial = small_trial(tmp_path / "trial")

    ran = run("run", trial, *NAMED, "--output", tmp_path / "out")

    assert ran.code == 1
    assert "VanishingGradient" in ran.out
    assert "IssuesFound" in ran.out
    assert f"files: {tmp_path / 'out'}" in ran.out
    assert check_outputs(tmp_path / "out")["job"]["ended_because"] == "all_rules_ended"
    (finding,) = findings(tmp_path / "out")
    assert (finding["step"], finding["tensor"], finding["mode"]) == (2, "g1", "TRAIN")


def test_json_is_the_final_status_and_nothing_else(tmp_path):
    trial = small_trial(tmp_path / "trial")

    ran = run("run", trial, *NAMED, "--output", tmp_path / "out", "--json", "--label", "who=me")

    assert ran.document == check_outputs(tmp_path / "out")
    assert ran.document["labels"] == {"who": "me"}
    assert [json.loads(line)["event"] for line in ran.err.splitlines()] == [
        *("job_started", "condition_met", "rule_ended", "job_ended")
    ]


def test_without_output_the_folder_is_rule_output(tmp_path):
    small_trial(tmp_path / "trial")

    assert run("run", "trial", *NAMED, cwd=tmp_path).code == 1
    assert check_outputs(tmp_path / "rule-output")["trial"] == "trial"


def test_a_healthy_run_is_exit_0(tmp_path, capsys):
    trial = small_trial(tmp_path / "trial", [HEALTHY] * 3)

    ran = call(capsys, "run", trial, *NAMED, "--output", tmp_path / "out")

    assert (ran.code, ran.lines) == (0, [])
    assert "judged at 3 steps" in ran.out


def test_without_rules_every_built_in_one_that_applies_is_evaluated(tmp_path, capsys):
    ran = call(capsys, "run", TRIALS / "ddp_two_workers", "--output", tmp_path / "out", "--json", "--exit-zero")

    assert ran.code == 0
    assert "VanishingGradient" in [rule["Rule"] for rule in ran.document["DebugRuleEvaluationStatuses"]]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--fail-on", "critical"), 0),
        (("--fail-on", "never"), 0),
        (("--exit-zero",), 0),
        (("--fail-on", "error"), 1),
        (("--fail-on", "info"), 1),
    ],
)
def test_fail_on_says_which_findings_count(tmp_path, capsys, options, code):
    trial = small_trial(tmp_path / "trial")

    assert call(capsys, "run", trial, *NAMED, "--output", tmp_path / "out", *options).code == code


def test_rules_come_from_a_configuration_file_too(tmp_path, capsys):
    trial = small_trial(tmp_path / "trial")
    (tmp_path / "job.toml").write_text(
        '[[rule]]\nuse = "VanishingGradient"\nparameter_set = "sagemaker"\nname = "tiny"\nthreshold = 1e-12\n'
    )

    ran = call(capsys, "run", trial, *NAMED, "--config", tmp_path / "job.toml", "--output", tmp_path / "out", "--json")

    words = {
        one["RuleConfigurationName"]: one["RuleEvaluationStatus"] for one in ran.document["DebugRuleEvaluationStatuses"]
    }
    assert words == {"VanishingGradient": "IssuesFound", "tiny": "NoIssuesFound"}
    check_outputs(tmp_path / "out")


# rules that could not be evaluated


def test_shapes_only_is_exit_3_with_the_reason(tmp_path, capsys):
    ran = call(capsys, "run", TRIALS / "shapes_only", *NAMED, "--output", tmp_path / "out", "--json")

    (rule,) = ran.document["DebugRuleEvaluationStatuses"]
    assert (ran.code, rule["RuleEvaluationStatus"]) == (3, "Error")
    assert rule["StatusDetails"].startswith("InsufficientInformationForRuleInvocation: ")
    assert "only shapes were saved" in rule["StatusDetails"]
    check_outputs(tmp_path / "out")


def test_a_rule_without_tensors_says_what_it_looked_for_and_what_is_there(tmp_path, capsys):
    with TrialWriter(tmp_path / "trial", collections={"gradient": ["g"]}) as one:
        one.save(0, {"g": 1.0})

    ran = call(capsys, "run", tmp_path / "trial", *NAMED, "--output", tmp_path / "out", "--json")

    details = ran.document["DebugRuleEvaluationStatuses"][0]["StatusDetails"]
    assert ran.code == 3
    assert "no tensor of collection 'gradients' in 1 steps" in details
    assert "collections with saved tensors: gradient" in details


def test_a_rule_named_for_absent_tensors_names_the_nearest(tmp_path, capsys):
    trial = small_trial(tmp_path / "trial")
    rule = "ExplodingTensor:tensor_regex=^los$"

    ran = call(capsys, "run", trial, "--rule", rule, "--output", tmp_path / "out", "--json")

    assert ran.code == 3
    assert "nearest names: 'loss'" in ran.document["DebugRuleEvaluationStatuses"][0]["StatusDetails"]


def test_without_collections_the_reason_says_so(tmp_path, capsys):
    trial = small_trial(tmp_path / "trial")
    shutil.rmtree(trial / "collections")

    ran = call(capsys, "run", trial, *NAMED, "--output", tmp_path / "out", "--json")

    assert ran.code == 3
    assert "no tensor of collection 'gradients'" in ran.document["DebugRuleEvaluationStatuses"][0]["StatusDetails"]


def test_a_trial_that_never_comes_is_exit_3(tmp_path, capsys):
    ran = call(
        *(capsys, "run", tmp_path / "later", *NAMED, "--output", tmp_path / "out"),
        *("--json", "--follow", "--set", "start_timeout=0"),
    )

    assert (ran.code, ran.document["job"]["ended_because"]) == (3, "start_timeout")
    assert check_outputs(tmp_path / "out")["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "Error"


def test_a_store_that_stops_answering_is_exit_3_with_its_rules_in_error(tmp_path, capsys, monkeypatch):
    trial = small_trial(tmp_path / "trial", [TINY, HEALTHY])

    def vanish(self):
        raise StorageUnavailable("disk", "does not answer")

    monkeypatch.setattr(Loop, "read_once", vanish)
    ran = call(capsys, "run", trial, *NAMED, "--output", tmp_path / "out", "--json")

    (rule,) = ran.document["DebugRuleEvaluationStatuses"]
    assert (ran.code, ran.document["job"]["ended_because"]) == (3, "failed")
    assert (rule["RuleEvaluationStatus"], rule["StatusDetails"]) == ("Error", "ClientError: disk: does not answer")
    check_outputs(tmp_path / "out")


# mistakes


def refused(capsys, *arguments) -> list[str]:
    ran = call(capsys, "run", *arguments)
    assert ran.code == 2
    assert ran.out == ""
    return ran.err.splitlines()


def test_a_wrong_path(tmp_path, capsys):
    assert refused(capsys, tmp_path / "no") == [
        f"{tmp_path / 'no'}: does not exist; a trial has folders index/, events/ and collections/"
    ]


def test_an_empty_folder(tmp_path, capsys):
    (line,) = refused(capsys, tmp_path, "--output", tmp_path / "out")

    assert line.startswith(f"{tmp_path}: is empty; ")
    assert not (tmp_path / "out").exists()


def test_a_trial_without_a_step_is_empty_too(tmp_path, capsys):
    trial = small_trial(tmp_path / "trial", [])

    (line,) = refused(capsys, trial, "--output", tmp_path / "out")

    assert line.startswith(f"{trial}: holds no saved step; ")


def test_a_trial_one_level_below_is_named(tmp_path, capsys):
    small_trial(tmp_path / "runs" / "one")

    (line,) = refused(capsys, tmp_path / "runs")

    assert line == f"{tmp_path}/runs: is not a trial; there is one a level below: {tmp_path}/runs/one"


def test_a_trial_one_level_above_is_named(tmp_path, capsys):
    trial = small_trial(tmp_path / "trial")

    (line,) = refused(capsys, trial / "index")

    assert line == f"{trial}/index: is not a trial; there is a trial one level above: {trial}"


def test_several_trials_below_are_listed(tmp_path, capsys):
    for name in ("a", "b"):
        small_trial(tmp_path / "runs" / name)

    (line,) = refused(capsys, tmp_path / "runs")

    assert line == f"{tmp_path}/runs: holds several trials; name one of them: {tmp_path}/runs/a, {tmp_path}/runs/b"


def test_all_mistakes_are_told_at_once_with_the_nearest_names(tmp_path, capsys):
    lines = refused(
        *(capsys, tmp_path, "--rule", "VanishinGradient", "--rule", "VanishingGradient:treshold=1"),
        *("--set", "late_grase=1", "--label", "x", "--fail-on", "bad"),
    )

    assert any("rule 'VanishinGradient' is not known; did you mean 'VanishingGradient'?" in line for line in lines)
    assert any("parameter 'treshold' is not known; did you mean 'threshold'?" in line for line in lines)
    assert any("setting 'late_grase' is not known; did you mean 'late_grace'?" in line for line in lines)
    assert len(lines) == 5


def test_mistakes_are_one_document_under_json(tmp_path):
    ran = run("run", tmp_path / "no", "--json")

    assert ran.code == 2
    assert ran.document == {
        "schema": 1,
        "errors": [
            {
                "where": str(tmp_path / "no"),
                "what": "does not exist",
                "would_be_right": "a trial has folders index/, events/ and collections/",
            }
        ],
    }


def test_an_output_that_cannot_be_written_is_exit_2(tmp_path, capsys):
    (tmp_path / "file").touch()

    (line,) = refused(capsys, small_trial(tmp_path / "trial"), "--output", tmp_path / "file")

    assert "is not a folder" in line


def test_output_on_storage_that_is_not_known_is_refused(tmp_path, capsys):
    (line,) = refused(capsys, small_trial(tmp_path / "trial"), "--output", "gs://bucket/out")

    assert line.startswith("'gs://bucket/out': storage 'gs://' is not part of this version; ")


def test_an_output_that_is_in_use_is_exit_2(tmp_path, capsys):
    trial = small_trial(tmp_path / "trial")
    other = OutputFolder(FileStore(tmp_path / "out"), FakeClock())
    other.prepare()

    (line,) = refused(capsys, trial, "--output", tmp_path / "out")
    other.release()

    assert "another evaluator is writing to it" in line


def test_restart_goes_with_follow_only(tmp_path, capsys):
    assert refused(capsys, small_trial(tmp_path / "trial"), "--restart") == [
        "--restart: has no meaning when nothing is followed; add --follow"
    ]


def test_an_unfinished_job_over_another_trial_needs_restart(tmp_path, capsys):
    trial = small_trial(tmp_path / "trial")
    given = (trial, *NAMED, "--output", tmp_path / "out")
    call(capsys, "run", *given)
    document = json.loads((tmp_path / "out" / "status.json").read_bytes())
    document["job"]["ended_at"], document["trial"] = None, "elsewhere"
    (tmp_path / "out" / "status.json").write_text(json.dumps(document))
    following = (*given, "--follow", "--set", "late_grace=0")

    (line,) = refused(capsys, *following)

    assert "holds an unfinished job over another trial, elsewhere" in line
    assert call(capsys, "run", *following, "--restart").code == 1


def test_following_a_folder_of_trials_is_exit_2_and_the_status_says_so(tmp_path, capsys):
    for name in ("a", "b"):
        small_trial(tmp_path / "runs" / name)

    (line,) = refused(capsys, tmp_path / "runs", *NAMED, "--follow", "--output", tmp_path / "out")[-1:]

    status = check_outputs(tmp_path / "out")
    (rule,) = status["DebugRuleEvaluationStatuses"]
    assert "holds several trials" in line
    assert status["job"]["ended_because"] == "failed"
    assert rule["StatusDetails"].startswith("ClientError: ")


def test_the_trial_may_come_from_the_environment_or_from_nowhere(tmp_path, capsys, monkeypatch):
    assert refused(capsys, *NAMED) == ["trial: no trial is given; expected the folder that a training run saved under"]
    monkeypatch.setenv("RULE_EVALUATOR_TRIAL", str(small_trial(tmp_path / "trial")))

    assert call(capsys, "run", *NAMED, "--output", tmp_path / "out").code == 1


# a defect


def test_a_defect_is_exit_4_with_a_traceback_in_the_output_folder(tmp_path, capsys, monkeypatch):
    def stumble(self):
        raise RuntimeError("a secret")

    monkeypatch.setattr(Loop, "read_once", stumble)
    ran = call(capsys, "run", small_trial(tmp_path / "trial"), *NAMED, "--output", tmp_path / "out")

    path = tmp_path / "out" / "traceback.txt"
    assert ran.code == 4
    assert ran.lines == [f"internal error: RuntimeError; the traceback is in {path}"]
    assert "a secret" in path.read_text()
    status = check_outputs(tmp_path / "out")
    (rule,) = status["DebugRuleEvaluationStatuses"]
    assert (status["job"]["ended_because"], rule["RuleEvaluationStatus"]) == ("failed", "Error")
    assert rule["StatusDetails"].startswith("InternalServerError: ")


# following


def test_a_trial_that_grows_gives_the_findings_of_the_finished_one(tmp_path):
    values = [HEALTHY, TINY, TINY, HEALTHY, TINY, HEALTHY]
    rule = ("--rule", "VanishingGradient:parameter_set=sagemaker,on_finding=continue")
    growing = tmp_path / "trial"
    one = writer(growing)
    process = start("run", growing, *rule, "--follow", "--output", tmp_path / "grown", *fast())
    lines = log_lines(process)
    wait_for(lines, "job_started")
    for step, value in enumerate(values):
        save(one, step, value)
        if step in (1, 4):
            wait_for(lines, "condition_met", step=step)
    one.close()
    code = finish(process).code

    once = run("run", growing, *rule, "--output", tmp_path / "once")

    assert code == once.code == 1
    grown = check_outputs(tmp_path / "grown")
    assert (grown["job"]["ended_because"], grown["job"]["steps"]["complete"]) == ("end_marker", len(values))
    assert findings(tmp_path / "grown") == findings(tmp_path / "once")
    assert [(line["event"], line["step"]) for line in findings(tmp_path / "grown")] == [
        *(("met", 1), ("cleared", 1), ("met", 4), ("cleared", 4))
    ]


def test_the_end_of_a_watched_process_is_the_end_of_the_run(tmp_path):
    trial = small_trial(tmp_path / "trial", [HEALTHY])
    (trial / "training_job_end.ts").unlink()
    training = run("--version")
    process = start("schema", "finding")
    finish(process)

    ran = run(
        "run", trial, *NAMED, "--follow", "--until-pid", process.pid, "--output", tmp_path / "out", "--json", *fast()
    )

    assert training.code == ran.code == 0
    assert ran.document["job"]["ended_because"] == "watched_process_ended"


def test_names_with_control_characters_steer_nothing(tmp_path, capsys):
    name = "\x1b[31mred\n[bold]x[/bold]"
    with TrialWriter(tmp_path / "trial", collections={"gradients": [name]}) as one:
        one.save(0, {name: np.float32(1e-12)})

    ran = call(capsys, "run", tmp_path / "trial", *NAMED, "--output", tmp_path / "out")

    assert ran.code == 1
    assert "\x1b" not in ran.out + ran.err
    assert "[bold]x[/bold]" in ran.out


def test_what_the_store_refuses_to_touch_is_named_in_the_notes(tmp_path):
    trial = small_trial(tmp_path / "trial")
    (trial / "index" / "000000000" / "000000000099_worker_0.json").symlink_to("/etc/hostname")

    ran = run("run", trial, *NAMED, "--output", tmp_path / "out", "--json")

    assert any("000000000099_worker_0.json" in note for note in ran.document["job"]["notes"])


def test_a_part_of_a_selection_that_selects_nothing_is_noted_with_the_nearest_names(tmp_path):
    trial = small_trial(tmp_path / "trial")

    rule = "AllZero:collection_names=gradients,gradeints"
    ran = run("run", trial, "--rule", rule, "--output", tmp_path / "out", "--json")

    (note,) = ran.document["job"]["notes"]
    assert note == "AllZero: collection 'gradeints' matches no saved tensor; nearest names: 'gradients'"


def test_a_selection_that_selects_something_with_each_part_is_not_noted(tmp_path):
    trial = small_trial(tmp_path / "trial")

    rule = "AllZero:collection_names=gradients,tensor_regex=^g"
    ran = run("run", trial, "--rule", rule, "--output", tmp_path / "out", "--json")

    assert ran.document["job"]["notes"] == []


def test_a_silent_worker_is_named_under_the_table_and_in_the_log(tmp_path):
    shutil.copytree(TRIALS / "ddp_two_workers", tmp_path / "trial")
    for path in (tmp_path / "trial" / "index").rglob("*_worker_1.json"):
        path.unlink()

    ran = run("run", tmp_path / "trial", *NAMED, "--output", tmp_path / "out")

    assert "silent workers: worker_1 (1 of 2 expected wrote)" in ran.out
    assert [json.loads(line)["workers"] for line in ran.err.splitlines() if "workers_silent" in line] == [["worker_1"]]


def test_a_watched_process_that_is_gone_ends_the_wait_for_a_trial(tmp_path):
    dead = start("--version")
    finish(dead)

    ran = run("run", tmp_path / "later", *NAMED, "--output", tmp_path / "out", "--follow", "--until-pid", dead.pid)

    assert ran.code == 3
    assert check_outputs(tmp_path / "out")["job"]["ended_because"] == "watched_process_ended"


def test_a_full_device_is_wrong_output_and_no_defect_of_ours(tmp_path):
    trial = small_trial(tmp_path / "trial")
    command = [sys.executable, "-m", "evaluator", "run", str(trial), "--output", str(tmp_path / "out")]

    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1] == "standard output: No space left on device; somewhere with room"


def test_starting_over_leaves_no_empty_folders_of_former_rules(tmp_path):
    trial = small_trial(tmp_path / "trial")
    run("run", trial, *NAMED, "--output", tmp_path / "out")
    run("run", trial, "--rule", "VanishingGradient:parameter_set=sagemaker,name=other", "--output", tmp_path / "out")

    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == ["other"]
