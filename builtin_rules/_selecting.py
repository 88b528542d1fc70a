"""Parameters that several rules share: which tensors they look at, named by collections and patterns."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from evaluator.rule import RuleParameters, Selection


def compiling(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns, when each is a regular expression by itself: commas separate them, so half of one may be left."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"regular expressions, separated by commas; {pattern!r}: {error}") from error
    return patterns


Patterns = Annotated[tuple[str, ...], AfterValidator(compiling)]


class NamedTensors(RuleParameters):
    """The tensors of these collections and those with such a name; all tensors when neither is given.

    Source:
        builtin-rules.md 1.3: a list or one comma-separated string, the union where both are given.
    """

    collection_names: tuple[str, ...] | None = Field(None, description="Looks at the tensors of these collections.")
    tensor_regex: Patterns | None = Field(
        None, description="Looks at the tensors in whose name one of these patterns is found."
    )

    @property
    def selection(self) -> Selection:
        """What was named."""
        return Selection(collections=self.collection_names or (), regexes=self.tensor_regex or ())


class RequiredTensors(NamedTensors):
    """The same for rules that must be told which tensors to look at."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        """Looking at all tensors instead would judge some for which the condition is normal."""
        if self.selection.everything:
            right = "name the tensors to look at, for example collection_names=weights"
            raise ValueError(f"neither 'collection_names' nor 'tensor_regex' is given; {right}")
        return self
