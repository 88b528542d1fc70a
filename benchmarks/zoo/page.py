"""The results as tables: on a terminal, and in Markdown between two marks of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks import marked_page
from benchmarks.incidents import Share, percent
from benchmarks.marked_page import table_lines
from benchmarks.zoo.results import KindResult, Whole, middle_of
from evaluator.rule import ParameterSet

Results = Mapping[ParameterSet, Sequence[KindResult]]
"""Set of rules -> kind by kind, in the same order."""
Rows = list[list[str]]

put = partial(marked_page.put, "zoo")
"""Writes this benchmark's part of a page."""
INTRODUCTION = """## The zoo: small training programs

{command} makes this table.
It runs small training programs in plain NumPy, saves what the hooks of SageMaker Debugger save, and judges every run by
all built-in rules, with the recommended parameters and with SageMaker's defaults.
Where a cell has two numbers, the first is of the recommended parameters and the second of SageMaker's.
Every finding of a healthy run is a false alarm.
A fault is found when one of the rules that are for it fires after the fault began."""
NO_RULE = "no rule yet"


def summary(results: Results) -> tuple[list[str], Rows]:
    """The numbers that matter, one line each."""
    wholes = [Whole.of(one) for one in results.values()]
    faulty = wholes[0].faulty
    unruled = [one.kind.name for one in faulty if not one.has_rule]

    def line(title: str, what: Callable[[Whole], str]) -> list[str]:
        return [title, *(what(whole) for whole in wholes)]

    rows = [
        line("kinds of fault found in every run", lambda whole: str(whole.kinds)),
        line("kinds of fault found in at least one run", lambda whole: str(whole.kinds_at_all)),
        line("faulty runs found", lambda whole: str(whole.runs(lambda one: one.recalled))),
        line("faulty runs in which that is told first", lambda whole: str(whole.runs(lambda one: one.first))),
        line("found at the right tensor or worker", lambda whole: str(whole.runs(lambda one: one.placed))),
        line(
            "saved steps from fault to finding, median",
            lambda whole: _number(middle_of(whole.faulty, lambda s: s.delay)),
        ),
        line("findings per fault, median", lambda whole: _number(middle_of(whole.faulty, lambda s: s.findings))),
        line(
            "unrelated findings per fault, median",
            lambda whole: _number(middle_of(whole.faulty, lambda s: s.unrelated)),
        ),
        line("healthy runs with a false alarm", lambda whole: _bounded(whole.alarmed)),
        line("false alarms per healthy run", lambda whole: f"{whole.alarms_per_run:.3f}"),
    ]
    if unruled:
        rows.append([f"kinds of fault without a rule yet: {', '.join(unruled)}", *[str(len(unruled))] * len(wholes)])
    return ["", *results], rows


def faults(results: Results) -> tuple[list[str], Rows]:
    """One line per kind of fault."""
    head = ["fault", "what was planted", "rules for it", "runs", "found", "told first", "right place"]
    head += ["steps until found", "findings", "unrelated", "unrelated rules (recommended)"]
    rows = []
    for same in zip(*results.values(), strict=True):
        fault = same[0].kind.fault
        if fault is None:
            continue
        cells = [
            same[0].kind.name,
            same[0].kind.about + (f" ({fault.note})" if fault.note else ""),
            ", ".join(fault.rules),
            str(same[0].runs),
            _pair(same, lambda one: str(one.recalled.hits)) if same[0].has_rule else NO_RULE,
            _pair(same, lambda one: str(one.first.hits)),
            _pair(same, lambda one: f"{one.placed.hits}/{one.placed.of}" if one.placed.of else "-"),
            _pair(same, lambda one: _number(middle_of([one], lambda score: score.delay))),
            _pair(same, lambda one: _number(middle_of([one], lambda score: score.findings))),
            _pair(same, lambda one: _number(middle_of([one], lambda score: score.unrelated))),
            _named(same[0]),
        ]
        rows.append(cells)
    return head, rows


def healthy(results: Results) -> tuple[list[str], Rows]:
    """One line per kind of healthy run."""
    head = ["healthy", "what it is", "runs", "runs with a finding", *(f"rules that fired ({name})" for name in results)]
    return head, [
        [
            same[0].kind.name,
            same[0].kind.about,
            str(same[0].runs),
            _pair(same, lambda one: str(one.alarmed.hits)),
            *(_named(one) for one in same),
        ]
        for same in zip(*results.values(), strict=True)
        if same[0].kind.fault is None
    ]


def show(results: Results, console: Console) -> None:
    """Print everything, the summary last."""
    for title, (head, rows) in (
        ("faults: recommended · sagemaker", faults(results)),
        ("healthy runs: recommended · sagemaker", healthy(results)),
        ("summary", summary(results)),
    ):
        table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
        for number, column in enumerate(head):
            table.add_column(column, overflow="fold", no_wrap=number == 0 and title != "summary")
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)


def markdown(results: Results, command: str) -> str:
    """The part of the page between the marks."""
    parts = [INTRODUCTION.format(command=f"`{command}`"), "", *table_lines(*summary(results))]
    parts += ["", "### Faults", "", *table_lines(*faults(results))]
    parts += ["", "### Healthy runs", "", *table_lines(*healthy(results))]
    return "\n".join(parts)


def _pair(same: Sequence[KindResult], what: Callable[[KindResult], str]) -> str:
    return " · ".join(what(one) for one in same)


def _named(result: KindResult) -> str:
    """The rules that fired without a reason, and in how many runs."""
    return ", ".join(f"{rule} {count}" for rule, count in result.rules.most_common())


def _bounded(of: Share) -> str:
    return f"{of}, below {percent(of.bound)}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
