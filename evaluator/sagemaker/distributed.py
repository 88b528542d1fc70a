"""What SageMaker Debugger can do in distributed training, by framework and strategy.

Source:
    Amazon SageMaker Developer Guide, "Distributed training supported by Debugger", and "Troubleshooting distributed
    training", the part on Debugger together with checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from evaluator.errors import Mistake, did_you_mean

KNOWN_ERROR = "SMDebug Does Not Currently Support Distributed Training Jobs With Checkpointing Enabled"
"""What a job says that has all three: distributed training, Debugger and checkpoints of SageMaker."""

WORKAROUND = (
    "write checkpoints in the training script, and leave out SageMaker's (CheckpointConfig; checkpoint_s3_uri and "
    "checkpoint_local_path of an estimator)"
)

FRAMEWORKS: Mapping[str, str] = {
    "mxnet": "Apache MXNet",
    "tensorflow-1": "TensorFlow 1.x",
    "tensorflow-2": "TensorFlow 2.x",
    "keras": "TensorFlow 2.x with Keras",
    "pytorch": "PyTorch",
}
STRATEGIES: Mapping[str, str] = {
    "horovod": "Horovod",
    "data-parallel": "SageMaker distributed data parallel",
    "model-parallel": "SageMaker distributed model parallel",
    "parameter-server": "parameter server",
}
ALIASES: Mapping[str, str] = {
    "torch": "pytorch",
    "tf": "tensorflow-2",
    "tensorflow": "tensorflow-2",
    "tf1": "tensorflow-1",
    "tf2": "tensorflow-2",
    "tf-keras": "keras",
    "mpi": "horovod",
    "smddp": "data-parallel",
    "dataparallel": "data-parallel",
    "smdmp": "model-parallel",
    "smp": "model-parallel",
    "modelparallel": "model-parallel",
    "ps": "parameter-server",
}
"""Other words for the same."""

NOT_THE_FRAMEWORK = "Debugger profiles no framework operations there"
NO_TF2_PROFILING = "Debugger does no framework profiling for TensorFlow 2.x"
NO_KERAS = "SageMaker distributed data parallel does not support implementations with Keras in TensorFlow 2.x"
NO_MODEL_PARALLEL = "Debugger does not support SageMaker's distributed model parallel training"
NO_PARAMETER_SERVER = "Debugger does not support distributed training with parameter servers"
NO_OPERATIONS = (
    "operations of the distributed training itself (AllReduce of SageMaker's data parallel library, those of Horovod) "
    "are never profiled"
)


@dataclass(frozen=True)
class Support:
    """What works in one combination.

    Args:
        framework: a key of FRAMEWORKS; None for any.
        strategy: a key of STRATEGIES.
        bottlenecks: the monitoring of system bottlenecks.
        profiling: the profiling of framework operations.
        tensors: the saving of output tensors, which rules are evaluated on.
        why: the reasons for what does not work.
    """

    framework: str | None
    strategy: str
    bottlenecks: bool
    profiling: bool
    tensors: bool
    why: tuple[str, ...] = ()


MATRIX = (
    Support("mxnet", "horovod", True, False, True, (NOT_THE_FRAMEWORK,)),
    Support("tensorflow-1", "horovod", True, False, True, (NOT_THE_FRAMEWORK,)),
    Support("tensorflow-2", "horovod", True, False, True, (NOT_THE_FRAMEWORK,)),
    Support("keras", "horovod", True, True, True),
    Support("pytorch", "horovod", True, True, True),
    Support("tensorflow-2", "data-parallel", True, False, True, (NO_TF2_PROFILING,)),
    Support("keras", "data-parallel", True, False, True, (NO_KERAS,)),
    Support("pytorch", "data-parallel", True, True, True),
    Support(None, "model-parallel", False, False, False, (NO_MODEL_PARALLEL,)),
    Support(None, "parameter-server", False, False, False, (NO_PARAMETER_SERVER,)),
)


def canonical(word: str, known: Iterable[str], where: str) -> str | Mistake:
    """The word of the matrix that is meant, or the mistake that there is none."""
    names = list(known)
    lowered = "-".join(word.strip().lower().replace("_", "-").split())
    meant = ALIASES.get(lowered, lowered)
    titles = {title.lower().replace(" ", "-"): name for name, title in {**FRAMEWORKS, **STRATEGIES}.items()}
    meant = titles.get(meant, meant)
    if meant in names:
        return meant
    return Mistake(where, f"{word!r} is not in the support matrix", did_you_mean(lowered, names))


def support_of(
    framework: str | None = None, strategy: str | None = None, *, checkpoints: bool = False
) -> list[Support]:
    """The rows of the matrix for a framework and a strategy; those left out stand for any of them.

    Args:
        framework: a key of FRAMEWORKS.
        strategy: a key of STRATEGIES.
        checkpoints: whether SageMaker's checkpoints are on too.
    """
    rows = [
        row
        for row in MATRIX
        if (framework is None or row.framework in (framework, None)) and (strategy is None or row.strategy == strategy)
    ]
    return [_with_checkpoints(row) for row in rows] if checkpoints else rows


def _with_checkpoints(row: Support) -> Support:
    why = f"with SageMaker's checkpoints Debugger is not available ({KNOWN_ERROR!r}): {WORKAROUND}"
    # where nothing worked before, checkpoints are not the reason
    if not row.tensors:
        return row
    return replace(row, bottlenecks=False, profiling=False, tensors=False, why=(why,))
