"""Has the reports made that rules of a job declare: at the end, and now and then before."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping

from evaluator.clock import Clock
from evaluator.evaluation import Evaluation
from evaluator.isolation.isolated_run import IsolatedRun
from evaluator.rule_state import RuleState
from evaluator.sinks.base import key_in
from evaluator.window import NotYet

Write = Callable[[str, str, str], None]
"""(folder, file name, page)."""


def make_reports(
    evaluation: Evaluation, clock: Clock, folders: Mapping[str, str], write: Write, *, final: bool
) -> None:
    """Make the reports that are due; one that raises ends its rule, one that cannot be made leaves it unevaluated."""
    progress = evaluation.progress.view()
    for run in evaluation.runs:
        if isinstance(run, IsolatedRun):
            if run.page is not None:
                _write(run, *run.page, folders, write)
            continue
        report = run.configuration.rule.report
        if report is None or run.failure is not None or not run.counts.evaluated:
            continue
        now = clock.monotonic()
        fresh = run.report_at is not None and now - run.report_at < report.every_seconds
        if fresh and not final:
            continue
        run.report_at = now
        try:
            page = report.render(*run.arguments(progress), run.configuration.parameters)
        except Exception:  # noqa: BLE001 - a rule may raise anything; it must end that rule only
            run.failure = traceback.format_exc()
            continue
        if isinstance(page, NotYet):
            run.not_reported(page.reason)
            continue
        _write(run, report.file_name, page, folders, write)


def _write(run: RuleState, file_name: str, page: str, folders: Mapping[str, str], write: Write) -> None:
    folder = folders.get(run.configuration.name, run.configuration.name)
    write(folder, file_name, page)
    run.report_file = key_in(folder, file_name)
