"""Distributed training that Debugger does not support, and checkpoints beside it that it does not support either."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.sagemaker.check_job._request import Flaw, TrainingRequest
from evaluator.sagemaker.distributed import KNOWN_ERROR, STRATEGIES, WORKAROUND, support_of


def check(request: TrainingRequest) -> Iterator[Flaw]:
    """Strategies without Debugger; and the known error of distributed training with checkpoints."""
    if not request.uses_debugger:
        return
    unsupported = False
    for strategy, where in request.strategies.items():
        rows = support_of(None, strategy)
        if rows and not any(row.tensors for row in rows):
            unsupported = True
            right = "train without it, or leave Debugger's hook and rules out"
            yield Flaw(where, "; ".join(dict.fromkeys(reason for row in rows for reason in row.why)), right)
        elif rows and (framework := _row(request)) and not support_of(framework, strategy):
            what = f"AWS's list of what Debugger supports does not have {STRATEGIES[strategy]} with this framework"
            yield Flaw(where, what, "'rule-evaluator support' shows the list", "warning")
    if request.checkpoints is not None and not unsupported:
        yield from _checkpoints(request, request.checkpoints)


def _checkpoints(request: TrainingRequest, where: str) -> Iterator[Flaw]:
    consequence = f"the job may end with {KNOWN_ERROR!r}"
    if request.estimator and request.checkpoints == "checkpoint_s3_uri":
        consequence += ", or the SDK switches Debugger's hook off (debugger_hook_config=False)"
    if request.strategies:
        names = " and ".join(STRATEGIES.get(one, one) for one in request.strategies)
        what = f"checkpoints are switched on beside {names} and Debugger: {consequence}"
        yield Flaw(where, what, f"{WORKAROUND}; or leave Debugger out")
    elif request.instances is not None and request.instances > 1:
        what = f"checkpoints are switched on beside Debugger on {request.instances} instances: {consequence}"
        yield Flaw(where, what, f"if the training is distributed, {WORKAROUND}; or leave Debugger out", "warning")


def _row(request: TrainingRequest) -> str | None:
    """What the support matrix calls the framework of the request, as far as that is clear."""
    if request.framework != "tensorflow":
        return request.framework if request.framework in ("mxnet", "pytorch") else None
    # Keras or not makes no difference to whether there is a row
    major = (request.version or "").split(".")[0]
    return f"tensorflow-{major}" if major in ("1", "2") else None
