"""The table of verdicts that people read at the end of a job."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaluator.finding import Finding
from evaluator.logs import printable
from evaluator.status import JobStatus, RuleStatus

WIDE = 120
"""Columns of a terminal from which on details stand in the table."""

_STYLE = {"NoIssuesFound": "green", "IssuesFound": "bold red", "Error": "bold yellow", "Stopped": "dim"}


def print_verdicts(status: JobStatus, console: Console, output: str = "") -> None:
    """Print one row per rule, the rules that did not apply, and where the files are.

    Names come from the trial: they are shown as they are, never read as markup or control characters.
    """
    # on a narrow terminal a column of sentences would squeeze the names, so they get lines of their own
    beside = console.width >= WIDE
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("rule", "status", "step", "tensor (worker)", "measured", "limit", *(["detail"] if beside else [])):
        right = heading in ("step", "measured", "limit")
        whole = right or heading == "status"
        table.add_column(heading, justify="right" if right else "left", overflow="fold", no_wrap=whole)
    for rule in status.rules:
        table.add_row(*_row(rule)[: len(table.columns)])
    if status.rules:
        console.print(table)
    for rule in [] if beside else status.rules:
        console.print(_text(f"{rule.RuleConfigurationName}: {_detail(rule)}"), soft_wrap=True)
    for reason, names in _by_reason(status).items():
        console.print(_text(f"not applicable: {', '.join(names)}: {reason}", "dim"), soft_wrap=True)
    for line in _what_was_missing(status):
        console.print(_text(line, "yellow"), soft_wrap=True)
    for note in status.job.notes:
        console.print(_text(f"note: {note}", "yellow"), soft_wrap=True)
    if output:
        console.print(_text(f"files: {output}"), soft_wrap=True)


def _what_was_missing(status: JobStatus) -> list[str]:
    """Workers and files that the verdicts are without."""
    steps, workers = status.job.steps, status.job.workers
    lines = []
    if workers.silent:
        of = f" of {workers.expected} expected" if workers.expected else ""
        lines.append(f"silent workers: {', '.join(workers.silent)} ({workers.seen}{of} wrote)")
    elif workers.expected and workers.seen < workers.expected:
        lines.append(f"silent workers: {workers.seen} of {workers.expected} expected wrote")
    if steps.partial:
        lines.append(f"incomplete: {_counted(steps.partial)} without some worker's file")
    if steps.unreadable:
        lines.append(f"unreadable: something at {_counted(steps.unreadable)}")
    if steps.late_files:
        lines.append(f"late: {steps.late_files} files came after their step was taken")
    return lines


def _by_reason(status: JobStatus) -> dict[str, list[str]]:
    """Why rules did not apply -> which."""
    found: dict[str, list[str]] = {}
    for one in status.not_applicable:
        found.setdefault(one.reason, []).append(one.rule)
    return found


def _row(rule: RuleStatus) -> list[Text]:
    word = rule.RuleEvaluationStatus
    finding = rule.Finding
    return [
        _text(rule.RuleConfigurationName),
        _text(word, _STYLE.get(word, "")),
        _text(str(finding.step) if finding else ""),
        _text(_place(finding) if finding else ""),
        _text(_number(finding.measured) if finding else ""),
        _text(_number(finding.limit) if finding else ""),
        _text(_detail(rule)),
    ]


def _place(finding: Finding) -> str:
    if finding.tensor is None:
        return finding.worker or "the whole run"
    return f"{finding.tensor} ({finding.worker})" if finding.worker else finding.tensor


def _detail(rule: RuleStatus) -> str:
    if rule.RuleEvaluationStatus == "Error" or rule.Finding is None:
        steps = f"judged at {_counted(rule.Evaluation.evaluated)}"
        return rule.StatusDetails or steps
    more = f"{rule.Findings} findings" if rule.Findings > 1 else ""
    return "; ".join(part for part in (rule.Finding.message, more) if part)


def _number(value: float | str | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.4g}"


def _text(text: str, style: str = "") -> Text:
    """Text, not str: rich reads markup in a str."""
    return Text(printable(text), style=style)


def _counted(steps: int) -> str:
    return "1 step" if steps == 1 else f"{steps} steps"
