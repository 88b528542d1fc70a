"""A rule as somebody asked for it, before anything about it was checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class ActionRequest:
    """One action as it was written.

    Args:
        use: its kind, in any case.
        parameters: as they came; JSON values, or strings.
        where: how messages name it.
        at_least: the least severity that it is for, for one that is for all rules.
    """

    use: str
    parameters: Mapping[str, object]
    where: str
    at_least: object = None


Shape = Literal["sagemaker", "ours", "command line", "candidate"]
"""Where a rule was written: in SageMaker's own shape, in ours, as `--rule`, or nowhere (every rule is a candidate)."""


@dataclass(frozen=True)
class RuleFile:
    """A file with a rule of the user's own.

    Args:
        path: local and absolute; in a request that was not checked yet also a URI.
        name: the class, or the name of the `RULE`, in it; None where the file has only one.
        sha256: lower-case hexadecimal digest that the content must have.
        offered: variables of the container's environment; they count as parameters if the rule takes them, and are
            ignored if not.
    """

    path: str
    name: str | None = None
    sha256: str | None = None
    offered: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RuleRequest:
    """One rule configuration as it was written.

    Args:
        use: the name of the rule, in any case; for a file what its rule is called until it is loaded.
        parameters: of the rule and of the loop; strings as they are on the wire, or JSON values.
        shape: decides which defaults apply and whether an unknown parameter is a mistake.
        where: how messages name it.
        name: of the configuration, where one was given.
        file: instead of a rule known by name.
    """

    use: str
    parameters: Mapping[str, object]
    shape: Shape
    where: str
    name: str | None = None
    file: RuleFile | None = None
