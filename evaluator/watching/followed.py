"""One of many trials: from the path that matched to what its job came to, whatever goes wrong with it."""

from __future__ import annotations

import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import structlog

from evaluator.clock import Clock
from evaluator.config.job_config import JobConfig
from evaluator.errors import EvaluatorError, InputError
from evaluator.job import Job
from evaluator.outcome import OUR_DEFECT, WRONG_INPUT, exit_code
from evaluator.output_folder import TRACEBACK, OutputFolder
from evaluator.places import Share
from evaluator.status import EndedBecause, JobStatus
from evaluator.storage import open_store
from evaluator.watching.patterns import Match
from evaluator.watching.summary import Row, one_line

State = Literal["no trial yet", "in line", "followed", "ended", "ended before", "failed", "removed"]
OVER: frozenset[State] = frozenset({"ended", "ended before", "failed", "removed"})

NOT_FINAL: frozenset[EndedBecause | None] = frozenset({None, "stop_signal", "failed", "start_timeout"})
"""Ends of a job that are none of the run: it is evaluated again when it is found the next time."""

GONE_AFTER = 2
"""Listings in a row without a path, after which it counts as removed."""

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class Followed:
    """A path that matched, and what is known of it.

    Attributes:
        found_at: by the monotonic clock.
        look_at: when it is looked at again, where it holds no trial yet or its storage failed.
        missing: in how many listings in a row it was not seen.
        anew: whether what a former job left is of another run under the same path.
    """

    match: Match
    output: str
    found_at: float
    look_at: float = 0.0
    state: State = "no trial yet"
    missing: int = 0
    anew: bool = False
    job: Job | None = None
    status: JobStatus | None = None
    problem: str = ""
    code: int | None = None
    told: bool = False
    """Whether its end was told."""

    @property
    def storage_failed(self) -> bool:
        """Whether it ended because its storage or its output did not answer any more, which may be over."""
        return self.state == "failed" and self.status is not None and self.status.job.ended_because == "failed"

    def begin(self, config: JobConfig, clock: Clock, share: Share) -> None:
        """Make the job, unless a former one has followed this run to its end."""
        output = config.settings.output
        if not self.anew:
            former = OutputFolder(open_store(output, clock), clock).former()
            if former is not None and former.trial == config.trial and former.job.ended_because not in NOT_FINAL:
                self.status, self.state = former, "ended before"
                return
        self.job = Job(config, clock, restart=self.anew, share=share)

    def run(self, job: Job) -> None:
        """Run the job to its end, and note what it came to."""
        result = job.run()
        self.status, self.code = result.status, result.exit_code
        because = result.status.job.ended_because
        if because == "failed":
            details = (rule.StatusDetails for rule in result.status.rules if rule.RuleEvaluationStatus == "Error")
            self.problem = next(filter(None, details), "its storage or its output did not answer")
        gone = because == "stop_signal" and self.missing >= GONE_AFTER
        self.state = "failed" if because == "failed" else "removed" if gone else "ended"

    def fail(self, error: Exception, config: JobConfig, clock: Clock) -> None:
        """Note what went wrong; a defect of ours leaves its traceback in the output of the run."""
        self.state = "failed"
        if isinstance(error, InputError):
            self.code, self.problem = WRONG_INPUT, "; ".join(map(str, error.mistakes))
        elif isinstance(error, EvaluatorError):
            self.code, self.problem = WRONG_INPUT, str(error)
        else:
            self.code, self.problem = OUR_DEFECT, f"internal error: {type(error).__name__}; see {TRACEBACK}"
            text = "".join(traceback.format_exception(error))
            log.critical("internal_error", error=type(error).__name__, where=config.settings.output)
            with suppress(EvaluatorError):
                # the log and the exit code say it too
                open_store(config.settings.output, clock).write(TRACEBACK, text.encode("utf-8", "backslashreplace"))
            return
        log.error("trial_failed", reason=self.problem)

    def row(self, config: JobConfig) -> Row:
        """The trial in the table."""
        code = self.code
        if code is None and self.status is not None:
            code = exit_code(self.status, config.fail_on)
        return Row(self.output, self.match.name, self.status, self.problem, code)

    def line(self) -> str:
        """What it came to, in one line."""
        came_to = self.problem or (one_line(self.status) if self.status is not None else "")
        return ": ".join(filter(None, [self.match.name, self.state, came_to]))
