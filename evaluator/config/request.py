"""A rule as somebody asked for it, before anything about it was checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Shape = Literal["sagemaker", "ours", "command line", "candidate"]
"""Where a rule was written: in SageMaker's own shape, in ours, as `--rule`, or nowhere (every rule is a candidate)."""


@dataclass(frozen=True)
class RuleRequest:
    """One rule configuration as it was written.

    Args:
        use: the name of the rule, in any case.
        parameters: of the rule and of the loop; strings as they are on the wire, or JSON values.
        shape: decides which defaults apply and whether an unknown parameter is a mistake.
        where: how messages name it.
        name: of the configuration, where one was given.
    """

    use: str
    parameters: Mapping[str, object]
    shape: Shape
    where: str
    name: str | None = None
