"""Trials on S3 are evaluated, shown and checked like local ones, and what is wrong with them is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.storage import open_store
from tests.commands.program import (
    FAST,
    HEALTHY,
    TINY,
    call,
    check_outputs,
    findings,
    log_lines,
    run,
    small_trial,
    start,
    wait_for,
)
from tests.s3.jobs import Output
from tests.s3.small_server import SmallServer
from tests.s3.traffic import Asked, Traffic, Wrong

Upload = Callable[[Path, str], str]
Put = Callable[..., None]
VANISHING = ("--rule", "VanishingGradient:parameter_set=sagemaker")


@pytest.mark.parametrize("prefix", ["some/job__1", "with space/50%+ü", ""])
def test_a_trial_on_s3_has_the_verdicts_of_the_same_one_in_a_folder(
    tmp_path: Path, upload: Upload, capsys: pytest.CaptureFixture[str], prefix: str
):
    folder = small_trial(tmp_path / "trial")
    local = call(capsys, "run", folder, *VANISHING, "--output", tmp_path / "1")
    remote = call(capsys, "run", upload(folder, prefix), *VANISHING, "--output", tmp_path / "2")
    without = [
        [{key: value for key, value in one.items() if key != "trial"} for one in findings(tmp_path / name)]
        for name in "12"
    ]

    assert (remote.code, without[1]) == (local.code, without[0])
    assert without[0] != []


def test_the_status_counts_the_requests(tmp_path: Path, upload: Upload, s3: Traffic):
    uri = upload(small_trial(tmp_path / "trial"), "job")
    left = iter([Wrong()])
    s3.fault = lambda asked: next(left, None) if asked.kind == "GET" else None
    ran = run("run", uri, *VANISHING, "--output", tmp_path / "output")
    requests = check_outputs(tmp_path / "output")["job"]["requests"]

    assert ran.code == 1, ran.err
    assert requests["retries"] == 1
    # the output folder is counted too
    assert requests["list"] >= s3.counts["LIST"]
    assert requests["get"] >= s3.counts["GET"]


def test_a_trial_on_s3_is_followed_to_its_end(tmp_path: Path, upload: Upload):
    uri = upload(small_trial(tmp_path / "trial"), "job")
    fast = [argument for one in ("late_grace=0.1", "poll_min=0.05", "poll_max=0.1") for argument in ("--set", one)]
    ran = run("run", uri, "--follow", "--rule", "ExplodingTensor", *fast, "--output", tmp_path / "output")

    assert ran.code == 0, ran.err
    assert check_outputs(tmp_path / "output")["job"]["ended_because"] == "end_marker"


def test_a_job_that_was_killed_goes_on_at_once_with_its_output_on_s3(tmp_path: Path, bucket: str):
    """The lock of a process that is gone keeps nobody out."""
    trial = small_trial(tmp_path / "trial", [HEALTHY, TINY, HEALTHY, TINY])
    (trial / "training_job_end.ts").rename(tmp_path / "end")
    rule = ("--rule", "VanishingGradient:parameter_set=sagemaker,on_finding=continue")
    fast = [argument for one in FAST for argument in ("--set", one)]
    given = ("run", trial, "--follow", *rule, *fast, "--output", f"s3://{bucket}/out")
    output = Output(f"s3://{bucket}/out")
    first = start(*given)
    lines = log_lines(first)
    wait_for(lines, "condition_met", step=3)
    while first.poll() is None and len(output.lines()) < 3:
        pass
    first.kill()
    first.wait()
    killed = output.store.read("VanishingGradient/findings.jsonl")
    (tmp_path / "end").rename(trial / "training_job_end.ts")
    second = run(*given)

    assert second.code == 1, second.err
    assert output.store.read("VanishingGradient/findings.jsonl").startswith(killed)
    assert output.found() == [(1, "met"), (1, "cleared"), (3, "met"), (3, "cleared")]
    assert output.status["job"]["ended_because"] == "end_marker"


@pytest.mark.parametrize("where", ["s3://BUCKET/other", "folder"])
def test_an_unwritable_status_at_the_end_is_exit_3_or_the_finding(
    tmp_path: Path, s3: Traffic, bucket: str, capsys: pytest.CaptureFixture[str], where: str
):
    """The final status is refused: nothing found is exit 3, and the path is named on standard error."""
    out = where.replace("BUCKET", bucket)
    s3.fault = lambda asked: Wrong(403, "AccessDenied") if asked.kind == "PUT" and ended(asked) else None
    seen: list[str] = []

    def ended(asked: Asked) -> bool:
        seen.extend(["one"] if asked.key.endswith("status.json") else [])
        return asked.key.endswith("status.json") and len(seen) > 1

    healthy = small_trial(tmp_path / "trial", [HEALTHY] * 3)
    ran = call(capsys, "run", healthy, *VANISHING, "--output", out if "s3" in out else tmp_path / out)

    assert ran.code == (3 if "s3" in out else 0)
    assert (f"{out}/status.json: may not be written (AccessDenied)" in ran.err) == ("s3" in out)


def test_show_and_check_read_s3(tmp_path: Path, upload: Upload, capsys: pytest.CaptureFixture[str]):
    uri = upload(small_trial(tmp_path / "trial"), "job")
    shown = call(capsys, "show", uri)
    checked = call(capsys, "check", uri, *VANISHING)

    assert (shown.code, checked.code) == (0, 0), shown.err + checked.err
    assert "g1" in shown.out
    assert f"{uri}: 3 steps" in checked.out


def test_another_trial_may_be_on_s3(tmp_path: Path, upload: Upload, capsys: pytest.CaptureFixture[str]):
    folder = small_trial(tmp_path / "trial")
    rule = "SimilarAcrossRuns:collection_names=gradients"
    ran = call(
        capsys, "run", folder, "--rule", rule, "--other-trial", upload(folder, "job"), "--output", tmp_path / "o"
    )

    assert check_outputs(tmp_path / "o")["DebugRuleEvaluationStatuses"][0]["Evaluation"]["evaluated"] > 0, ran.err


def test_the_end_marker_is_written_where_a_trial_is(
    tmp_path: Path, upload: Upload, bucket: str, capsys: pytest.CaptureFixture[str]
):
    uri = upload(small_trial(tmp_path / "trial"), "job")
    open_store(uri).delete("training_job_end.ts")
    ended = call(capsys, "end", uri)
    nowhere = call(capsys, "end", f"s3://{bucket}/jop")

    assert (ended.code, open_store(uri).stat("training_job_end.ts") is not None) == (0, True)
    assert (nowhere.code, nowhere.lines) == (2, [f"s3://{bucket}/jop: holds no object; the folder of a trial"])


# what is wrong


def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, uri: str) -> str:
    ran = call(capsys, "run", uri, *VANISHING, "--output", tmp_path / "output")
    assert ran.code == 2
    (line,) = ran.lines
    return line


def test_an_absent_prefix_is_said_to_hold_nothing(bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert refused(capsys, tmp_path, f"s3://{bucket}/no").startswith(f"s3://{bucket}/no: holds no object; ")


def test_trials_one_level_above_and_below_are_named(
    tmp_path: Path, upload: Upload, bucket: str, capsys: pytest.CaptureFixture[str]
):
    folder = small_trial(tmp_path / "trial")
    uris = [upload(folder, f"runs/{name}") for name in ("a", "b")]

    assert refused(capsys, tmp_path, f"{uris[0]}/index").endswith(f"there is a trial one level above: {uris[0]}")
    assert refused(capsys, tmp_path, f"s3://{bucket}/runs/").endswith(f"name one of them: {uris[0]}, {uris[1]}")


def test_of_many_folders_only_some_are_looked_into(
    small: SmallServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    small.objects = {f"bucket/{number:06d}/a": b"" for number in range(300)}

    assert "is not a trial; a trial has folders index/" in refused(capsys, tmp_path, "s3://bucket")


def test_a_bucket_that_is_not_there_is_wrong_input(s3: Traffic, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert refused(capsys, tmp_path, "s3://no-such-bucket/a") == (
        "s3://no-such-bucket/a/: there is no such bucket (NoSuchBucket); s3://BUCKET/PREFIX"
    )


def test_a_missing_permission_names_the_action_and_the_prefix(
    bucket: str, s3: Traffic, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    s3.fault = lambda _: Wrong(403, "AccessDenied")

    assert refused(capsys, tmp_path, f"s3://{bucket}/job") == (
        f"s3://{bucket}/job/: may not be listed (AccessDenied); "
        f"allow s3:ListBucket on the bucket '{bucket}' for the prefix 'job/'"
    )


def test_who_may_list_and_read_the_prefix_only_needs_nothing_else(
    tmp_path: Path, upload: Upload, s3: Traffic, capsys: pytest.CaptureFixture[str]
):
    """A role that was allowed `prefix/*` only could not use the reference; and what is absent is forbidden to it."""
    folder = small_trial(tmp_path / "trial")
    there = {f"job/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*")}
    uri = upload(folder, "job")

    def allowed(kind: str, key: str) -> bool:
        return key.startswith("job/") if kind == "LIST" else kind in {"GET", "HEAD"} and key in there

    s3.fault = lambda asked: None if allowed(asked.kind, asked.key) else Wrong(403, "AccessDenied")
    ran = call(capsys, "run", uri, *VANISHING, "--output", tmp_path / "output")

    assert (ran.code, len(findings(tmp_path / "output"))) == (1, 1), ran.err


# rule files

RULE_FILE = b"""
from smdebug.rules.rule import Rule


