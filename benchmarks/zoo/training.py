"""The trainer: runs a program step by step and records what the PyTorch hook would have saved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.zoo.layers import Layer
from benchmarks.zoo.optimisers import Loss, Optimiser, Rate, Scaler, Sgd, cross_entropy
from benchmarks.zoo.run import Array, Run, Saved
from evaluator.modes import Mode

Batch = tuple[Array, Array]
Slopes = dict[str, Array]


@dataclass
class Network:
    """Layers in a row, in a module of this name."""

    name: str
    layers: list[Layer]

    def parameters(self) -> dict[str, Array]:
        """Full name -> value, in the order of the layers."""
        return {
            f"{self.name}_{layer.name}.{part}": value for layer in self.layers for part, value in layer.values.items()
        }

    def slopes(self) -> Slopes:
        """Full name of a parameter -> gradient, in the order in which the backward pass makes them."""
        return {
            f"{self.name}_{layer.name}.{part}": layer.slopes[part]
            for layer in reversed(self.layers)
            for part in reversed(layer.values)
            if part in layer.slopes
        }

    def put(self, name: str, value: Array) -> None:
        """Set a parameter by its full name."""
        layer = self.layer(next(one.name for one in self.layers if name.startswith(f"{self.name}_{one.name}.")))
        layer.values[name.removeprefix(f"{self.name}_{layer.name}.")] = value

    def layer(self, name: str) -> Layer:
        """The layer of this name."""
        return next(layer for layer in self.layers if layer.name == name)

    def forward(self, x: Array, *, training: bool, seen: dict[str, Array] | None = None) -> Array:
        """The output; the activations that are saved are put into `seen`."""
        for layer in self.layers:
            y = layer.forward(x, training=training)
            if seen is not None:
                seen |= {f"{layer.name}_{side}_0": x if side == "input" else y for side in layer.saves}
            x = y
        return x

    def backward(self, slope: Array) -> None:
        """Fill the slopes of all layers."""
        for layer in reversed(self.layers):
            slope = layer.backward(slope)


@dataclass
class Program:
    """A training program; faults are planted by replacing parts of it. Steps here count training steps."""

    network: Network
    data: Callable[[int, int], Batch]
    """(step, worker) -> the batch."""
    validation: Sequence[Batch]
    """The batches of one validation pass."""
    steps: int
    rate: Rate
    optimiser: Optimiser = field(default_factory=Sgd)
    loss: Loss = cross_entropy
    loss_name: str = "CrossEntropyLoss_output_0"
    save_every: int = 1
    eval_every: int = 10
    workers: int = 1
    accumulate: int = 1
    scaler: Scaler | None = None
    seconds: float = 0.4
    """About how long a step takes."""
    begins: int | None = None
    """The step at which a fault begins."""
    trains: Callable[[str], bool] = lambda _: True
    """Whether a parameter has a gradient."""
    moves: Callable[[str, int], bool] = lambda _name, _step: True
    """Whether the optimiser moves a parameter at a step."""
    averages: Callable[[int], bool] = lambda _: True
    """Whether the workers' gradients are averaged at a step."""
    tamper: Callable[[Network, int, int], None] = lambda _network, _step, _worker: None
    """Given the network before the forward pass of (step, worker)."""
    spoil: Callable[[Slopes, int, int], None] = lambda _slopes, _step, _worker: None
    """Given the gradients before they are saved."""
    waits: Callable[[int], float] = lambda _: 0.0
    """Seconds lost before a step."""
    shows: Callable[[Array, int], Array] = lambda loss, _: loss
    """The loss that the script saves, of the loss there is."""


def train(program: Program, random: np.random.Generator) -> Run:
    """Train, and give what was saved."""
    with np.errstate(all="ignore"):
        return _Trainer(program, random).run()


