"""Inputs to begin with: the files of small trials, and what is known to be hostile."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.formats.event import encode_event
from evaluator.formats.tfrecord import frame, records
from evaluator.modes import Mode
from evaluator.writer import TrialWriter
from tests.fuzz.pipeline import join

FOUND = Path(__file__).with_name("found")
"""One folder per target with inputs that once broke something; they are never forgotten."""

KEYS = (
    "000000000000_worker_0.json",
    "000000000001__job-localhost_replica-0_task-0_device-GPU-0.json",
    "worker_0_collections.json",
    "../secret",
    "/etc/hostname",
    "secret",
    "fifo",
    "a//b",
    "x" * 300,
    "\x1b[2J\u202e",
    "\udcff",
)


def small_trial(folder: Path) -> Path:
    """Two workers, three steps, numbers of several types, text, reductions and shapes."""
    shapes = {"conv0.output": (2, 3)}
    for worker in ("worker_0", "worker_1"):
        named = {
            "losses": ["loss"],
            "weights": {"include_regex": ["^conv.*weight"]},
            "gradients": ["gradient/conv0.weight"],
        }
        with TrialWriter(folder, worker=worker, num_workers=2, collections=named) as writer:
            for step in range(3):
                values = {
                    "loss": np.float32(1 / (step + 1)),
                    "conv0.weight": np.full((2, 2), step, np.float64),
                    "gradient/conv0.weight": np.full((2, 2), 1e-9, np.float32),
                    "labels": np.arange(3),
                    "words": np.array(["a", "long word"]),
                    "half": np.ones(2, np.float16),
                    "flags": np.array([True, False]),
                    "nothing": np.empty((0, 2)),
                }
                reductions = {"conv0.weight": {"mean": np.float32(step)}}
                writer.save(step, values, mode=Mode.TRAIN, reductions=reductions, shapes=shapes, wall_time=1.5 + step)
    (folder / "training_job_end.ts").touch()
    return folder


def files_of(folder: Path) -> list[tuple[str, bytes]]:
    """All files of a trial by their keys."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths]


def seeds() -> dict[str, list[bytes]]:
    """Target -> inputs."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        files = files_of(small_trial(Path(folder)))
    by_kind = {
        kind: [content for name, content in files if name.startswith(kind)]
        for kind in ("index", "events", "collections")
    }
    # single records too: the smaller an input, the more changes of it are tried
    by_kind["events"] += [frame(bytes(payload)) for _, payload in records(by_kind["events"][0])]
    how: dict[str, Any] = {"step": 7, "mode": Mode.EVAL, "mode_step": 1, "wall_time": 0.0}
    by_kind["events"].append(frame(encode_event("loss", np.float32(1), **how), true_checksum=True))
    by_kind["keys"] = [os.fsencode(key) for key in KEYS]
    by_kind["trial"] = [join(files), join(files[:-1]), join([file for file in files if "worker_1" not in file[0]])]
    for target, inputs in by_kind.items():
        inputs += [path.read_bytes() for path in sorted((FOUND / target).glob("*"))]
    return by_kind
