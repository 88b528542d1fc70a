"""The sample job, without an engine: the same files, and the same that must come of them."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.commands.program import call, check_outputs
from tests.docker.engine import SAMPLE, expected_status, part_of


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """A copy of the sample's files, and its environment."""
    shutil.copytree(SAMPLE / "ml", tmp_path / "ml")
    for line in (SAMPLE / "environment").read_text().splitlines():
        monkeypatch.setenv(*line.split("=", 1))
    return tmp_path / "ml"


def test_it_comes_to_the_status_that_is_expected_of_it(sample, capsys):
    expected = expected_status() | {"trial": str(sample / "processing" / "input" / "tensors")}

    ran = call(capsys, "container", "--ml-root", sample)

    assert ran.code == 1
    assert expected == part_of(expected, check_outputs(sample / "processing" / "output" / "rule"))


def test_its_environment_is_the_one_that_its_processing_job_has(sample):
    job = json.loads((sample / "config" / "processingjobconfig.json").read_bytes())

    lines = (SAMPLE / "environment").read_text().splitlines()
    assert job["Environment"] == dict(line.split("=", 1) for line in lines)
