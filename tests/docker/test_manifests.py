"""The manifests for Kubernetes and the script for Slurm do what they say, and name nothing that does not exist."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from evaluator.config.settings import KNOWN_VARIABLES, PREFIX, Settings
from evaluator.registry import builtin_rules
from tests.commands.program import HEALTHY, TINY, call, check_outputs
from tests.docker.engine import ROOT, wait_until

KUBERNETES = ROOT / "docker" / "kubernetes"
SLURM = ROOT / "docker" / "slurm" / "train.sbatch"
PAGE = ROOT / "docs" / "docker.md"


def manifest(name: str) -> dict[str, Any]:
    """The one document of a manifest."""
    content: dict[str, Any] = yaml.safe_load((KUBERNETES / name).read_text())
    return content


def pod(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = manifest(name)["spec"]["template"]["spec"]
    return spec


def evaluator_of(name: str) -> dict[str, Any]:
    """The container that runs our image."""
    spec = pod(name)
    (ours,) = [
        one
        for one in [*spec.get("initContainers", []), *spec["containers"]]
        if one["image"].startswith("rule-evaluator:")
    ]
    return dict(ours)


def on_paths(command: list[str], tmp_path: Path) -> list[str]:
    """A command of a probe, for this machine."""
    assert command[0] == "/opt/rule-evaluator/bin/python"
    return [sys.executable, *(part.replace("/rule-output/", f"{tmp_path}/") for part in command[1:])]


def write_status(tmp_path: Path, ended: str | None, age: float) -> None:
    path = tmp_path / "status.json"
    path.write_text(json.dumps({"job": {"ended_at": ended}}))
    then = time.time() - age
    os.utime(path, (then, then))


@pytest.mark.parametrize("name", ["sidecar.yaml", "job.yaml"])
def test_every_mount_has_a_volume_and_the_container_can_do_no_more_than_it_must(name):
    spec, ours = pod(name), evaluator_of(name)
    volumes = {volume["name"] for volume in spec["volumes"]}

    assert {mount["name"] for mount in ours["volumeMounts"]} == volumes
    assert {mount["mountPath"] for mount in ours["volumeMounts"]} == {"/trial", "/rule-output", "/tmp"}  # noqa: S108 - in the container
    assert ours["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["restartPolicy"] == "Never"


def test_the_sidecar_is_a_native_one_that_stays_and_drains():
    spec, ours = pod("sidecar.yaml"), evaluator_of("sidecar.yaml")
    variables = {one["name"]: one["value"] for one in ours["env"]}

    assert ours in spec["initContainers"]
    assert (ours["restartPolicy"], ours["args"]) == ("Always", ["container", "--after-end", "wait"])
    assert ours["terminationMessagePath"] == "/opt/ml/output/message"
    # the hook's minute and the drain are over before the pod is killed
    assert 60 + float(variables["RULE_EVALUATOR_STOP_GRACE"]) < spec["terminationGracePeriodSeconds"]
    assert variables["rule_to_invoke"] in builtin_rules()
    assert "threshold" in builtin_rules()[variables["rule_to_invoke"]].parameters.model_fields


@pytest.mark.parametrize(
    ("ended", "age", "alive"), [(None, 5, True), (None, 800, True), (None, 1000, False), ("then", 100_000, True)]
)
@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe"])
def test_a_probe_goes_by_the_age_of_the_status_until_that_is_final(tmp_path, probe, ended, age, alive):
    command = on_paths(evaluator_of("sidecar.yaml")[probe]["exec"]["command"], tmp_path)
    write_status(tmp_path, ended, age)

    assert alive is (subprocess.run(command, check=False).returncode == 0)


def test_before_there_is_a_status_a_probe_fails(tmp_path):
    command = on_paths(evaluator_of("sidecar.yaml")["startupProbe"]["exec"]["command"], tmp_path)

    assert subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode != 0


def test_the_hook_before_the_stop_waits_until_the_status_is_final(tmp_path):
    command = on_paths(evaluator_of("sidecar.yaml")["lifecycle"]["preStop"]["exec"]["command"], tmp_path)
    write_status(tmp_path, None, 0)
    with subprocess.Popen(command) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=1.5)
        write_status(tmp_path, "2026-01-01T00:00:00Z", 0)

        assert waiting.wait(timeout=10) == 0


def test_the_job_fails_at_once_for_what_another_try_would_not_change():
    job = manifest("job.yaml")
    fail, ignore = job["spec"]["podFailurePolicy"]["rules"]

    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert fail == {
        "action": "FailJob",
        "onExitCodes": {"containerName": evaluator_of("job.yaml")["name"], "operator": "In", "values": [1, 2, 4]},
    }
    assert ignore == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    assert job["spec"]["backoffLimit"] > 0


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line of the program in the manifests and on the page: where, and its arguments."""
    for name in ("sidecar.yaml", "job.yaml"):
        yield name, evaluator_of(name)["args"]
    for line in re.findall(r"^\$EVALUATOR (.+?)(?: &| >.*)?$", SLURM.read_text(), re.MULTILINE):
        yield SLURM.name, line.replace('"', "").split()
    page = PAGE.read_text().replace("\\\n", " ")
    for line in re.findall(r"^docker run .*? rule-evaluator (\S.*)$", page, re.MULTILINE):
        yield PAGE.name, line.split()
    for line in re.findall(r"`rule-evaluator ([a-z-]+ [^`]*)`", page):
        yield PAGE.name, line.split()


