"""The hook in a training of several processes: ranks are workers, names are plain, and all end after the same step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.hooks.trials import saved

pytest.importorskip("torch", reason="PyTorch is not installed; `make hooks` installs it")

ROOT = Path(__file__).parents[2]
NAMES = [f"{kind}{layer}.{of}" for kind in ("", "gradient/") for layer in (0, 2) for of in ("weight", "bias")]


def trained(kind: str, folder: Path) -> tuple[list[str], list[dict[int, dict[str, Any]]]]:
    """What each of two processes said at its end, and what each saved."""
    trial = folder / "trial"
    trial.mkdir()
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("distributed_training.py"))]
    processes = [
        subprocess.Popen(
            [*command, kind, str(trial), str(folder / "meeting")],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "RANK": str(rank), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=300)[0].strip() for process in processes]
    finally:
        for process in processes:
            process.kill()
    return said, [saved(trial, f"worker_{rank}") for rank in range(2)]


@pytest.mark.parametrize("kind", ["ddp", "compiled ddp", "fsdp"])
def test_ranks_are_workers_with_plain_names_that_end_together(tmp_path: Path, kind: str):
    said, (first, second) = trained(kind, tmp_path)

    last, failures = said[0].split()
    assert said == [f"{last} {failures}"] * 2
    assert 5 < int(last) < 99_999
    assert failures == "0"
    assert list(first) == list(second) == list(range(0, int(last) + 1, 10))
    assert [name for name in first[0] if name in NAMES] == NAMES
    if kind == "fsdp":
        halves = np.concatenate([first[0]["0.weight"], second[0]["0.weight"]])
        assert halves.shape == (16, 8)
    else:
        np.testing.assert_array_equal(first[0]["0.weight"], second[0]["0.weight"])
        np.testing.assert_array_equal(first[0]["gradient/0.weight"], second[0]["gradient/0.weight"])
        assert first[0]["loss"] != second[0]["loss"]
    assert (tmp_path / "trial" / "training_job_end.ts").exists()
