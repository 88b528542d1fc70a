"""Writes the trials that are measured: many tensors, many steps, some gradients that are too small."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluator.modes import Mode
from evaluator.writer import TrialWriter, write_end_marker

THRESHOLD = 1e-7
"""Mean magnitudes of healthy gradients are about 1e-2, those that are too small about 1e-11."""


@dataclass(frozen=True)
class Shape:
    """How large a trial is."""

    steps: int
    tensors: int
    elements: int
    only_gradients: bool = False
    """Otherwise one tensor is a loss, and half of the others are weights."""

    def __str__(self) -> str:
        """As it stands in the tables."""
        return f"{self.steps:,} steps x {self.tensors:,} tensors x {self.elements:,} float32"

    def is_faulty(self, step: int) -> bool:
        """Whether a gradient is too small at this step: ten times in a trial, never at steps in a row."""
        apart = max(2, self.steps // 10)
        return step % apart == apart // 2


def write_trial(folder: Path, shape: Shape, *, seed: int = 0) -> Path:
    """A trial of one worker that has ended."""
    random = np.random.default_rng(seed)
    half = 0 if shape.only_gradients else (shape.tensors - 1) // 2
    weights = {f"layer{at}.weight": random.normal(0, 0.1, shape.elements).astype(np.float32) for at in range(half)}
    losses = [] if shape.only_gradients else ["loss"]
    gradients = [f"gradient/layer{at}.weight" for at in range(shape.tensors - half - len(losses))]
    collections = {"weights": list(weights), "gradients": gradients, "losses": losses}
    base = random.standard_normal(shape.elements, np.float32)
    with TrialWriter(folder, collections=collections) as writer:
        for step in range(shape.steps):
            scales = random.uniform(5e-3, 2e-2, len(gradients)).astype(np.float32)
            if shape.is_faulty(step):
                scales[random.integers(len(gradients))] *= 1e-9
            values: dict[str, object] = {}
            for at, name in enumerate(weights):
                weights[name] = weights[name] - np.float32(1e-2) * scales[at] * base
                values[name] = weights[name]
            values |= {name: np.float32(1.0 / (1.0 + 0.01 * step)) for name in losses}
            values |= {name: scale * base for name, scale in zip(gradients, scales, strict=True)}
            writer.save(step, values, mode=Mode.TRAIN, mode_step=step)
    return folder


def write_many(folder: Path, *, steps: int, workers: int, ended: bool = True) -> Path:
    """A trial of several workers that save one small tensor each at every step."""
    value = np.full(4, 1e-2, np.float32)
    writers = [
        TrialWriter(folder, worker=f"worker_{at}", num_workers=workers, collections={"gradients": ["gradient/a"]})
        for at in range(workers)
    ]
    for step in range(steps):
        for writer in writers:
            writer.save(step, {"gradient/a": value}, mode=Mode.TRAIN, mode_step=step, wall_time=0.0)
    if ended:
        write_end_marker(folder)
    return folder
