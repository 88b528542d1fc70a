"""A collective timed out: one rank or several did not come to it.

The ranks that waited say so; those that did not are where the cause is.
Source: messages of torch.distributed (ProcessGroupNCCL, gloo) and NCCL; user report 52.
"""

from __future__ import annotations

import re

from evaluator.formats.key_names import natural_key
from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result, Sign
from evaluator.sagemaker.diagnose._evidence import Evidence, listed

SIGN = "collective timed out"


def check(evidence: Evidence) -> Result:
    """The time-outs in a log, and the ranks that have none."""
    if evidence.log is None:
        return NotChecked(evidence.lacks("needs a log", "log"))
    hits = evidence.hits(SIGN)
    if not hits.count:
        return Ok("no collective timed out, by the log")
    waited = sorted(hits.speakers, key=natural_key)
    others = sorted(set(evidence.log.speakers) - set(waited), key=natural_key)
    what = "a collective timed out"
    if waited:
        what += f" on {listed(waited)}"
    remedy = (f"Begin with {listed(others)}: the log has no time-out of it.",) if waited and others else ()
    return Found(what, hits.shown, remedy)


CHECK = Check(
    name="CollectiveTimeout",
    place=11,
    inputs=("--training-job", "--log"),
    check=check,
    remedy=(
        (
            "Look at what the ranks without a time-out did last: an error, out of memory, fewer batches (StallAtEnd), "
            "NaN (RankNotFinite)."
        ),
        "If it is the first collective: see EfaSecurityGroup and NoFirstStep.",
        (
            "If one rank does long work alone (evaluation, a checkpoint), let the others wait longer: "
            "init_process_group(timeout=...)."
        ),
        "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 say which collective each rank was in.",
    ),
    signs={
        SIGN: (
            Sign(("watchdog caught collective operation timeout",)),
            Sign(("collective operation timeout",)),
            Sign(("some nccl operations have failed or timed out",)),
            Sign(("nccl", "timed out")),
            Sign(("nccl", "timeout"), re.compile(r"error|exception|exceeded", re.IGNORECASE).search),
            Sign(("timed out waiting for", "collective")),
            Sign(("timed out after", "barrier")),
            Sign(("timed out waiting", "operation to complete")),
        )
    },
    examples=(
        Example(
            "three of four ranks waited",
            "found",
            log="".join(
                f"[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation "
                "timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE) ran for 600029 milliseconds before timing out.\n"
                for rank in (0, 1, 3)
            )
            + "[rank2]: step 41\n",
        ),
        Example("setting a time-out", "ok", log="NCCL timeout is set to 600 s\n"),
        Example("other time-outs", "ok", log="requests.exceptions.Timeout: read timed out\n"),
        Example("no log", "not checked", checkpoints={"keys.json": ["fc.weight"]}),
    ),
)
