"""What a job has to do with the processes that its rules from files run in: how they work, and their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from evaluator.config.job_config import JobConfig
from evaluator.evaluation import Evaluation
from evaluator.isolation.isolated_run import IsolatedRun, Isolation
from evaluator.isolation.process import ProcessLimits
from evaluator.sources.base import Source


def isolation_of(config: JobConfig, source: Source, interrupted: Callable[[], bool]) -> Isolation:
    """What all these rules of a job have in common; `interrupted` says that nobody waits for an answer any more."""
    settings = config.settings
    return Isolation(
        source, config.trial, settings.follow, settings.memory_budget,
        ProcessLimits(settings.user_import_timeout, settings.user_step_timeout),
        settings.user_memory, settings.user_error_budget, interrupted,
    )  # fmt: skip


def isolated_runs(evaluation: Evaluation | None) -> Iterable[IsolatedRun]:
    """The rules of a job that run so; none before there is anything to evaluate."""
    return [run for run in evaluation.runs if isinstance(run, IsolatedRun)] if evaluation is not None else []
