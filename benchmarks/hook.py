"""How much slower a training on the CPU becomes by the hook for PyTorch, against the same loop without it.

    python -m benchmarks.hook [--write docs/performance.md] [--folder DIR]

Both loops run in turns of a hundred steps, of which the hook saves one. Within a turn they alternate every 25 steps, so
that whatever else the machine does falls on both, and what is compared is the difference of a turn. They train the same
model, since two would not lie alike in memory. The step that is saved is the first of its 25, these are not over before
its files are there, and the hook watches layers only between its last 25 of a turn and its first 25 of the next: no
work of the hook falls on the other loop. Of all turns the median is taken; behind it stands how sure it is, as the
range of 90 % of the medians of samples drawn from the turns.

Two things are measured in turn with the loops, at the same state of caches: the bare copies and reductions of exactly
what the hook saved, in PyTorch's own calls; and the files that it wrote, in bare calls of the system.

Step time is what the training waits. Processor time is that of all threads, also of the one that writes, which works
beside the training where there is a second core.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.marked_page import put, table_lines
from evaluator.formats.index_file import parse_index
from evaluator.formats.key_names import event_key, index_key
from evaluator.hooks._torch_values import REDUCTIONS, array_of, fetched, first_rows, reduced
from evaluator.hooks.torch import MOST_ELEMENTS, MOST_OF_SAMPLES, Hook

EVERY, BLOCK, WARM_UP = 100, 25, 3
SECONDS = 15.0
"""How long one model is measured, at the least."""
LEAST_TURNS = 12
DRAWN = 2000

MODELS = ((128, 64), (256, 256), (512, 128))
"""Widths of the layers, and samples in a batch."""


@dataclass
class Training:
    """A model, what makes one step of its training, and the tensors that a hook sees in it."""

    width: int
    batch: int
    model: Any = None
    seen: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the model, always the same."""
        import torch  # noqa: PLC0415 - installed in an environment of its own
        from torch import nn  # noqa: PLC0415 - the same

        torch.manual_seed(0)
        torch.set_num_threads(1)
        width = self.width
        self.model = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 10),
        )  # fmt: skip
        self._loss = nn.functional.cross_entropy
        self._optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self._x, self._y = torch.randn(self.batch, 64), torch.randint(0, 10, (self.batch,))

    def step(self) -> Any:
        """One step; the loss of it."""
        self._optimizer.zero_grad()
        loss = self._loss(self.model(self._x), self._y)
        loss.backward()
        self._optimizer.step()
        return loss

    def look(self) -> None:
        """Keep what went into and came out of the layers that a hook watches in one step, and its loss."""
        layers = [module for module in self.model if type(module).__name__ == "ReLU"]
        handles = [
            layer.register_forward_hook(lambda _, inputs, output: self.seen.extend((*inputs, output)))
            for layer in layers
        ]
        self.seen += (self._x, self.step())
        for handle in handles:
            handle.remove()

    def copy(self) -> tuple[list[Any], dict[str, dict[str, float]]]:
        """The bare copies and reductions of a step, as a script would make them that knows what it wants."""
        values, vectors = [], {}
        for name, parameter in self.model.named_parameters():
            for of, tensor in ((name, parameter.detach()), (f"gradient/{name}", parameter.grad)):
                if tensor.numel() <= MOST_ELEMENTS:
                    values.append(array_of(tensor))
                else:
                    vectors[of] = reduced(tensor)
        values += [array_of(first_rows(tensor.detach(), MOST_OF_SAMPLES)) for tensor in self.seen]
        return values, fetched(vectors)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """How long something takes, and how long the processor works meanwhile, in all threads; in seconds."""
    processor, begin = time.process_time(), time.perf_counter()
    work()
    return time.perf_counter() - begin, time.process_time() - processor


Times = list[tuple[float, float]]


@dataclass
class Measured:
    """Times of each turn, and what was saved in one."""

    plain: Times = field(default_factory=list)
    hooked: Times = field(default_factory=list)
    copies: Times = field(default_factory=list)
    files: Times = field(default_factory=list)
    size: int = 0

    def shares(self, kind: int, *without: Times) -> list[float]:
        """What the hook takes in each turn, less the cost of other things, in percent of the median plain turn."""
        base = statistics.median(turn[kind] for turn in self.plain) / 100
        return [
            (hooked[kind] - plain[kind] - sum(of[turn][kind] for of in without)) / base
            for turn, (hooked, plain) in enumerate(zip(self.hooked, self.plain, strict=True))
        ]


