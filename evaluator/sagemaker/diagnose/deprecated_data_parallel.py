"""The script uses smdistributed calls that are deprecated since version 1.4.0 of the data parallel library.

Since then the library is a backend of torch.distributed. The replacement is shown for each call that the log names.
Source: Amazon SageMaker Developer Guide, "Troubleshooting distributed training", the part on deprecation warnings, and
"Use the SMDDP library in your PyTorch training script".
"""

from __future__ import annotations

import re

from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result, Sign
from evaluator.sagemaker.diagnose._evidence import Evidence

SIGN, PREFIX = "deprecated smdistributed", "smdistributed in a line: "
PACKAGE = "smdistributed.dataparallel.torch"
START = (
    "At the top of the script: `import torch.distributed as dist` and "
    "`import smdistributed.dataparallel.torch.torch_smddp`; then `dist.init_process_group(backend='smddp')`."
)
REPLACEMENTS = {
    "init_process_group": "`dist.init_process_group()` becomes `dist.init_process_group(backend='smddp')`",
    "get_local_rank": "`dist.get_local_rank()` becomes `int(os.environ['LOCAL_RANK'])`",
    "get_local_size": "`dist.get_local_size()` becomes `int(os.environ['LOCAL_WORLD_SIZE'])`",
    "DistributedDataParallel": "`from smdistributed.dataparallel.torch.parallel.distributed import "
    "DistributedDataParallel` becomes `from torch.nn.parallel import DistributedDataParallel`",
}
"""Call -> what becomes of it."""


def check(evidence: Evidence) -> Result:
    """The warning, and the calls that lines of the log name."""
    if evidence.log is None:
        return NotChecked(evidence.lacks("needs a log", "log"))
    hits = evidence.hits(SIGN)
    if not hits.count:
        return Ok("the log does not have the warning")
    named = [text for call, text in REPLACEMENTS.items() if evidence.hits(f"{PREFIX}{call}").count]
    return Found("the script uses calls of smdistributed that are deprecated", hits.shown, tuple(named))


def _call(name: str) -> Sign:
    return Sign((name.lower(),), re.compile(rf"\b{name}\b").search)


CHECK = Check(
    name="DeprecatedDataParallel",
    place=7,
    inputs=("--training-job", "--log"),
    check=check,
    remedy=(START, "All other calls are those of torch.distributed, unchanged."),
    signs={
        SIGN: (Sign(("smdistributed.dataparallel", "deprecated")),),
        **{f"{PREFIX}{call}": (_call(call),) for call in REPLACEMENTS},
    },
    examples=(
        Example(
            "the warning",
            "found",
            log=f"train.py:12: UserWarning: {PACKAGE}.dist is deprecated in the SageMaker AI distributed data parallel "
            "library v1.4.0+.\n  local_rank = dist.get_local_rank()\n",
        ),
        Example("another deprecation", "ok", log="FutureWarning: torch.cuda.amp.GradScaler is deprecated\n"),
        Example("the library, without a warning", "ok", log="import smdistributed.dataparallel.torch.torch_smddp\n"),
        Example("no log", "not checked", checkpoints={"keys.json": ["fc.weight"]}),
    ),
)
