"""What all workloads share: trials that are written once, runs in turn, medians, rows that hold a target."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.marked_page import table_lines
from benchmarks.speed.ours import Judged
from benchmarks.speed.reference import Reference
from benchmarks.speed.trials import Shape, write_trial

Ran = TypeVar("Ran")

CLOSE = 1e-4
"""How far two measured values may be apart, relatively: the reference takes means in float32."""

HEAD = ("workload", "what", "measured", "compared with", "ratio or value", "target", "met")


@dataclass(frozen=True)
class Row:
    """One line of a table; `met` is None where there is no target."""

    workload: str
    what: str
    measured: str
    compared: str
    value: str
    target: str = ""
    met: bool | None = None

    def cells(self) -> list[str]:
        """As they stand in the table."""
        met = {None: "", True: "yes", False: "no"}[self.met]
        return [self.workload, self.what, self.measured, self.compared, self.value, self.target, met]


@dataclass
class Bench:
    """One call: where trials and outputs lie, how often each thing runs, and the reference if there is one."""

    folder: Path
    repeat: int
    reference: Reference | None = None
    _trials: dict[Shape, Path] = field(default_factory=dict)

    def trial(self, shape: Shape) -> Path:
        """A trial of this shape, written at most once, also over several calls with the same folder."""
        name = f"{shape.steps}x{shape.tensors}x{shape.elements}{'g' if shape.only_gradients else ''}"
        return once(self.folder / name, lambda folder: write_trial(folder, shape))

    @property
    def output(self) -> Path:
        """Where jobs of this call write; other calls may have the same folder."""
        return self.folder / f"output-{os.getpid()}"


@dataclass(frozen=True)
class Workload:
    """One part of the page: the letters of the workloads in it, and the function that measures them and shows them."""

    part: str
    letters: str
    measure: Callable[[Bench], str]


def once(folder: Path, write: Callable[[Path], object]) -> Path:
    """Write a folder, unless a former call wrote it to its end."""
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        write(unfinished)
        unfinished.rename(folder)
    return folder


def in_turn(works: Mapping[str, Callable[[], Ran]], repeat: int) -> dict[str, list[Ran]]:
    """Each of them `repeat` times, one after the other, so that whatever else the machine does falls on all."""
    results: dict[str, list[Ran]] = {name: [] for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            results[name].append(work())
    return results


def median_seconds(runs: Sequence[Judged]) -> float:
    """The median of how long they took."""
    return statistics.median(run.seconds for run in runs)


def check_verdicts(runs: Mapping[str, Sequence[Judged]]) -> None:
    """Every run judged the same steps and found the same.

    Raises:
        SystemExit: they did not; then no ratio says anything.
    """
    every = [(name, run) for name, several in runs.items() for run in several]
    first_name, first = every[0]
    if not first.met or not first.judged:
        raise SystemExit(f"{first_name}: judged {first.judged} steps and found {len(first.met)} issues; expected some")
    for name, run in every[1:]:
        if not same_verdicts(first, run):
            raise SystemExit(f"{first_name} and {name} differ, so there is no ratio:\n  {first}\n  {run}")


def same_verdicts(one: Judged, other: Judged) -> bool:
    """Whether the same number of steps was judged, and the same found; a class rule tells steps only."""
    if one.judged != other.judged or len(one.met) != len(other.met):
        return False
    for (step, tensor, value), (other_step, other_tensor, other_value) in zip(one.met, other.met, strict=True):
        if step != other_step:
            return False
        if value is None or other_value is None:
            continue
        if tensor != other_tensor or not math.isclose(value, other_value, rel_tol=CLOSE):
            return False
    return True


def against(workload: str, what: str, ours: float, other: str, others: float, at_most: float | None = None) -> Row:
    """A row that compares seconds; a target below 1 is shown as a fraction."""
    ratio = ours / others
    target = "" if at_most is None else f"at most {_ratio(at_most)}"
    met = None if at_most is None else ratio <= at_most
    return Row(workload, what, seconds(ours), f"{other}: {seconds(others)}", _ratio(ratio), target, met)


def seconds(value: float) -> str:
    """A time with three digits."""
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def _ratio(value: float) -> str:
    return f"1/{1 / value:.3g}" if value < 0.95 else f"{value:.3g}x"


def machine(reference: Reference | None) -> str:
    """The machine and the versions, in one line."""
    parts = [f"{_processor()}, {os.cpu_count()} cores, {_memory()}", f"Python {platform.python_version()}"]
    parts.append(f"numpy {np.__version__}")
    if reference is not None:
        parts.append(f"smdebug {reference.version}")
    return ", ".join(parts)


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    return "\n".join(table_lines(list(HEAD), [row.cells() for row in rows]))
