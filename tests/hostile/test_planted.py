"""Whatever is planted in a trial is counted and named, costs the job nothing else, and opens no way out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from evaluator.cli import run_command_line
from tests.hostile.planted import PLANTED, SECRET, outside, sound

MEMORY = 512 * 2**20
"""Address space that a job may take beyond what it has at its start; the memory budget is half of it."""

PROGRAM = """
    import resource, sys
    from evaluator.cli import run_command_line
    size = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
    limit = 1024 * size + int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sys.exit(run_command_line(sys.argv[2:]))
"""
RULE = ("--rule", "VanishingGradient:parameter_set=sagemaker")


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_counted_and_named_and_nothing_outside_is_read(name: str, tmp_path: Path):
    planted = PLANTED[name]
    trial, beside, output = sound(tmp_path / "trial"), outside(tmp_path / "outside"), tmp_path / "out"
    planted.put(trial, beside)
    command = ["run", trial, *RULE, "--output", output, "--json"]
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(MEMORY), *map(str, command)],
        capture_output=True, text=True, check=False, timeout=60, cwd=Path(__file__).parents[2],
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    status = json.loads(ran.stdout)
    job, (rule,) = status["job"], status["DebugRuleEvaluationStatuses"]
    steps = job["steps"]
    assert (steps["complete"], steps["partial"], steps["unreadable"]) == (*planted.steps, planted.unreadable)
    assert any(re.search(planted.told, note) for note in job["notes"]) or not planted.told, job["notes"]
    # the value outside would be a finding
    assert (rule["RuleEvaluationStatus"], rule["Evaluation"]["evaluated"] >= 2) == ("NoIssuesFound", True)
    everything = [ran.stdout, ran.stderr, *(path.read_text() for path in output.rglob("*") if path.is_file())]
    assert not any(SECRET in text for text in everything)
    assert len("".join(everything)) < 100_000


def test_a_file_outside_would_be_a_finding_if_it_were_read(tmp_path: Path):
    """The check above would see nothing if what lies outside said nothing."""
    trial, beside = sound(tmp_path / "trial"), outside(tmp_path / "outside")
    event = next(trial.glob("events/000000000001/*"))
    event.write_bytes((beside / event.name).read_bytes())

    assert run_command_line(["run", str(trial), *RULE, "--output", str(tmp_path / "out"), "--json"]) == 1


def test_writing_the_output_never_follows_a_link_that_was_planted_in_it(tmp_path: Path):
    trial, beside = sound(tmp_path / "trial"), outside(tmp_path / "outside")
    (trial / "out").mkdir()
    (trial / "out" / "VanishingGradient").symlink_to(beside)
    before = sorted(path.name for path in beside.iterdir())
    run_command_line(["run", str(trial), *RULE, "--output", str(trial / "out"), "--json"])

    assert sorted(path.name for path in beside.iterdir()) == before
