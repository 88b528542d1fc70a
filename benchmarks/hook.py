"""How much slower a training on the CPU becomes by the hook for PyTorch, against the same loop without it.

    python -m benchmarks.hook [--write docs/performance.md]

Both loops run in turns, a hundred steps each, so that whatever else the machine does falls on both; the hook saves one
step of each of its hundreds. Times are those of the processor in all threads, so the thread that writes counts in full,
also where it has a core of its own; waiting for the disk does not count. Medians are taken of the differences between
neighbours. What the chosen copies and reductions cost of it is measured by doing just that, in turn with both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.marked_page import put, table_lines
from evaluator.hooks._torch_step import Collected
from evaluator.hooks.torch import MOST_ELEMENTS, MOST_OF_SAMPLES, Hook
from evaluator.saving.failures import Failures

STEPS, TURNS, WARM_UP = 100, 15, 2


def training(width: int, batch: int) -> tuple[Any, Callable[[], Any]]:
    """A model and a function that makes one step of its training."""
    import torch  # noqa: PLC0415 - installed in an environment of its own
    from torch import nn  # noqa: PLC0415 - the same

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(batch, 64), torch.randint(0, 10, (batch,))

    def step() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def seconds(turn: Callable[[], None]) -> float:
    """How long the processor works at something, in all threads."""
    begin = time.process_time()
    turn()
    return time.process_time() - begin


def copies(model: Any, batch: int, width: int) -> Callable[[], None]:
    """What the hook takes of a step by itself: parameters, gradients, activations, as values and reductions."""
    activation = model[0].weight.new_ones(batch, width)

    def copy() -> None:
        found = Collected("auto", MOST_ELEMENTS, MOST_OF_SAMPLES, Failures())
        for name, parameter in model.named_parameters():
            found.add(name, parameter)
            found.add(f"gradient/{name}", parameter.grad)
        for number in range(6):
            found.add_samples(f"activation{number}", activation)
        found.reductions()

    return copy


def measure(width: int, batch: int) -> list[str]:
    """The cells of one row."""
    # two models, since the hook is on the one also while it waits for the first step of its next turn
    (model, step), (_, plain_step) = training(width, batch), training(width, batch)
    with tempfile.TemporaryDirectory() as folder:
        hook = Hook(model, Path(folder, "trial"), every=STEPS)

        def without() -> None:
            for _ in range(STEPS):
                plain_step()

        def with_hook() -> None:
            for _ in range(STEPS):
                hook.step(loss=step())

        copy = copies(model, batch, width)
        turns = [(seconds(without), seconds(with_hook), seconds(copy)) for _ in range(TURNS + WARM_UP)][WARM_UP:]
        hook.close()
        assert hook.failures == 0
        saved = sum(path.stat().st_size for path in Path(folder).rglob("*.tfevents")) / (TURNS + WARM_UP)
    base = statistics.median(plain for plain, _, _ in turns)
    extra = statistics.median(hooked - plain for plain, hooked, _ in turns)
    chosen = statistics.median(copying for _, _, copying in turns)
    return [
        f"{sum(parameter.numel() for parameter in model.parameters()):,}",
        f"{1e3 * base / STEPS:.2f} ms",
        f"{saved / 2**20:.2f} MiB",
        f"{100 * extra / base:+.1f} %",
        f"{100 * chosen / base:.1f} %",
        f"{100 * (extra - chosen) / base:+.1f} %",
    ]


def table() -> str:
    """The table of all models."""
    head = ["parameters", "step without the hook", "saved step", "with the hook", "copies and reductions", "the rest"]
    rows = [measure(width, batch) for width, batch in ((128, 64), (256, 256), (512, 128))]
    return "\n".join(table_lines(head, rows))


def main() -> None:
    """Measure, print, and write where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the page that has the table")
    arguments = parser.parse_args()
    made = table()
    print(made)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if arguments.write:
        put("hook", arguments.write, made)


if __name__ == "__main__":
    main()
