"""Where the time of A and C goes: the program is interrupted a thousand times a second, and asked what it is doing."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from benchmarks.marked_page import table_lines
from benchmarks.speed.judging import RULE, SMALL
from benchmarks.speed.measuring import Bench, Workload
from benchmarks.speed.ours import run_here

INTERVAL = 0.001

PARTS: Sequence[tuple[str, str, str]] = (
    ("conditions of rules", "builtin_rules", "evaluator.rule_run:RuleRun.judge"),
    ("folding states of rules", "builtin_rules", "evaluator.series:Series.add"),
    ("measures and comparisons", "", "evaluator.engine.measuring:results_of"),
    ("measures and comparisons", "", "evaluator.engine.partners:Partners.compare"),
    ("working out how files are laid out", "", "evaluator.sources.event_templates:Templates._learn"),
    ("reading and cutting event files", "", "evaluator.sources.event_reading:EventReader.read"),
    ("reading and cutting event files", "", "evaluator.sources.event_reading:EventReader.read_alike"),
    ("finding step files and reading index files", "", "evaluator.trial.trial:Trial._poll"),
    ("working out what to read", "", "evaluator.plan:Plan.of"),
    ("rows of series", "", "evaluator.evaluation:Evaluation._add_rows"),
    ("asking rules, beside their conditions", "", "evaluator.evaluation:Evaluation._judge_runs"),
    ("statuses, findings and reasons", "", "evaluator.job:Job._tell"),
    ("statuses, findings and reasons", "", "evaluator.job:Job._end"),
    ("configuration and rules", "", "evaluator.config.load:load"),
)
"""What a part is called, and a function that is being called then, by one of the package before it where there is one;
the first that holds."""

REST = "the loop around them, and whatever is left"


@contextmanager
def sampled() -> Iterator[Counter[str]]:
    """Count, while this lasts, in which part the program is found."""
    found: Counter[str] = Counter()

    def look(_: int, frame: FrameType | None) -> None:
        found[part_of(frame)] += 1

    former = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, INTERVAL, INTERVAL)
    try:
        yield found
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def part_of(frame: FrameType | None) -> str:
    """The part that a stack is in."""
    functions: set[str] = set()
    packages: set[str] = set()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        functions.add(f"{module}:{frame.f_code.co_qualname}")
        packages.add(module.partition(".")[0])
        frame = frame.f_back
    for name, package, function in PARTS:
        if function in functions and (not package or package in packages):
            return name
    return REST


def profiled(run: Callable[[], object], repeat: int) -> tuple[Counter[str], float]:
    """How often each part was seen in all runs, and the seconds of one run while it was looked at."""
    run()
    begin = time.perf_counter()
    with sampled() as found:
        for _ in range(repeat):
            run()
    return found, (time.perf_counter() - begin) / repeat


def shown(profiles: Mapping[str, tuple[Counter[str], float]], steps: int) -> str:
    """Per part its share of each workload's time, and how many microseconds of each step that is."""
    names = [*dict.fromkeys(name for name, *_ in PARTS), REST]
    head = ["part", *(f"{letter}{what}" for letter in profiles for what in ("", ", a step"))]
    lines = []
    for name in names:
        cells = [name]
        for found, seconds in profiles.values():
            share = found[name] / max(1, found.total())
            cells += [f"{share:.1%}", f"{1e6 * share * seconds / steps:.0f} us"]
        lines.append(cells)
    return "\n".join(table_lines(head, lines))


def measure(bench: Bench) -> str:
    """Both workloads, one after the other."""
    trial, output = bench.trial(SMALL), bench.output
    works: dict[str, Callable[[], object]] = {
        "A": lambda: run_here(trial, output, rules=[RULE]),
        "C": lambda: run_here(trial, output),
    }
    return shown({letter: profiled(work, bench.repeat) for letter, work in works.items()}, SMALL.steps)


WORKLOADS = (Workload("speed-profile", "T", measure),)