def test_every_option_that_is_named_exists(capsys):
    named = list(commands())
    unknown = [
        (where, arguments[0], option)
        for where, arguments in named
        for option in re.findall(r"--[a-z-]+", " ".join(arguments))
        if option not in call(capsys, arguments[0], "--help").out
    ]

    assert {where for where, _ in named} == {"sidecar.yaml", "job.yaml", SLURM.name, PAGE.name}
    assert unknown == []


@pytest.mark.parametrize("path", [*sorted(KUBERNETES.iterdir()), PAGE, ROOT / "Dockerfile"], ids=lambda path: path.name)
def test_every_setting_that_is_named_exists(path):
    known = {PREFIX + name.upper() for name in Settings.model_fields} | KNOWN_VARIABLES

    assert set(re.findall(rf"\b{PREFIX}[A-Z_]+", path.read_text())) - known == set()


LATE = """
import os, pathlib, signal
from tests.commands.program import save, writer
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGTERM}})
one = writer(pathlib.Path(os.environ["TRIAL"]))
save(one, 0)
pathlib.Path("began").touch()
signal.sigwait({{signal.SIGTERM}})
save(one, 1)
raise SystemExit({code})
"""

TRAINING = """
import os, pathlib
from tests.commands.program import save, writer
one = writer(pathlib.Path(os.environ["TRIAL"]))
for step, g1 in enumerate({values}):
    save(one, step, g1)
raise SystemExit({code})
"""


def slurm(tmp_path: Path, training: str) -> subprocess.Popen[str]:
    """The script with this training, on a cluster of this machine alone: its srun runs what it is given."""
    (tmp_path / "bin").mkdir()
    srun = tmp_path / "bin" / "srun"
    srun.write_text('#!/bin/sh\nexec "$@"\n')
    srun.chmod(0o755)
    (tmp_path / "train.py").write_text(training)
    environment = {
        **os.environ,
        "PATH": f"{srun.parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SLURM_JOB_ID": "17",
        "EVALUATOR": f"{sys.executable} -m evaluator",
        "TRAINING": f"{sys.executable} train.py",
        "RULE_EVALUATOR_LATE_GRACE": "0.2",
        "RULE_EVALUATOR_POLL_MIN": "0.1",
        "RULE_EVALUATOR_POLL_MAX": "0.2",
    }
    bash = shutil.which("bash")
    assert bash is not None
    return subprocess.Popen([bash, SLURM], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)


def test_when_the_time_is_up_the_training_is_told_and_its_last_step_is_evaluated(tmp_path):
    with slurm(tmp_path, LATE.format(code=5)) as script:
        wait_until((tmp_path / "began").exists)
        script.terminate()
        _, err = script.communicate(timeout=60)

    status = check_outputs(tmp_path / "rule-output-17")
    assert (script.returncode, status["job"]["ended_because"]) == (5, "end_marker"), err
    assert status["job"]["steps"]["last"] == 1


@pytest.mark.parametrize(
    ("values", "code", "word"), [([HEALTHY] * 3 + [TINY] * 7, 0, "IssuesFound"), ([HEALTHY] * 10, 3, "NoIssuesFound")]
)
def test_the_script_for_slurm_evaluates_what_the_training_saves_and_ends_as_that_does(tmp_path, values, code, word):
    with slurm(tmp_path, TRAINING.format(values=values, code=code)) as script:
        _, err = script.communicate(timeout=60)

    status = check_outputs(tmp_path / "rule-output-17")
    words = {rule["Rule"]: rule["RuleEvaluationStatus"] for rule in status["DebugRuleEvaluationStatuses"]}
    assert (script.returncode, status["job"]["ended_because"]) == (code, "end_marker"), err
    assert words["VanishingGradient"] == word


@pytest.mark.parametrize(
    "script", ["docker/slurm/train.sbatch", "docker/build.sh", "docker/base-image.sh", "docker/with-engine.sh"]
)
def test_every_script_is_whole(script):
    bash = shutil.which("bash")
    assert bash is not None
    assert subprocess.run([bash, "-n", ROOT / script], check=False).returncode == 0
