"""Which training instances have an Elastic Fabric Adapter.

Source:
    Amazon EC2 User Guide, "Elastic Fabric Adapter", its list of supported instance types, as far as they are training
    instances of SageMaker (service model of botocore 1.43, TrainingInstanceType).
"""

from __future__ import annotations

import re

EFA = re.compile(
    r"ml\.(p3dn\.24|p4de?\.24|p5(e|en)?\.48|p6-b\d+\.48|p6e-gb\d+\.36|trn1\.32|trn1n\.32|trn2\.48|c5n\.(9|18)"
    r"|g4dn\.(8|12|16)|g5\.(8|12|16|24|48)|g6e?\.(8|12|16|24|48)|(c6i|m6i)\.32|(c7i|m7i|r7i)\.48"
    r"|g7e?\.(8|12|24|48))xlarge"
)
"""Types of training instances that have EFA."""


def has_efa(instance_type: str | None) -> bool:
    """Whether instances of this type have EFA."""
    return instance_type is not None and EFA.fullmatch(instance_type) is not None
