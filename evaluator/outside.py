"""Asks what tells from elsewhere than the saved files that a run is over: a process, its training job, a rule stop."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluator.clock import Clock
from evaluator.config.job_config import JobConfig
from evaluator.sagemaker.rule_stop import RuleStopFile
from evaluator.sagemaker.training_job import TrainingJob, sagemaker_status
from evaluator.status import EndedBecause
from evaluator.storage import open_store
from evaluator.storage.base import Requests


@dataclass(frozen=True, slots=True)
class Outside:
    """What there is to ask; nothing, for a run of which only the files are known.

    Args:
        process: whether the process is still there whose end is the end of the run.
        training_job: SageMaker's training job that the run is.
        rule_stop: the file by which rules are told to stop.
    """

    process: Callable[[], bool] | None = None
    training_job: TrainingJob | None = None
    rule_stop: RuleStopFile | None = None

    def reason(self) -> EndedBecause | None:
        """What is over for good; nothing that is saved after it counts."""
        if self.process is not None and not self.process():
            return "watched_process_ended"
        if self.rule_stop is not None and self.rule_stop.passed():
            return "rule_stop_signal"
        return None

    def gone(self, clock: Clock, grace: float) -> EndedBecause | None:
        """Why nothing will be saved any more, asked while nothing has been; what was saved last has time to come."""
        over_at = self.training_job_over_at()
        if over_at is not None and clock.monotonic() - over_at >= grace:
            return "training_job_status"
        return self.reason()

    def training_job_over_at(self) -> float | None:
        """When SageMaker first said that the training job is over, by the monotonic clock; None while it does not."""
        return None if self.training_job is None else self.training_job.over_at()

    def notes(self) -> list[str]:
        """What a reader of the status has to know."""
        return [] if self.training_job is None else self.training_job.notes()

    def requests(self) -> Sequence[Requests]:
        """How often storage was asked for this."""
        return [] if self.rule_stop is None else [self.rule_stop.store.requests]


def look_outside(config: JobConfig, clock: Clock) -> Outside:
    """All that this job was told to watch.

    Raises:
        InputError: a training job is to be watched, and the packages for that are not installed.
    """
    pid, name, stop = config.until_pid, config.settings.training_job_name, config.rule_stop
    return Outside(
        None if pid is None else lambda: is_running(pid),
        None if name is None else TrainingJob(name, clock, sagemaker_status(config.region)),
        None if stop is None else RuleStopFile(open_store(config.trial, clock), stop, clock),
    )


def is_running(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # somebody else's process is a process all the same
        return True
    return True
