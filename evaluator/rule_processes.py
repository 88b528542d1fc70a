"""The rules of a job that have a process of their own."""

from __future__ import annotations

from collections.abc import Iterable

from evaluator.evaluation import Evaluation
from evaluator.isolation.isolated_run import IsolatedRun


def isolated_runs(evaluation: Evaluation | None) -> Iterable[IsolatedRun]:
    """The rules of a job that run so; none before there is anything to evaluate."""
    return [run for run in evaluation.runs if isinstance(run, IsolatedRun)] if evaluation is not None else []
