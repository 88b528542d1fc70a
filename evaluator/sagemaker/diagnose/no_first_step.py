"""The training has started and no step comes.

The time from the start of the training to its first step is compared with a limit (`--start-limit`, 1800 s). The start
is that of the training job, or the first line of a log; the first step is the first one saved, or the first line of a
log that names a step.
Source: Amazon SageMaker Developer Guide, "Troubleshooting distributed training", the part on stalls during
initialisation. The limit is our choice: longer than the time-outs of collectives (600 s with NCCL, 1800 s otherwise).
"""

from __future__ import annotations

from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result
from evaluator.sagemaker.diagnose._evidence import Evidence
from evaluator.sagemaker.diagnose._job import JobFacts
from evaluator.sagemaker.diagnose._log import LogFacts


def check(evidence: Evidence) -> Result:
    """How long the first step took, or has been waited for."""
    job, log, trial = evidence.job, evidence.log, evidence.trial
    started = job.started if job is not None else None
    source = "the training job's start"
    comparable = log is None or log.zoned
    if log is not None and (started is None or (not comparable and trial is None)):
        # times without a zone are compared with each other only
        started, source, comparable, job = log.began, "the log's first line", True, None
    if started is None:
        why = "needs the start of the training: a training job, its description, or a log with times"
        return NotChecked(evidence.lacks(why, "job", "log"))
    # a trial that began before the job is that of another attempt
    firsts = [log.first_step if log and comparable else None, trial.first_step_at if trial else None]
    first = min((one for one in firsts if one is not None and one >= started), default=None)
    limit = evidence.start_limit
    if first is not None:
        seconds = first - started
        if seconds <= limit:
            return Ok(f"the first step came {seconds:.0f} s after {source}")
        return Found(f"the first step came {seconds:.0f} s after {source}, more than {limit:.0f} s")
    if any(one is not None for one in firsts):
        return NotChecked(f"the first step is older than {source}")
    if trial is None and (log is None or not log.moves):
        # a script need not write its steps into the log
        right = f": --trial {job.tensors}" if job is not None and job.tensors else ": --trial"
        why = "no line of the log names a step" if log is not None else "needs what was saved, or a log"
        return NotChecked(evidence.lacks(f"{why}{right}", "trial", "log"))
    until = _until(job, log, evidence.now)
    if until is None:
        return NotChecked("there is no step, and until when there was none is not known")
    if until - started <= limit:
        return NotChecked(f"there is no step yet, {until - started:.0f} s after {source}; the limit is {limit:.0f} s")
    stands = f"; the job is {job.status}" if job is not None and job.status is not None else ""
    return Found(f"there is no step {until - started:.0f} s after {source}, more than {limit:.0f} s{stands}")


def _until(job: JobFacts | None, log: LogFacts | None, now: float) -> float | None:
    """The last moment of which it is known that there was no step."""
    if job is not None and job.ended is not None:
        return job.ended
    if job is not None and job.status is not None:
        return now
    return log.newest if log is not None else None


BEGIN = 1_700_000_000


def _job(status: str, started: int, ended: int | None = None) -> dict[str, object]:
    job: dict[str, object] = {
        "TrainingJobName": "job",
        "ResourceConfig": {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2},
        "TrainingJobStatus": status,
        "TrainingStartTime": BEGIN + started,
    }
    return job if ended is None else {**job, "TrainingEndTime": BEGIN + ended}


NOTHING: dict[str, dict[str, list[float | None]]] = {"worker_0": {"w": [None]}}
CHECK = Check(
    name="NoFirstStep",
    place=4,
    inputs=("--training-job", "--request with a description", "--trial", "--log"),
    check=check,
    remedy=(
        "See EfaSecurityGroup: without a rule for all traffic of its own the group holds the workers apart.",
        "Set NCCL_DEBUG=INFO and look which rank's last line is not that of the others.",
        "Check that every instance gets its data: a channel that one of them cannot read holds up all.",
    ),
    examples=(
        Example(
            "a job has run for an hour",
            "found",
            request=_job("InProgress", -3600),
            trial=NOTHING,
            ended=False,
        ),
        Example(
            "the first step came late",
            "found",
            request=_job("Completed", -3600, 100),
            trial={"worker_0": {"w": [1.0, 1.0]}},
        ),
        Example(
            "a log with an hour before its first step",
            "found",
            log="2026-01-01T10:00:00Z start\n2026-01-01T11:00:00Z step 0\n",
        ),
        Example(
            "a step after ten minutes", "ok", request=_job("InProgress", -600), trial={"worker_0": {"w": [1.0, 1.0]}}
        ),
        Example("a log", "ok", log="2026-01-01T10:00:00Z start\n2026-01-01T10:01:00Z step 0\n"),
        Example("it has only just begun", "not checked", request=_job("InProgress", -60), trial=NOTHING, ended=False),
        Example("no times", "not checked", log="start\nstep 0\n"),
        Example("no word of a step", "not checked", log="2026-01-01T10:00:00Z start\n2026-01-01T12:00:00Z waits\n"),
    ),
)