class TooLarge(Rule):
    def __init__(self, base_trial, threshold=1.0):
        super().__init__(base_trial)
        self.threshold = float(threshold)

    def invoke_at_step(self, step):
        return any(abs(self.base_trial.tensor(name).value(step)).max() > self.threshold
                   for name in self.base_trial.tensor_names(collection="gradients"))
"""


def test_a_rule_file_on_s3_is_evaluated(bucket: str, put: Put, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    put("rules/too large.py", RULE_FILE)
    rule = f"s3://{bucket}/rules/too large.py:TooLarge:threshold=1e-6"
    ran = call(capsys, "run", small_trial(tmp_path / "trial"), "--rule-file", rule, "--output", tmp_path / "output")

    assert ran.code == 1, ran.err
    assert [one["step"] for one in findings(tmp_path / "output", "TooLarge")] == [0]


def test_a_rule_file_that_is_not_on_s3_is_named(bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    uri = f"s3://{bucket}/mine.py"
    ran = call(capsys, "run", small_trial(tmp_path / "trial"), "--rule-file", uri, "--output", tmp_path / "output")

    assert (ran.code, ran.lines) == (2, [f"--rule-file {uri}: rule file {uri!r}: there is no such object"])


def test_a_container_gets_its_rule_file_from_s3(
    bucket: str, put: Put, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    put("rules/mine.py", RULE_FILE)
    small_trial(tmp_path / "processing" / "input" / "tensors")
    for variable, value in {
        "RULE_EVALUATOR_FOLLOW": "false",
        "source_s3_uri": f"s3://{bucket}/rules/mine.py",
        "rule_to_invoke": "TooLarge",
        "threshold": "1000",
    }.items():
        monkeypatch.setenv(variable, value)
    ran = call(capsys, "container", "--ml-root", tmp_path)
    (rule,) = check_outputs(tmp_path / "processing" / "output" / "rule")["DebugRuleEvaluationStatuses"]

    assert (rule["Rule"], rule["RuleEvaluationStatus"]) == ("TooLarge", "NoIssuesFound"), ran.err
