"""The training ended because a file vanished between being listed and being read, while something uploaded it.

SageMaker renames files while it uploads them (`*.sagemaker-uploading`, `*.sagemaker-uploaded`), and other processes
remove theirs; a script that lists its output folder meets such names.
Source: user report 67 (issue 369 of smdebug, issue 1791 of the SageMaker Python SDK).
"""

from __future__ import annotations

from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result, Sign
from evaluator.sagemaker.diagnose._evidence import Evidence

SIGN = "file vanished while it was uploaded"
MARKS = ("sagemaker-uploading", "sagemaker-uploaded")
FOLDERS = ("/opt/ml/checkpoints", "/opt/ml/output/tensors")


def check(evidence: Evidence) -> Result:
    """The error in a log, or in the reason of a failure."""
    hits = evidence.hits(SIGN)
    failure = (evidence.job.failure if evidence.job is not None else None) or ""
    lowered = failure.lower()
    if hits.count:
        return Found("a file vanished while it was uploaded", hits.shown)
    if any(sign.shows(failure, lowered) for sign in SIGNS):
        return Found("the job failed because a file vanished while it was uploaded", (failure,))
    if evidence.log is None:
        return NotChecked(evidence.lacks("needs a log", "log"))
    return Ok("no file vanished, by the log")


SIGNS = tuple(Sign(("no such file", mark)) for mark in (*MARKS, *FOLDERS))
CHECK = Check(
    name="VanishedFiles",
    place=10,
    inputs=("--training-job", "--log"),
    check=check,
    remedy=(
        (
            "Catch FileNotFoundError wherever the script lists, stats or removes files in folders that SageMaker "
            "uploads (/opt/ml/checkpoints, /opt/ml/output), and leave names with `.sagemaker-` in them alone."
        ),
        "Write to another folder and move what is finished.",
    ),
    signs={SIGN: SIGNS},
    examples=(
        Example(
            "a name of the uploader",
            "found",
            log="FileNotFoundError: [Errno 2] No such file or directory: "
            "'/opt/ml/checkpoints/metadata.json.sagemaker-uploading'\n",
        ),
        Example("another file", "ok", log="FileNotFoundError: [Errno 2] No such file or directory: 'train.csv'\n"),
        Example("a name of the uploader, no error", "ok", log="skips model.pt.sagemaker-uploading\n"),
        Example("no log", "not checked", checkpoints={"keys.json": ["fc.weight"]}),
    ),
)
