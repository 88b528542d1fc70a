"""What holds for all tests: hypothesis repeats itself in CI, and nobody waits for the machine's clock."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest
import structlog

from evaluator.clock import SystemClock
from tests.s3.fixtures import aws, bucket, put, s3, s3_server, small, upload

__all__ = ["aws", "bucket", "put", "s3", "s3_server", "small", "upload"]

# contracts are no test modules, so pytest would not explain their assertions by itself
HERE = Path(__file__).parent
pytest.register_assert_rewrite(
    *(".".join(path.relative_to(HERE.parent).with_suffix("").parts) for path in HERE.rglob("contract*.py"))
)

# pytest-xdist tells its workers how wide its own terminal is
os.environ.pop("COLUMNS", None)

# no deadline: a loaded machine is not a defect
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("repeatable" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True)
def _logs_begin_anew() -> None:
    """What a test before this one set up for its log lines is forgotten."""
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _nobody_waits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that would sleep fails at once; pass a fake clock instead."""

    def refuse(_: SystemClock, seconds: float) -> bool:
        pytest.fail(f"the machine's clock was asked to wait {seconds} s in a test; pass a fake clock")

    if request.node.get_closest_marker("real_clock") is None:
        monkeypatch.setattr(SystemClock, "wait", refuse)
