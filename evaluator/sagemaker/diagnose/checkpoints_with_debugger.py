"""Distributed training, Debugger and SageMaker's checkpoints are switched on together.

Then the job may end with an error, or the SageMaker Python SDK switches Debugger's hook off without a word.
Source: Amazon SageMaker Developer Guide, "Troubleshooting distributed training", the part on Debugger and checkpoints.
"""

from __future__ import annotations

from evaluator.sagemaker.check_job import distributed
from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result, Sign
from evaluator.sagemaker.diagnose._evidence import Evidence
from evaluator.sagemaker.distributed import KNOWN_ERROR, STRATEGIES, WORKAROUND

SIGN = "checkpoints with debugger"


def check(evidence: Evidence) -> Result:
    """The error in a log, in the reason of a failure, or what leads to it in the request."""
    hits, request = evidence.hits(SIGN), evidence.request
    if hits.count:
        return Found("the log has the error of Debugger together with checkpoints", hits.shown)
    failure = (evidence.job.failure if evidence.job else None) or ""
    if KNOWN_ERROR.lower() in failure.lower():
        return Found("the job failed with the error of Debugger together with checkpoints", (failure,))
    if request is None:
        if evidence.log is not None:
            return Ok("the log does not have the error")
        return NotChecked(evidence.lacks("needs a request, a training job, or a log", "job", "log"))
    flaws = [flaw for flaw in distributed.check(request) if KNOWN_ERROR in flaw.what]
    if flaws and request.strategies:
        return Found(
            "distributed training, Debugger and checkpoints are switched on together",
            tuple(f"{flaw.where}: {flaw.what}" for flaw in flaws),
        )
    if flaws:
        why = "checkpoints and Debugger are on; whether the training is distributed, the request does not say"
        return NotChecked(why)
    on = [STRATEGIES.get(one, one) for one in request.strategies]
    on += ["Debugger"] if request.uses_debugger else []
    on += ["checkpoints"] if request.checkpoints is not None else []
    return Ok(f"of the three there {'is' if len(on) == 1 else 'are'} {', '.join(on) or 'none'}")


def _request(*, distributed_too: bool = True, checkpoints: bool = True) -> dict[str, object]:
    switch = {"sagemaker_distributed_dataparallel_enabled": "true"} if distributed_too else {}
    request: dict[str, object] = {
        "TrainingJobName": "job",
        "HyperParameters": switch,
        "ResourceConfig": {"InstanceCount": 2, "InstanceType": "ml.p4d.24xlarge"},
        "DebugHookConfig": {"S3OutputPath": "s3://bucket/out"},
    }
    return {**request, "CheckpointConfig": {"S3Uri": "s3://bucket/ckpt"}} if checkpoints else request


CHECK = Check(
    name="CheckpointsWithDebugger",
    place=1,
    inputs=("--training-job", "--request", "--log"),
    check=check,
    remedy=(f"{WORKAROUND[0].upper()}{WORKAROUND[1:]}.", "Or leave Debugger out (debugger_hook_config=False)."),
    signs={SIGN: (Sign((KNOWN_ERROR.lower(),)),)},
    examples=(
        Example("all three in a request", "found", request=_request()),
        Example("the error in a log", "found", log=f"algo-1 starts\nException: {KNOWN_ERROR}\n"),
        Example("no checkpoints", "ok", request=_request(checkpoints=False)),
        Example("a log without the error", "ok", log="step 1\n"),
        Example("two instances, no word of a strategy", "not checked", request=_request(distributed_too=False)),
        Example("nothing to go by", "not checked", checkpoints={"keys.json": ["fc.weight"]}),
    ),
)
