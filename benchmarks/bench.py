"""Times one rule and all rules over a generated trial, beside a bare pass over the same bytes; everything in one run.

Run as `python -m benchmarks.bench [--steps N] [--tensors N] [--elements N] [--repeat N]`.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.generated_trial import write_trial
from evaluator import logs
from evaluator.clock import SystemClock
from evaluator.config.load import Arguments, load
from evaluator.job import Job

ONE_RULE = ("VanishingGradient:parameter_set=sagemaker,threshold=1e-30",)
"""A threshold that nothing is below, so that the rule judges every step."""


def bare_pass(trial: Path) -> float:
    """The least that has to be done: read all event files, and take the mean of |x| of their bytes as float32."""
    total = 0.0
    for path in sorted(trial.glob("events/*/*.tfevents")):
        data = path.read_bytes()
        with np.errstate(all="ignore"):  # the bytes are not only numbers
            total += float(np.abs(np.frombuffer(data, np.float32, len(data) // 4)).mean())
    return total


def evaluate(trial: Path, output: Path, rules: tuple[str, ...]) -> int:
    """A whole job in this process, statuses and findings written."""
    config = load(Arguments(trial=str(trial), rules=rules, output=str(output)), {})
    status = Job(config, SystemClock()).run().status
    return sum(rule.Evaluation.evaluated for rule in status.rules)


def median(repeat: int, work: Callable[[], object]) -> float:
    """The median seconds of several runs."""
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def main() -> None:
    """Make the trial, time it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name, default in (("steps", 1000), ("tensors", 200), ("elements", 100), ("repeat", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    logs.configure(SystemClock(), level="error")
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        trial = write_trial(Path(folder, "trial"), steps=asked.steps, tensors=asked.tensors, elements=asked.elements)
        output = Path(folder, "output")
        if evaluate(trial, output, ONE_RULE) != asked.steps:
            raise SystemExit("bench: VanishingGradient was not evaluated at every step, so there is nothing to time")
        bare = median(asked.repeat, lambda: bare_pass(trial))
        one = median(
            asked.repeat,
            lambda: evaluate(trial, output, ONE_RULE),
        )
        every = median(asked.repeat, lambda: evaluate(trial, output, ()))
    size = f"{asked.steps} steps x {asked.tensors} tensors x {asked.elements} float32"
    table = Table(title=f"{size}, median of {asked.repeat}")
    for column in ("work", "seconds", "times the bare pass"):
        table.add_column(column, justify="left" if column == "work" else "right")
    table.add_row("bare pass: read the event files, one numpy pass", f"{bare:.3f}", "1.0")
    table.add_row("VanishingGradient, whole job", f"{one:.3f}", f"{one / bare:.1f}")
    table.add_row("every built-in rule, whole job", f"{every:.3f}", f"{every / bare:.1f}")
    console.print(table)
    versions = f"{platform.python_implementation()} {platform.python_version()}, numpy {np.__version__}"
    console.print(f"{versions}, {platform.machine()}")


if __name__ == "__main__":
    main()
