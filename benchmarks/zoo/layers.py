"""The layers of dense networks: each computes its output, and from the slope of that the slopes of all it was given."""

from __future__ import annotations

import numpy as np

from benchmarks.zoo.run import Array

Random = np.random.Generator


class Layer:
    """A layer without parameters that passes its input on; others override what they do."""

    saves: tuple[str, ...] = ()
    """Which of its "input" and "output" are saved."""

    def __init__(self, name: str) -> None:
        """Its name is the path of a module: `block0.fc`."""
        self.name = name
        self.values: dict[str, Array] = {}
        self.slopes: dict[str, Array] = {}
        self._x: Array = np.zeros(0)

    def forward(self, x: Array, *, training: bool) -> Array:
        """The output for a batch; axis 0 is the batch."""
        del training
        self._x = x
        return x

    def backward(self, slope: Array) -> Array:
        """From the slope of the loss along the output to that along the input; those of parameters go to `slopes`."""
        return slope


class Dense(Layer):
    """y = x W' + b, with PyTorch's shapes and its initialisation, times `gain`."""

    def __init__(self, name: str, random: Random, inputs: int, outputs: int, gain: float = 1.0) -> None:
        """Uniform in +-gain/sqrt(inputs)."""
        super().__init__(name)
        limit = gain / np.sqrt(inputs)
        self.values = {
            "weight": random.uniform(-limit, limit, (outputs, inputs)).astype(np.float32),
            "bias": random.uniform(-limit, limit, outputs).astype(np.float32),
        }

    def forward(self, x: Array, *, training: bool) -> Array:
        """Over the last axis."""
        del training
        self._x = x
        return np.asarray(x @ self.values["weight"].T + self.values["bias"])

    def backward(self, slope: Array) -> Array:
        """Summed over all axes but the last."""
        flat = slope.reshape(-1, slope.shape[-1])
        self.slopes = {"weight": flat.T @ self._x.reshape(-1, self._x.shape[-1]), "bias": flat.sum(axis=0)}
        return np.asarray(slope @ self.values["weight"])


class Relu(Layer):
    """max(x, 0)."""

    saves = ("input", "output")

    def forward(self, x: Array, *, training: bool) -> Array:
        """NaN stays NaN."""
        del training
        self._x = x
        return np.maximum(x, np.float32(0))

    def backward(self, slope: Array) -> Array:
        """Nothing passes where the unit was off."""
        return np.asarray(slope * (self._x > 0))


class Tanh(Layer):
    """tanh(x)."""

    saves = ("input", "output")

    def forward(self, x: Array, *, training: bool) -> Array:
        """Keeps the output, of which the slope is made."""
        del training
        self._x = np.tanh(x)
        return self._x

    def backward(self, slope: Array) -> Array:
        """1 - tanh^2."""
        return np.asarray(slope * (1 - self._x * self._x))


class Sigmoid(Layer):
    """1 / (1 + exp(-x))."""

    saves = ("input", "output")

    def forward(self, x: Array, *, training: bool) -> Array:
        """Through tanh, which does not overflow."""
        del training
        self._x = np.asarray(np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x)))
        return self._x

    def backward(self, slope: Array) -> Array:
        """Sigmoid times its complement."""
        return np.asarray(slope * self._x * (1 - self._x))


class Gelu(Layer):
    """x times a sigmoid of 1.702 x, the quick form of GELU."""

    saves = ("input", "output")

    def _gate(self, x: Array) -> Array:
        return np.asarray(np.float32(0.5) * (1 + np.tanh(np.float32(0.851) * x)))

    def forward(self, x: Array, *, training: bool) -> Array:
        """The gate is near 1 above 3 and near 0 below -3."""
        del training
        self._x = x
        return np.asarray(x * self._gate(x))

    def backward(self, slope: Array) -> Array:
        """By the product rule."""
        gate = self._gate(self._x)
        return np.asarray(slope * (gate + np.float32(1.702) * self._x * gate * (1 - gate)))


class Dropout(Layer):
    """While training, each unit is off with a probability, and the others are scaled up."""

    def __init__(self, name: str, random: Random, share: float) -> None:
        """Takes the randomness it needs from `random` as it goes."""
        super().__init__(name)
        self._random = random
        self._share = share
        self._kept: Array = np.ones(1, np.float32)

    def forward(self, x: Array, *, training: bool) -> Array:
        """Passes everything on when not training."""
        if not training:
            return x
        self._kept = ((self._random.random(x.shape) >= self._share) / (1 - self._share)).astype(np.float32)
        return np.asarray(x * self._kept)

    def backward(self, slope: Array) -> Array:
        """Through the units that were on."""
        return np.asarray(slope * self._kept)


class Lora(Layer):
    """A frozen matrix and a trained low-rank one beside it, whose second factor starts at zero.

    Source:
        Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1.
    """

    def __init__(self, name: str, random: Random, base: Dense, rank: int) -> None:
        """Around a layer that was trained before."""
        super().__init__(name)
        outputs, inputs = base.values["weight"].shape
        limit = 1 / np.sqrt(inputs)
        self.values = {
            "base_layer.weight": base.values["weight"],
            "base_layer.bias": base.values["bias"],
            "lora_A.weight": random.uniform(-limit, limit, (rank, inputs)).astype(np.float32),
            "lora_B.weight": np.zeros((outputs, rank), np.float32),
        }
        self._low: Array = np.zeros(0)

    def forward(self, x: Array, *, training: bool) -> Array:
        """Both ways added, the low-rank one doubled (alpha / rank = 2)."""
        del training
        self._x = x
        self._low = x @ self.values["lora_A.weight"].T
        frozen = x @ self.values["base_layer.weight"].T + self.values["base_layer.bias"]
        return np.asarray(frozen + 2 * (self._low @ self.values["lora_B.weight"].T))

    def backward(self, slope: Array) -> Array:
        """The slope of A is exactly zero as long as B is."""
        low = 2 * (slope @ self.values["lora_B.weight"])
        self.slopes = {"lora_A.weight": low.T @ self._x, "lora_B.weight": 2 * slope.T @ self._low}
        return np.asarray(slope @ self.values["base_layer.weight"] + low @ self.values["lora_A.weight"])
