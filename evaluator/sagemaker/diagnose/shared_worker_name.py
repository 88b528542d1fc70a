"""Several ranks save under one worker name, so that each overwrites what the others saved.

Certain where a temporary file of a worker vanished while it was renamed (another process had moved it), or where the
collection files promise more workers than there are names, several of which save. A trial of one worker whose training
has more ranks may be meant so.
Source: user reports 5 and 46 (issues 476, 167 and 263 of smdebug).
"""

from __future__ import annotations

import re

from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result, Sign
from evaluator.sagemaker.diagnose._evidence import Evidence, listed

SIGN = "temporary file of a worker vanished"


def check(evidence: Evidence) -> Result:
    """What the log says of renaming; then the names in the trial against the number of workers."""
    hits, trial = evidence.hits(SIGN), evidence.trial
    if hits.count:
        return Found("a temporary file of a worker was gone when it was to be renamed", hits.shown)
    if trial is None or not trial.steps:
        if evidence.log is not None:
            return NotChecked(
                "the log has no sign of it; whether there is a name for each rank, a trial tells (--trial)"
            )
        return NotChecked(evidence.lacks("needs a trial or a log", "trial", "log"))
    names = len(trial.workers)
    if trial.expected is not None and trial.expected > names:
        return Found(
            f"{trial.expected} workers are to save, and there are steps under {names} name{'s' * (names > 1)} only",
            (f"{trial.path}: {listed(trial.workers)}",),
        )
    if names > 1:
        return Ok(f"{names} workers have names of their own")
    ranks = len(evidence.log.speakers) if evidence.log is not None else 0
    instances = (evidence.job.instances if evidence.job is not None else None) or 0
    more = max(ranks, instances)
    if more > 1:
        seen = f"{ranks} ranks in the log" if ranks >= instances else f"{instances} instances"
        return NotChecked(f"one worker and {seen}: one rank may save for all, or all under one name")
    if more == 1:
        return Ok("one rank, one name")
    return NotChecked("one worker; how many ranks there are, a log or a request tells")


W = {"w": [1.0, 2.0]}
CHECK = Check(
    name="SharedWorkerName",
    place=8,
    inputs=("--training-job", "--trial", "--log"),
    check=check,
    remedy=(
        (
            "Give each process a name of its own: TrialWriter(folder, worker=f'worker_{rank}', "
            "num_workers=world_size); hooks of this project do so by themselves."
        ),
        "Where one rank alone is to save, make the writer or hook on that rank only, with num_workers=1.",
    ),
    signs={SIGN: (Sign(("no such file", ".tmp"), re.compile(r"worker_\d{1,6}[\w.]{0,80}\.tmp").search),)},
    examples=(
        Example("two workers promised, one name", "found", trial={"worker_0": W, "worker_1": {}}),
        Example(
            "a temporary file was gone",
            "found",
            log="[rank1]: FileNotFoundError: [Errno 2] No such file or directory: "
            "'/out/collections/000000000/worker_0_collections.json.tmp'\n",
        ),
        Example("a name for each", "ok", trial={"worker_0": W, "worker_1": W}),
        Example("one rank", "ok", trial={"worker_0": W}, log="rank 0 step 1\n"),
        Example("one worker, two ranks", "not checked", trial={"worker_0": W}, log="rank 0 step 1\nrank 1 step 1\n"),
        Example("one worker, nothing else", "not checked", trial={"worker_0": W}),
        Example("a log alone", "not checked", log="step 1\n"),
    ),
)
