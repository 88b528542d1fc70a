"""Steps take longer on more workers, and where the evidence holds, because the file system gives no more.

Throughput of an FSx for Lustre file system is compared with what it can do without bursts: it is at its limit where at
least half of the periods, three or more, come to 90 % of it. Step times of the trial are compared with those of other
trials of the same training (`--other-trial`): a step that takes over 1.25 times as long on more workers has lost a
fifth of its efficiency. Both limits are our choice. The file system is named as the cause only where it is at its
limit.
Source: Amazon SageMaker Developer Guide, "Troubleshooting distributed training", the part on FSx; Amazon FSx for Lustre
User Guide, "Performance".
"""

from __future__ import annotations

from itertools import pairwise

from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result
from evaluator.sagemaker.diagnose._evidence import Evidence
from evaluator.sagemaker.diagnose._file_systems import FileSystem, Throughput
from evaluator.sagemaker.diagnose._trial import TrialFacts

FULL = 0.9
"""Share of the limit from which on a period counts as full."""
LASTING = 0.5
LEAST_PERIODS = 3
SLOWER = 1.25


def check(evidence: Evidence) -> Result:
    """Step times, and the file system's part in them."""
    slower, steps_say = _step_times(evidence)
    full, system_says = _file_systems(evidence)
    if full:
        return Found(f"the file system is at its limit{' and steps take longer' if slower else ''}", (*full, *slower))
    if slower:
        told = "; ".join(system_says) if system_says else "whether the file system is the cause, is not known"
        return Found("steps take longer on more workers", (*slower, told))
    if steps_say or system_says:
        return Ok("; ".join((*steps_say, *system_says)))
    return NotChecked(evidence.lacks(_needed(evidence), "file_systems", "metrics", "trial"))


def _step_times(evidence: Evidence) -> tuple[list[str], list[str]]:
    """Where steps take longer than with fewer workers; or what was seen instead."""
    runs = [one for one in (evidence.trial, *evidence.other_trials) if one is not None and one.seconds is not None]
    runs.sort(key=_size)
    slower: list[str] = []
    alike: list[str] = []
    for fewer, more in pairwise(runs):
        if _size(fewer) == _size(more) or fewer.seconds is None or more.seconds is None:
            continue
        ratio = more.seconds / fewer.seconds
        line = (
            f"{more.seconds:.3g} s per step on {_size(more)} workers ({more.path}), {fewer.seconds:.3g} s on "
            f"{_size(fewer)} ({fewer.path}): {ratio:.2f} times"
        )
        (slower if ratio > SLOWER else alike).append(line)
    return slower, alike


def _size(trial: TrialFacts) -> int:
    return max(trial.expected or 0, len(trial.workers))


def _file_systems(evidence: Evidence) -> tuple[list[str], list[str]]:
    """File systems at their limit; or how far the others are from it."""
    full: list[str] = []
    free: list[str] = []
    for system, done in _measured(evidence):
        if system.limit is None or len(done.by_period) < LEAST_PERIODS:
            continue
        most = max(done.by_period)
        busy = sum(one >= FULL * system.limit for one in done.by_period)
        line = (
            f"{system.id} ({system.kind}): at most {most / 1e6:.4g} MB/s of {system.limit / 1e6:.4g}, at least "
            f"{FULL:.0%} of it in {busy} of {len(done.by_period)} periods of {done.period:.0f} s"
        )
        (full if busy >= max(LEAST_PERIODS, LASTING * len(done.by_period)) else free).append(line)
    return full, free


def _measured(evidence: Evidence) -> list[tuple[FileSystem, Throughput]]:
    systems = list(evidence.file_systems or ())
    named = set(evidence.job.file_systems) if evidence.job is not None else set()
    systems = [one for one in systems if one.id in named] or systems
    alone = evidence.throughput.get("") if len(systems) == 1 else None
    found = ((one, evidence.throughput.get(one.id) or alone) for one in systems)
    return [(one, done) for one, done in found if done is not None]


def _needed(evidence: Evidence) -> str:
    measured = _measured(evidence)
    if not measured:
        return (
            "needs a file system with its metrics (--file-systems and --metrics, or a training job that has one), or "
            "trials on different numbers of workers (--trial and --other-trial)"
        )
    if any(system.limit is None for system, _ in measured):
        return f"what {measured[0][0].id} ({measured[0][0].kind}) can do, its description does not tell"
    return f"the metrics have fewer than {LEAST_PERIODS} periods"


_SYSTEM = {
    "FileSystemId": "fs-1",
    "FileSystemType": "LUSTRE",
    "StorageCapacity": 1200,
    "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
}
SYSTEMS: dict[str, object] = {"FileSystems": [_SYSTEM]}


def _metrics(*per_second: float) -> dict[str, object]:
    times = [1_700_000_000 + 60 * at for at in range(len(per_second))]
    values = [60 * one for one in per_second]
    return {"MetricDataResults": [{"Label": "DataReadBytes", "Timestamps": times, "Values": values}]}


WALK = {"w": [1.0, 2.0, 3.0, 4.0]}
FOUR = {f"worker_{rank}": WALK for rank in range(4)}
SLOW = (0.0, 2.0, 4.0, 6.0)
CHECK = Check(
    name="ScalingLoss",
    place=6,
    inputs=("--training-job", "--file-systems with --metrics", "--trial with --other-trial"),
    check=check,
    remedy=(
        (
            "Where the file system is at its limit: take a larger one, or one with more throughput per unit of storage "
            "(PerUnitStorageThroughput), and see whether the rest of the loss goes."
        ),
        (
            "Otherwise look at what grows with the workers: all-reduce over the network (see EfaSecurityGroup), "
            "batches per worker that got smaller, data that each worker reads anew."
        ),
    ),
    examples=(
        Example("at the limit", "found", file_systems=SYSTEMS, metrics=_metrics(145e6, 146e6, 146e6, 10e6)),
        Example(
            "twice as long on four workers, no metrics", "found", trial=FOUR, seconds=SLOW, smaller={"worker_0": WALK}
        ),
        Example(
            "twice as long, and the file system is idle",
            "found",
            trial=FOUR,
            seconds=SLOW,
            smaller={"worker_0": WALK},
            file_systems=SYSTEMS,
            metrics=_metrics(1e6, 1e6, 2e6),
        ),
        Example("far from the limit", "ok", file_systems=SYSTEMS, metrics=_metrics(20e6, 30e6, 25e6)),
        Example("at the limit for a moment", "ok", file_systems=SYSTEMS, metrics=_metrics(1e6, 146e6, 1e6, 1e6)),
        Example("in three periods of eight", "ok", file_systems=SYSTEMS, metrics=_metrics(*[146e6] * 3, *[1e6] * 5)),
        Example("the same step time", "ok", trial=FOUR, smaller={"worker_0": WALK}),
        Example("two periods", "not checked", file_systems=SYSTEMS, metrics=_metrics(146e6, 146e6)),
        Example("one trial alone", "not checked", trial=FOUR),
        Example("no metrics", "not checked", file_systems=SYSTEMS),
    ),
)