def measure(width: int, batch: int, folder: Path) -> Measured:
    """Run both loops in turn."""
    training = Training(width, batch)
    training.look()
    trial, bare = folder / "trial", folder / "bare"
    hook = Hook(training.model, trial, every=EVERY)
    found = Measured()
    turn = 0

    def without() -> None:
        for _ in range(BLOCK):
            training.step()

    def with_hook() -> None:
        for _ in range(BLOCK):
            hook.step(loss=training.step())
        wait_for(trial / index_key(turn * EVERY, "worker_0"))

    end = time.perf_counter() + SECONDS
    while turn < WARM_UP + LEAST_TURNS or time.perf_counter() < end:
        pairs = []
        for block in range(EVERY // BLOCK):
            # the hook is first and last in a turn
            order = (without, with_hook) if block % 2 else (with_hook, without)
            times = {work: timed(work) for work in order}
            pairs.append((times[without], times[with_hook]))
            if block == 0:
                copies = timed(training.copy)
        data = [(trial / key(turn * EVERY, "worker_0")).read_bytes() for key in (event_key, index_key)]
        files = timed(partial(write, bare / str(turn), *data))
        if turn >= WARM_UP:
            for of, side in ((found.plain, 0), (found.hooked, 1)):
                of.append((sum(pair[side][0] for pair in pairs), sum(pair[side][1] for pair in pairs)))
            found.copies.append(copies)
            found.files.append(files)
        turn += 1
    hook.close()
    check(hook, data[1], training.copy())
    found.size = len(data[0])
    return found


def wait_for(path: Path) -> None:
    """Wait until a file is there."""
    while not path.exists():
        time.sleep(0.0002)


def write(folder: Path, event: bytes, index: bytes) -> None:
    """The two files of a step, with nothing but the calls that it takes."""
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - the bare call
    for name, data in (("event", event), ("index", index)):
        file = os.open(folder / f"{name}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(file, data)
        os.close(file)
        os.replace(folder / f"{name}.tmp", folder / name)  # noqa: PTH105 - the same


def check(hook: Hook, index: bytes, copied: tuple[list[Any], dict[str, dict[str, float]]]) -> None:
    """Whether what is compared is the same: as many tensors and reductions, of as many bytes but for descriptions."""
    values, reductions = copied
    saved = parse_index(index, "the last step")
    assert hook.failures == 0
    assert len(saved.names) == len(values) + len(REDUCTIONS) * len(reductions)
    size = sum(value.nbytes for value in values) + 8 * len(REDUCTIONS) * len(reductions)
    described = int(saved.lengths.sum()) - size
    # name, shape, type, mode, time and frame of a record
    assert 50 * len(saved.names) < described < 300 * len(saved.names)


def spread(shares: Sequence[float]) -> str:
    """The median, and the range of 90 % of the medians of samples drawn anew."""
    chance = random.Random(0)  # noqa: S311 - no secret
    medians = sorted(statistics.median(chance.choices(shares, k=len(shares))) for _ in range(DRAWN))
    least, most = medians[DRAWN // 20], medians[-DRAWN // 20]
    return f"{statistics.median(shares):+.1f} % ({least:+.1f} to {most:+.1f})"


def row(width: int, batch: int, folder: Path) -> list[str]:
    """The cells of one model."""
    found = measure(width, batch, folder)
    step = statistics.median(wall for wall, _ in found.plain) / EVERY
    copies = statistics.median(wall for wall, _ in found.copies) / EVERY
    files = statistics.median(processor for _, processor in found.files) / EVERY
    parameters = sum(parameter.numel() for parameter in Training(width, batch).model.parameters())
    return [
        f"{parameters:,}",
        f"{1e3 * step:.2f} ms",
        f"{found.size / 2**20:.2f} MiB",
        f"{100 * copies / step:.1f} %",
        spread(found.shares(0, found.copies)),
        spread(found.shares(1, found.copies)),
        f"{100 * files / step:.1f} %",
    ]


def table(folder: Path | None) -> str:
    """The table of all models."""
    head = [
        "parameters", "step without the hook", "saved step", "copies and reductions", "the rest, step time",
        "the rest, processor time", "of which bare files",
    ]  # fmt: skip
    rows = []
    for width, batch in MODELS:
        with tempfile.TemporaryDirectory(dir=folder) as made:
            rows.append(row(width, batch, Path(made)))
    return "\n".join(table_lines(head, rows))


def main() -> None:
    """Measure, print, and write where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page that has the table")
    parser.add_argument("--folder", type=Path, help="where trials are written; by default where temporary files are")
    arguments = parser.parse_args()
    made = table(arguments.folder)
    print(made)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if arguments.write:
        put("hook", arguments.write, made)


if __name__ == "__main__":
    main()