class _Trainer:
    """The state of one training."""

    def __init__(self, program: Program, random: np.random.Generator) -> None:
        self._program = program
        self._networks = [program.network, *(copy.deepcopy(program.network) for _ in range(program.workers - 1))]
        self._optimisers = [copy.deepcopy(program.optimiser) for _ in self._networks]
        self._random = random
        self._run = Run(workers=program.workers)
        self._step = 0
        self._counts = {Mode.TRAIN: 0, Mode.EVAL: 0}
        self._clock = 0.0
        self._summed: list[Slopes] = [{} for _ in self._networks]

    def run(self) -> Run:
        program = self._program
        for step in range(program.steps):
            if step == program.begins:
                self._run.begins = self._step
            self._clock += program.waits(step)
            self._train(step)
            if (step + 1) % program.eval_every == 0 or step + 1 == program.steps:
                self._validate()
        return self._run

    def _train(self, step: int) -> None:
        program = self._program
        parts = []
        for worker, network in enumerate(self._networks):
            program.tamper(network, step, worker)
            parts.append(self._passes(network, step, worker))
        slopes = [part[1] for part in parts]
        if program.workers > 1 and program.averages(step):
            mean = {name: np.asarray(np.mean([of[name] for of in slopes], axis=0)) for name in slopes[0]}
            slopes = [dict(mean) for _ in slopes]
        for worker, network in enumerate(self._networks):
            if program.scaler is not None:
                slopes[worker] = program.scaler.scaled(slopes[worker])
            program.spoil(slopes[worker], step, worker)
            gradients = {f"gradient/{name}": slope for name, slope in slopes[worker].items()}
            self._save(Mode.TRAIN, worker, network.parameters() | parts[worker][0] | gradients)
        self._tick(Mode.TRAIN)
        for worker in range(program.workers):
            self._update(step, worker, slopes[worker])

    def _passes(self, network: Network, step: int, worker: int) -> tuple[dict[str, Array], Slopes]:
        """Forward and backward: what is saved of it, and the gradients."""
        x, y = self._program.data(step, worker)
        seen: dict[str, Array] = {}
        outputs = network.forward(x, training=True, seen=seen)
        loss, slope = self._program.loss(outputs, y)
        network.backward(slope)
        seen |= self._judged(self._program.shows(loss, step), outputs, y)
        return seen, {name: slope for name, slope in network.slopes().items() if self._program.trains(name)}

    def _update(self, step: int, worker: int, slopes: Slopes) -> None:
        """Add up the gradients, and move the parameters when it is time."""
        program = self._program
        if program.scaler is not None:
            unscaled = program.scaler.unscaled(slopes)
            if unscaled is None:
                return
            slopes = unscaled
        summed = self._summed[worker]
        if program.accumulate > 1:
            for name, slope in slopes.items():
                summed[name] = summed.get(name, np.float32(0)) + slope / np.float32(program.accumulate)
            if (step + 1) % program.accumulate:
                return
            slopes = summed
        network, optimiser = self._networks[worker], self._optimisers[worker]
        values = network.parameters()
        for name, slope in slopes.items():
            if program.moves(name, step):
                network.put(name, optimiser.moved(name, values[name], slope, program.rate(step)))
        self._summed[worker] = {}

    def _validate(self) -> None:
        right: list[list[float]] = [[] for _ in self._networks]
        for number, (x, y) in enumerate(self._program.validation):
            last = number + 1 == len(self._program.validation)
            for worker, network in enumerate(self._networks):
                seen: dict[str, Array] = {}
                outputs = network.forward(x, training=False, seen=seen)
                loss, _ = self._program.loss(outputs, y)
                seen |= self._judged(loss, outputs, y)
                if "predictions" in seen:
                    right[worker].append(float(np.mean(seen["predictions"] == y)))
                    if last:
                        seen["scalar/accuracy"] = np.array([np.mean(right[worker])])
                self._save(Mode.EVAL, worker, network.parameters() | seen)
            self._tick(Mode.EVAL)

    def _judged(self, loss: Array, outputs: Array, y: Array) -> dict[str, Array]:
        """The loss, and of a classification labels and predictions."""
        seen = {self._program.loss_name: loss}
        if self._program.loss is cross_entropy:
            seen |= {"labels": y, "predictions": np.argmax(outputs, axis=1)}
        return seen

    def _save(self, mode: Mode, worker: int, values: dict[str, Array]) -> None:
        """Training steps at the interval, validation always."""
        count = self._counts[mode]
        if mode is Mode.TRAIN and count % self._program.save_every:
            return
        late = self._clock + 0.01 * worker
        copies = {name: np.array(value) for name, value in values.items()}
        self._run.saved.append(Saved(self._step, mode, count, copies, worker, late))

    def _tick(self, mode: Mode) -> None:
        """One step is over."""
        self._step += 1
        self._counts[mode] += 1
        self._clock += self._program.seconds * float(self._random.lognormal(0, 0.1))
