"""A rank ran out of memory, and the others then wait for it or end with other errors.

Memory of the device, and of the host (a process that was killed with signal 9).
Source: messages of PyTorch, TensorFlow and torchrun; user report 52 (ranks that go on waiting).
"""

from __future__ import annotations

import re

from evaluator.formats.key_names import natural_key
from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result, Sign
from evaluator.sagemaker.diagnose._evidence import Evidence, listed

DEVICE, HOST = "out of memory on a device", "process killed"


def check(evidence: Evidence) -> Result:
    """The errors in a log or in the reason of a failure, and the ranks that have them."""
    failure = (evidence.job.failure if evidence.job is not None else None) or ""
    for sign, kind in ((DEVICE, "out of memory"), (HOST, "killed, as by the system when a host's memory is full")):
        hits = evidence.hits(sign)
        if hits.count:
            return _found(evidence, sign, kind)
        if any(one.shows(failure, failure.lower()) for one in SIGNS[sign]):
            return Found(f"the job failed: {kind}", (failure,))
    if evidence.log is None:
        return NotChecked(evidence.lacks("needs a log", "log"))
    return Ok("no rank ran out of memory, by the log")


def _found(evidence: Evidence, sign: str, kind: str) -> Result:
    hits = evidence.hits(sign)
    speakers = evidence.log.speakers if evidence.log is not None else {}
    ranks = sorted(hits.speakers, key=natural_key)
    if not ranks:
        return Found(f"a process is {kind}" if sign == DEVICE else f"a process was {kind}", hits.shown)
    word = "is" if sign == DEVICE else "was"
    others = len(speakers) - len(ranks)
    alone = others > 0
    what = f"{listed(ranks)} {word} {kind}"
    if alone:
        what += f", {others} other{'s are' if others > 1 else ' is'} not"
    remedy = "What that rank holds beyond the others: losses or outputs that are gathered there, evaluation, logging."
    return Found(what, hits.shown, (remedy,) if alone and sign == DEVICE else ())


SIGNS = {
    DEVICE: (
        Sign(("cuda out of memory",)),
        Sign(("cuda error: out of memory",)),
        Sign(("outofmemoryerror",)),
        Sign(("cudnn_status_alloc_failed",)),
        Sign(("cublas_status_alloc_failed",)),
        Sign(("resource_exhausted", "oom when allocating")),
        Sign(("resourceexhaustederror", "oom when allocating")),
    ),
    HOST: (
        Sign(("exitcode", "-9"), re.compile(r"exitcode\s{0,4}:?\s{0,4}-9\b").search),
        Sign(("out of memory: killed process",)),
        Sign(("dataloader worker", "is killed by signal: killed")),
        Sign(("died with <signals.sigkill",)),
        Sign(("signal 9 (sigkill)",)),
    ),
}
CHECK = Check(
    name="OutOfMemory",
    place=12,
    inputs=("--training-job", "--log"),
    check=check,
    remedy=(
        "Make batches smaller or sequences shorter, or accumulate gradients; checkpoint activations.",
        "On the host: fewer workers of the data loader, less prefetching, no whole data set in each process.",
    ),
    signs=SIGNS,
    examples=(
        Example(
            "one rank of two",
            "found",
            log="[rank0]: step 5\n[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
        ),
        Example("killed", "found", log="exitcode  : -9 (pid: 123)\n"),
        Example("memory is mentioned", "ok", log="rank 0: memory 31 GiB of 40 GiB, to avoid out of memory\n"),
        Example("no log", "not checked", checkpoints={"keys.json": ["fc.weight"]}),
    ),
)
