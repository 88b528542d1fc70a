"""The layers of images and of sequences."""

from __future__ import annotations

import numpy as np

from benchmarks.zoo.layers import Layer, Random
from benchmarks.zoo.run import Array


class Conv(Layer):
    """A 3x3 convolution that keeps the size, as one matrix product over all patches (im2col)."""

    def __init__(self, name: str, random: Random, inputs: int, outputs: int, *, save_input: bool = False) -> None:
        """PyTorch's shapes and initialisation."""
        super().__init__(name)
        limit = 1 / np.sqrt(inputs * 9)
        self.values = {
            "weight": random.uniform(-limit, limit, (outputs, inputs, 3, 3)).astype(np.float32),
            "bias": random.uniform(-limit, limit, outputs).astype(np.float32),
        }
        self.saves = ("input",) if save_input else ()

    def forward(self, x: Array, *, training: bool) -> Array:
        """x: (batch, channels, height, width)."""
        del training
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        self._x = patches.transpose(0, 2, 3, 1, 4, 5).reshape(*x.shape[:1], *x.shape[2:], -1)
        weight = self.values["weight"].reshape(len(self.values["bias"]), -1)
        return np.asarray(np.moveaxis(self._x @ weight.T + self.values["bias"], 3, 1))

    def backward(self, slope: Array) -> Array:
        """Adds up what each pixel did in the nine patches that it is in."""
        weight = self.values["weight"]
        flat = np.moveaxis(slope, 1, 3).reshape(-1, len(weight))
        self.slopes = {
            "weight": (flat.T @ self._x.reshape(len(flat), -1)).reshape(weight.shape),
            "bias": flat.sum(axis=0),
        }
        count, _, height, width = slope.shape
        patches = (flat @ weight.reshape(len(weight), -1)).reshape(count, height, width, -1, 3, 3)
        padded = np.zeros((count, patches.shape[3], height + 2, width + 2), np.float32)
        for row in range(3):
            for column in range(3):
                part = np.moveaxis(patches[..., row, column], 3, 1)
                padded[:, :, row : row + height, column : column + width] += part
        return padded[:, :, 1:-1, 1:-1]


class Pool(Layer):
    """The mean of 2x2 pixels."""

    def forward(self, x: Array, *, training: bool) -> Array:
        """Halves both sides, which are even."""
        del training
        count, channels, height, width = x.shape
        return np.asarray(x.reshape(count, channels, height // 2, 2, width // 2, 2).mean(axis=(3, 5)))

    def backward(self, slope: Array) -> Array:
        """A quarter to each pixel."""
        return np.repeat(np.repeat(slope, 2, axis=2), 2, axis=3) / np.float32(4)


class Flatten(Layer):
    """All axes but the batch in one."""

    def forward(self, x: Array, *, training: bool) -> Array:
        """Keeps the shape for the way back."""
        del training
        self._x = x
        return x.reshape(len(x), -1)

    def backward(self, slope: Array) -> Array:
        """As it was."""
        return slope.reshape(self._x.shape)


class Embedding(Layer):
    """A vector per token, and one per position added to it."""

    saves = ("input",)

    def __init__(self, name: str, random: Random, tokens: int, length: int, width: int) -> None:
        """Normal, as PyTorch's embeddings; positions a tenth of that."""
        super().__init__(name)
        self.values = {
            "weight": random.normal(0, 1, (tokens, width)).astype(np.float32),
            "position.weight": random.normal(0, 0.1, (length, width)).astype(np.float32),
        }

    def forward(self, x: Array, *, training: bool) -> Array:
        """x: (batch, length) of token numbers."""
        del training
        self._x = x
        return np.asarray(self.values["weight"][x] + self.values["position.weight"])

    def backward(self, slope: Array) -> Array:
        """Rows of tokens that did not occur have no slope."""
        weight = np.zeros_like(self.values["weight"])
        np.add.at(weight, self._x, slope)
        self.slopes = {"weight": weight, "position.weight": slope.sum(axis=0)}
        return slope


class LayerNorm(Layer):
    """Zero mean and unit variance over the last axis, then a trained scale (from 1) and shift (from 0)."""

    def __init__(self, name: str, width: int) -> None:
        """PyTorch starts at these constants too."""
        super().__init__(name)
        self.values = {"weight": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}
        self._scale: Array = np.ones(1, np.float32)

    def forward(self, x: Array, *, training: bool) -> Array:
        """Keeps the normalised input."""
        del training
        self._scale = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + np.float32(1e-5))
        self._x = (x - x.mean(axis=-1, keepdims=True)) * self._scale
        return np.asarray(self._x * self.values["weight"] + self.values["bias"])

    def backward(self, slope: Array) -> Array:
        """Without the parts along the mean and along the normalised input."""
        axes = tuple(range(slope.ndim - 1))
        self.slopes = {"weight": (slope * self._x).sum(axis=axes), "bias": slope.sum(axis=axes)}
        inner = slope * self.values["weight"]
        along = (inner * self._x).mean(axis=-1, keepdims=True)
        return np.asarray((inner - inner.mean(axis=-1, keepdims=True) - self._x * along) * self._scale)


class Attention(Layer):
    """One head of self-attention, added to its input."""

    def __init__(self, name: str, random: Random, width: int) -> None:
        """Four square matrices without biases."""
        super().__init__(name)
        limit = 1 / np.sqrt(width)
        self.values = {
            f"{part}.weight": random.uniform(-limit, limit, (width, width)).astype(np.float32)
            for part in ("query", "key", "value", "out")
        }
        self._kept: tuple[Array, ...] = ()

    def forward(self, x: Array, *, training: bool) -> Array:
        """x: (batch, length, width)."""
        del training
        self._x = x
        query, key, value = (x @ self.values[f"{part}.weight"].T for part in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(x.shape[-1]))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = shares @ value
        self._kept = (query, key, value, shares, mixed)
        return np.asarray(x + mixed @ self.values["out.weight"].T)

    def backward(self, slope: Array) -> Array:
        """Through the mixture, and through the shares with which it was made."""
        query, key, value, shares, mixed = self._kept
        along = slope @ self.values["out.weight"]
        of_shares = along @ value.transpose(0, 2, 1)
        of_scores = shares * (of_shares - (of_shares * shares).sum(axis=-1, keepdims=True))
        of_scores = of_scores / np.float32(np.sqrt(self._x.shape[-1]))
        parts = {
            "query": of_scores @ key,
            "key": of_scores.transpose(0, 2, 1) @ query,
            "value": shares.transpose(0, 2, 1) @ along,
        }
        inputs = self._x.reshape(-1, self._x.shape[-1])
        self.slopes = {f"{part}.weight": value.reshape(-1, value.shape[-1]).T @ inputs for part, value in parts.items()}
        self.slopes["out.weight"] = slope.reshape(-1, slope.shape[-1]).T @ mixed.reshape(-1, mixed.shape[-1])
        given = slope
        for part, value in parts.items():
            given = given + value @ self.values[f"{part}.weight"]
        return np.asarray(given)


class Mean(Layer):
    """The mean over the positions of a sequence."""

    def forward(self, x: Array, *, training: bool) -> Array:
        """x: (batch, length, width)."""
        del training
        self._x = x
        return np.asarray(x.mean(axis=1))

    def backward(self, slope: Array) -> Array:
        """An equal part to each position."""
        length = self._x.shape[1]
        return np.repeat(slope[:, None, :] / np.float32(length), length, axis=1)
