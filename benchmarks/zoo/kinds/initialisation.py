"""Faults of the first weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.zoo.consequences import FLAT, INITIAL, NO_GRADIENT, SHAKEN
from benchmarks.zoo.evidence import vanished
from benchmarks.zoo.kind import Fault, Kind
from benchmarks.zoo.programs import Shape, from_start
from benchmarks.zoo.run import Array, Run
from benchmarks.zoo.training import Network

BLOCKS = replace(Shape(), blocks=(3, 4))


def _every(change: Callable[[Array], Array]) -> Callable[[Network], None]:
    """Change the weights of all layers; biases start at zero."""

    def apply(network: Network) -> None:
        for layer in network.layers:
            for part, value in layer.values.items():
                layer.values[part] = np.zeros_like(value) if part == "bias" else change(value)

    return apply


def _proof_constant(run: Run) -> None:
    weights = [run.values(name)[0] for name in run.names("^MLP.*weight")]
    assert all(np.ptp(value) == 0 for value in weights)
    later = run.values("MLP_block1.fc.weight")[-1]
    assert np.ptp(later, axis=0).max() < 1e-3 * max(1e-3, np.abs(later).mean()), "units have become different"


def _proof_huge(run: Run) -> None:
    variances = [run.values(name)[0].var() for name in run.names("relu_input")]
    assert variances[-1] > 1e3 * variances[0]
    assert run.series("CrossEntropyLoss_output_0")[0] > 100


KINDS = (
    Kind(
        "constant-init",
        "all weights start at 0.05: all units of a layer stay the same",
        from_start(replace(BLOCKS, rate=(0.03, 0.06)), _every(lambda value: np.full_like(value, 0.05))),
        _proof_constant,
        Fault(INITIAL, (*FLAT, "VanishingGradient")),
    ),
    Kind(
        "zero-init",
        "all weights start at 0",
        from_start(BLOCKS, _every(np.zeros_like)),
        vanished("gradient/MLP_block0.fc.weight"),
        Fault((*INITIAL, *NO_GRADIENT, "DeadRelu"), FLAT),
    ),
    Kind(
        "huge-init",
        "weights start fifty times too large",
        from_start(replace(BLOCKS, gain=60.0, rate=(1e-4, 3e-4))),
        _proof_huge,
        Fault(INITIAL, (*FLAT, *SHAKEN, "DeadRelu", "VanishingGradient", "AllZero")),
    ),
)
