"""Runs the images with whatever container engine `docker` speaks to; and the small job that they all run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "docker" / "sample_job"
CUSTOM, BUILTIN = "rule-evaluator", "rule-evaluator-builtin"
ML = "/opt/ml"
TENSORS, OUTPUT = f"{ML}/processing/input/tensors", f"{ML}/processing/output/rule"
DEADLINE = 120.0

LOCKED_DOWN = ("--read-only", "--network", "none", "--cap-drop", "ALL")
"""All that a container can do without here."""


@dataclass(frozen=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str


def docker(*arguments: object, check: bool = True, environment: Mapping[str, str] | None = None) -> Ran:
    """Run a docker command to its end."""
    program = shutil.which("docker")
    assert program is not None
    ran = subprocess.run(
        [program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
        env={**os.environ, **(environment or {})},
    )
    assert not check or ran.returncode == 0, ran.stderr
    return Ran(ran.returncode, ran.stdout, ran.stderr)


@dataclass
class Job:
    """A job in a container: what is mounted, and what it leaves.

    Args:
        folder: for what the container writes; anyone may write there.
        trial: what is mounted as the tensors.
        mounts: path in the container -> what is there, to be read only.
        message_file: what is mounted as this one file, instead of a folder that it is written into.
    """

    folder: Path
    trial: Path
    user: str = "1000"
    image: str = CUSTOM
    environment: dict[str, str] = field(default_factory=dict)
    mounts: dict[str, Path] = field(default_factory=dict)
    message_file: Path | None = None
    options: Sequence[str] = LOCKED_DOWN
    arguments: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Make the folders that SageMaker makes."""
        for name in ("rule", "message"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            (self.folder / name).chmod(0o777)

    @property
    def command(self) -> list[str]:
        """What stands after `docker run`."""
        message: tuple[Path, str] = (self.folder / "message", f"{ML}/output")
        if self.message_file is not None:
            message = (self.message_file, f"{ML}/output/message")
        written = ((self.folder / "rule", OUTPUT), message)
        read = ((self.trial, TENSORS), *((path, inside) for inside, path in self.mounts.items()))
        volumes = [part for outside, inside in written for part in ("-v", f"{outside}:{inside}")]
        volumes += [part for outside, inside in read for part in ("-v", f"{outside}:{inside}:ro")]
        variables = [part for name, value in self.environment.items() for part in ("-e", f"{name}={value}")]
        return [*self.options, "-u", self.user, *volumes, *variables, self.image, *self.arguments]

    def run(self) -> Ran:
        """Run it to its end."""
        return docker("run", "--rm", *self.command, check=False)

    @property
    def status(self) -> dict[str, Any]:
        """What its status file says."""
        content: dict[str, Any] = json.loads((self.folder / "rule" / "status.json").read_bytes())
        return content

    @property
    def rule(self) -> dict[str, Any]:
        """The status of its one rule."""
        (only,) = self.status["DebugRuleEvaluationStatuses"]
        return dict(only)

    @property
    def message(self) -> str | None:
        """What SageMaker would show as its exit message."""
        path = self.folder / "message" / "message"
        return path.read_text() if path.exists() else None


def sample_job(folder: Path, **changes: Any) -> Job:
    """The job of docker/sample_job, as SageMaker would start it."""
    lines = (SAMPLE / "environment").read_text().splitlines()
    environment = dict(line.split("=", 1) for line in lines)
    ml = SAMPLE / "ml"
    return Job(
        folder,
        ml / "processing" / "input" / "tensors",
        environment=environment,
        mounts={f"{ML}/config": ml / "config"},
        **changes,
    )


def expected_status() -> dict[str, Any]:
    """What the status of that job must say."""
    content: dict[str, Any] = json.loads((SAMPLE / "expected_status.json").read_bytes())
    return content


def part_of(expected: object, found: object) -> object:
    """What was found, without the keys of objects that nothing is expected of."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return {key: part_of(value, found[key]) for key, value in expected.items() if key in found}
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [part_of(one, other) for one, other in zip(expected, found, strict=True)]
    return found


def documented(heading: str, language: str) -> str:
    """The first block of a section of docs/docker.md."""
    section = (ROOT / "docs" / "docker.md").read_text().split(f"\n## {heading}\n")[1]
    return section.split(f"```{language}\n")[1].split("```")[0]


def wait_until(there: Callable[[], bool], seconds: float = DEADLINE) -> float:
    """Look again and again until something is there; when that was, in seconds since 1970."""
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "it never came"
        # a container is another process, whose time no clock of a test can stand for
        time.sleep(0.01)
    return time.time()
