"""Writes the trials that benchmarks read: many tensors, many steps, random numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evaluator.modes import Mode
from evaluator.writer import TrialWriter, write_end_marker


def write_trial(folder: Path, *, steps: int, tensors: int, elements: int, seed: int = 0) -> Path:
    """A trial of one worker: half of the tensors are weights, half are their gradients, and there is a loss."""
    random = np.random.default_rng(seed)
    half = (tensors - 1) // 2
    weights = {f"layer{number}.weight": random.normal(0, 0.1, elements).astype(np.float32) for number in range(half)}
    gradients = [f"gradient/{name}" for name in weights]
    gradients += [f"gradient/extra{number}" for number in range(tensors - 1 - 2 * half)]
    collections = {"weights": list(weights), "gradients": gradients, "losses": ["loss"]}
    writer = TrialWriter(folder, collections=collections)
    for step in range(steps):
        noise = random.normal(0, 1e-2, (len(gradients), elements)).astype(np.float32)
        values: dict[str, object] = {}
        for name, moved in zip(weights, noise, strict=False):
            weights[name] = weights[name] - np.float32(1e-2) * moved
            values[name] = weights[name]
        values["loss"] = np.float32(1.0 / (1.0 + 0.01 * step))
        values |= dict(zip(gradients, noise, strict=True))
        writer.save(step, values, mode=Mode.TRAIN)
    writer.close(end=False)
    write_end_marker(folder)
    return folder
