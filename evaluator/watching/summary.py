"""What many outputs come to: one row for each, as a table for people and as a document for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaluator.logs import printable
from evaluator.outcome import FOUND, NOT_EVALUATED, NOTHING_FOUND, OUR_DEFECT, WRONG_INPUT, FailOn, exit_code
from evaluator.rule import SEVERITIES
from evaluator.status import JobStatus, RuleStatus

LOST = 900.0
"""Seconds without a new status after which a job counts as lost: three times the longest between two of them."""

State = Literal["running", "ended", "lost", "unreadable"]

WORST_FIRST = (OUR_DEFECT, FOUND, WRONG_INPUT, NOT_EVALUATED, NOTHING_FOUND)
"""Exit codes: a defect says that nothing can be relied on, and a finding is what most wait for."""

_STYLES = {"running": "cyan", "ended": "", "lost": "bold yellow", "unreadable": "bold yellow"}
_WORD_STYLES = {"NoIssuesFound": "green", "IssuesFound": "bold red", "Error": "bold yellow"}


@dataclass(frozen=True)
class Row:
    """One output.

    Args:
        output: where it is.
        name: how the table calls it; unique among the rows.
        status: what it holds; None where that cannot be read.
        problem: why not, or what went wrong besides.
        code: the exit code, where somebody knows it better than the status.
    """

    output: str
    name: str
    status: JobStatus | None = None
    problem: str = ""
    code: int | None = None

    def state(self, now: float) -> State:
        """How its job is, by its last status."""
        if self.status is None:
            return "unreadable"
        if self.status.job.ended_at is not None:
            return "ended"
        return "lost" if now - _seconds(self.status.job.updated_at) >= LOST else "running"

    def exit_code(self, fail_on: FailOn, now: float) -> int:
        """What the exit code of its job is, or would be if it ended now."""
        if self.code is not None:
            return self.code
        if self.status is None:
            return WRONG_INPUT
        code = exit_code(self.status, fail_on)
        return NOT_EVALUATED if code == NOTHING_FOUND and self.state(now) == "lost" else code

    def document(self, now: float) -> dict[str, Any]:
        """The row for programs; `status.json` in the output says more."""
        status = self.status
        found: dict[str, Any] = {"name": self.name, "output": self.output, "state": self.state(now)}
        found["problem"] = self.problem or None
        if status is not None:
            worst = _worst(status)
            found |= {
                "trial": status.trial,
                "labels": dict(status.labels),
                "started_at": status.job.started_at,
                "updated_at": status.job.updated_at,
                "ended_at": status.job.ended_at,
                "ended_because": status.job.ended_because,
                "steps": status.job.steps.complete + status.job.steps.partial,
                "last_step": status.job.steps.last,
                "findings": sum(rule.Findings for rule in status.rules),
                "rules": dict(sorted(_words(status).items())),
                "first_finding": None if worst is None else _finding(worst),
            }
        return found


def worst_code(codes: Iterable[int]) -> int:
    """The code that stands for all of them."""
    there = set(codes)
    return next((code for code in WORST_FIRST if code in there), NOTHING_FOUND)


def rows_document(rows: Sequence[Row], code: int, now: float) -> dict[str, Any]:
    """All rows for programs."""
    return {"schema": 1, "exit_code": code, "outputs": [row.document(now) for row in rows]}


def print_rows(rows: Sequence[Row], console: Console, now: float) -> None:
    """Print one line for each output, and below them what went wrong.

    Names come from the trials: they are shown as they are, never read as markup or control characters.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("output", "job", "steps", "rules", "findings", "first finding"):
        right = heading in ("steps", "findings")
        table.add_column(heading, justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in rows:
        table.add_row(*_cells(row, now))
    console.print(table)
    for row in rows:
        if row.problem:
            console.print(_text(f"{row.name}: {row.problem}", "yellow"), soft_wrap=True)
    states = Counter(row.state(now) for row in rows)
    counted = ", ".join(f"{number} {state}" for state, number in states.items())
    outputs = "1 output" if len(rows) == 1 else f"{len(rows)} outputs"
    console.print(_text(f"{outputs}: {counted}"), soft_wrap=True)


def one_line(status: JobStatus) -> str:
    """What a job came to, in one line."""
    steps = status.job.steps.complete + status.job.steps.partial
    findings = sum(rule.Findings for rule in status.rules)
    parts = [_number(steps, "step"), _number(findings, "finding")]
    worst = _worst(status)
    if worst is not None:
        parts[-1] += f", first {_first(worst)}"
    errors = _words(status)["Error"]
    if errors:
        parts.append(f"{_number(errors, 'rule')} in Error")
    return f"{'; '.join(parts)} ({status.job.ended_because})"


def _cells(row: Row, now: float) -> list[Text]:
    state = row.state(now)
    status = row.status
    if status is None:
        return [_text(row.name), _text(state, _STYLES[state])]
    job = _text(state, _STYLES[state])
    if state == "ended" and status.job.ended_because:
        job.append(f" ({status.job.ended_because})", "dim")
    elif state == "lost":
        job.append(f" since {status.job.updated_at[:19]}", "dim")
    words = _words(status)
    rules = Text(", ").join(_text(f"{count} {word}", _WORD_STYLES.get(word, "")) for word, count in words.items())
    findings = sum(rule.Findings for rule in status.rules)
    worst = _worst(status)
    return [
        _text(row.name),
        job,
        _text(str(status.job.steps.complete + status.job.steps.partial)),
        rules,
        _text(str(findings), "bold red" if findings else ""),
        _text("" if worst is None else f"{worst.Severity}: {_first(worst)}"),
    ]


def _words(status: JobStatus) -> Counter[str]:
    return Counter(rule.RuleEvaluationStatus for rule in status.rules)


def _worst(status: JobStatus) -> RuleStatus | None:
    """The rule with the earliest finding; of those at one step the most severe."""
    met = [rule for rule in status.rules if rule.Finding is not None]
    return min(met, key=lambda rule: (rule.Finding.step, SEVERITIES.index(rule.Severity)), default=None)  # type: ignore[union-attr]


def _first(rule: RuleStatus) -> str:
    return f"{rule.RuleConfigurationName} at step {rule.Finding.step}" if rule.Finding else rule.RuleConfigurationName


def _finding(rule: RuleStatus) -> dict[str, Any]:
    finding = rule.Finding
    return {
        "rule_configuration": rule.RuleConfigurationName,
        "severity": rule.Severity,
        "step": finding and finding.step,
        "message": finding and finding.message,
    }


def _seconds(stamp: str) -> float:
    """A time of a status, as seconds; one that is no time is long ago."""
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _number(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _text(text: str, style: str = "") -> Text:
    """Text, not str: rich reads markup in a str."""
    return Text(printable(text), style=style)
