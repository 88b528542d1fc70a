"""What tests of the images need: an engine, and both images; `make image-test` promises them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.program import HEALTHY, save, writer
from tests.docker.engine import BUILTIN, CUSTOM, Job, docker


@pytest.fixture(scope="session")
def engine() -> None:
    """A running engine with both images; without `make image-test` these tests do not run."""
    if not os.environ.get("IMAGE_TESTS"):
        pytest.skip("needs a container engine and the images: make image image-test")
    for image in (CUSTOM, BUILTIN):
        docker("image", "inspect", image)


@pytest.fixture
def detached() -> Iterator[list[str]]:
    """Names of containers that run beside a test, and are gone after it."""
    names: list[str] = []
    yield names
    for name in names:
        docker("rm", "--force", name, check=False)


@pytest.fixture
def following(tmp_path: Path) -> Job:
    """A job whose training has not ended."""
    trial = tmp_path / "trial"
    trial.mkdir()
    one = writer(trial)
    for step in range(3):
        save(one, step, HEALTHY)
    return Job(
        tmp_path / "out", trial, environment={"rule_to_invoke": "VanishingGradient", "RULE_EVALUATOR_POLL_MAX": "1"}
    )
