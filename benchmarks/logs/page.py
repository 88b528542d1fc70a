"""The results as tables: on a terminal, and in Markdown between two marks of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks import marked_page
from benchmarks.incidents import percent
from benchmarks.logs.score import FITTING, JudgedLog, Score, alarmed, false_alarms, misses, recall, unclear
from benchmarks.marked_page import table_lines
from evaluator.logs import printable

Results = Mapping[str, Sequence[JudgedLog]]
"""Parameter set -> the logs, judged with it."""
Rows = list[list[str]]

RECOMMENDED = "recommended"
NARROW = frozenset({"run", "repository", "rule", "step", "measured", "label", "begins at", "found at"})
"""Columns that stay on one line."""
put = partial(marked_page.put, "logs")
"""Writes this benchmark's part of a page."""
INTRODUCTION = """## Logs of public training runs

Losses, metrics, gradient norms and learning rates of {runs} runs of {repositories} repositories, labelled from the
numbers alone.
`make logs` makes this table; the logs are not part of the project.
A healthy run with any finding is a false alarm.
A problem counts as found when a rule that fits it has a finding anywhere in the run.
Shares by repository are means over repositories, because the runs of one are alike."""


def summary(results: Results) -> tuple[list[str], Rows]:
    """One line for the false alarms, one for each problem, one for all problems."""
    head = ["", "runs", *(f"{one}: {what}" for one in results for what in ("by run", "by repository"))]
    logs = next(iter(results.values()))
    lines = [("healthy, with a finding", [false_alarms(judged) for judged in results.values()], True)]
    lines += [(f"{one}, found", [recall(judged, one) for judged in results.values()], False) for one in FITTING]
    lines.append(("all problems, found", [recall(judged, *FITTING) for judged in results.values()], False))
    rows = [[title, str(scores[0].runs.of), *_cells(scores, bounded)] for title, scores, bounded in lines]
    count = sum(log.label.label == "unclear" for log in logs)
    found = [f"{len(unclear(judged))} of {count} with a finding" for judged in results.values()]
    rows.append(["unclear, not scored", str(count), *(cell for one in found for cell in (one, ""))])
    return head, rows


def details(logs: Sequence[JudgedLog]) -> list[tuple[str, list[str], Rows]]:
    """Title, head and rows of what stands below the summary of one parameter set."""
    head = ["run", "repository", "rule", "tensor", "step", "measured"]
    alarms = [row for log in alarmed(logs) for row in _findings(log)]
    missed = [
        [log.label.run, log.label.repository, log.label.label, _others(log), log.label.why] for log in misses(logs)
    ]
    doubtful = [[log.label.run, log.label.repository, _others(log), log.label.why] for log in unclear(logs)]
    return [
        ("false alarms", head, alarms),
        ("problems that no fitting rule found", ["run", "repository", "label", "found instead", "why"], missed),
        ("unclear runs with a finding", ["run", "repository", "found", "why"], doubtful),
    ]


def found(logs: Sequence[JudgedLog]) -> tuple[list[str], Rows]:
    """Every problem that was found, with where it begins by its label and where the first fitting finding is."""
    head = ["run", "label", "begins at", "found at", "rule", "tensor", "measured"]
    rows = []
    for log in logs:
        first = min(log.fitting, key=lambda one: one.step, default=None)
        if first is not None:
            onset = "" if log.label.onset is None else str(log.label.onset)
            cells = [str(first.step), first.rule, first.tensor or "", first.measured]
            rows.append([log.label.run, log.label.label, onset, *cells])
    return head, rows


def by_rule(logs: Sequence[JudgedLog]) -> tuple[list[str], Rows]:
    """Which rules make the false alarms and find the problems."""
    rows = []
    for rule in sorted({one for log in logs for one in log.evaluated}):
        alarms = [log for log in alarmed(logs) if any(one.rule == rule for one in log.found)]
        hits = [log for log in logs if any(one.rule == rule for one in log.fitting)]
        rows.append([rule, str(sum(rule in log.evaluated for log in logs)), str(len(alarms)), str(len(hits))])
    return ["rule", "logs it judged", "healthy ones with its finding", "fitting problems it found"], rows


def show(results: Results, console: Console) -> None:
    """Print everything; beside the recommended set, of another only which rules fire: it does on most logs."""
    _print(console, "logs of public training runs", *summary(results))
    for name, logs in results.items():
        _print(console, f"{name}: by rule", *by_rule(logs))
        if name != RECOMMENDED and len(results) > 1:
            continue
        for title, head, rows in details(logs):
            if rows:
                _print(console, f"{name}: {title}", head, rows)
        _print(console, f"{name}: problems found", *found(logs))


def markdown(results: Results) -> str:
    """The part of the page between the marks."""
    logs = next(iter(results.values()))
    repositories = len({log.label.repository for log in logs})
    parts = [INTRODUCTION.format(runs=len(logs), repositories=repositories), "", *table_lines(*summary(results))]
    for name, judged in results.items():
        parts += ["", f"### Logs: {name}", "", *table_lines(*by_rule(judged))]
        for title, head, rows in details(judged) if name == RECOMMENDED else []:
            parts += ["", f"{title[0].upper()}{title[1:]}:{'' if rows else ' none.'}"]
            parts += ["", *table_lines(head, rows)] if rows else []
    return "\n".join(parts)


def _cells(scores: Sequence[Score], bounded: bool) -> list[str]:
    cells = []
    for score in scores:
        bound = f", below {percent(score.runs.bound)}" if bounded else ""
        cells += [f"{score.runs}{bound}", percent(score.repositories)]
    return cells


def _findings(log: JudgedLog) -> Rows:
    return [
        [log.label.run, log.label.repository, one.rule, one.tensor or "", str(one.step), one.measured]
        for one in log.found
    ]


def _others(log: JudgedLog) -> str:
    return ", ".join(f"{one.rule} at {one.step}" for one in log.found)


def _print(console: Console, title: str, head: Sequence[str], rows: Rows) -> None:
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
    for column in head:
        table.add_column(column, overflow="fold", no_wrap=column in NARROW)
    for row in rows:
        # names come from logs: never markup
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print(table)
