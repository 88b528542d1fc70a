"""Action: what is done once for a finding; one module per kind, each with its `ACTION`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

import evaluator.actions
from evaluator.clock import Clock
from evaluator.finding import Finding, JsonObject, OutputModel, Text
from evaluator.rule import SEVERITIES, Severity

LONGEST_SECRET = 10_000
"""Bytes of a file that holds a secret."""


class ActionParameters(BaseModel):
    """What an action is told where it is configured; secrets are named here, never held."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


P = TypeVar("P", bound=ActionParameters)


class NotDone(Exception):
    """An action came to nothing; the message says why and what would be right, and holds no secret."""


class ActionResult(OutputModel):
    """What came of one action for one finding."""

    finding: Text = Field(description="The id of the finding.")
    action: Text = Field(description="The kind of action, numbered where there are several of one kind.")
    key: Text = Field(description="Hash of the kind and its parameters; with the finding's id it names one doing.")
    result: Literal["pending", "done", "failed"] = Field(description="What became of it.")
    reason: Text | None = Field(default=None, description="Why it failed; null where it did not.")
    details: JsonObject = Field(default_factory=dict, description="What else there is to say, by kind.")
    at: str = Field(default="", description="When that became known, RFC 3339 in UTC.")


@dataclass(frozen=True)
class Secret:
    """A text that is shown nowhere, and where it comes from."""

    where: str
    _text: str | None = field(default=None, repr=False)
    _file: Path | None = None

    def read(self) -> str:
        """The text; that of a file is read each time, so that it can be replaced while a job runs.

        Raises:
            NotDone: the file cannot be read, or holds nothing.
        """
        if self._file is None:
            return self._text or ""
        try:
            with self._file.open("rb") as file:
                text = file.read(LONGEST_SECRET).decode("utf-8").strip()
        except OSError as error:
            raise NotDone(f"{self.where} cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError:
            raise NotDone(f"{self.where} holds no text") from None
        if not text:
            raise NotDone(f"{self.where} is empty")
        return text

    @classmethod
    def of_variable(cls, variable: str, text: str) -> Secret:
        """The one in a variable of the environment."""
        return cls(f"environment variable {variable}", text.strip())

    @classmethod
    def of_file(cls, path: str) -> Secret:
        """The one in a file."""
        return cls(f"file {path!r}", None, Path(path))


@dataclass(frozen=True)
class Surroundings:
    """What an action may know of its job.

    Args:
        trial: where the tensors are, as it was given.
        training_job: the SageMaker training job that is followed, where one was named.
        region: where AWS's services are, as far as boto3 does not know it by itself.
    """

    trial: str
    training_job: str | None = None
    region: str | None = None


@dataclass(frozen=True)
class Call(Generic[P]):
    """One finding that an action is done for; the clock is for pauses."""

    parameters: P
    finding: Finding
    around: Surroundings
    clock: Clock
    secrets: Mapping[str, Secret] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind(Generic[P]):
    """One kind of action.

    Args:
        name: as configurations give it in `use`.
        parameters: their model.
        act: does it, within limits of time of its own, and gives details for the status; raises NotDone. It is called
            in a thread, more than once for a finding at worst, and may use the finding's id to tell.
        check: (what is wrong, what would be right) for each thing that shows before anything is found.
        secrets: texts that it is given by `<name>_variable` or `<name>_file`.
        concerns: whether there is anything to do for a finding.
    """

    name: str
    parameters: type[P]
    act: Callable[[Call[P]], Mapping[str, object]]
    check: Callable[[P, Surroundings], Sequence[tuple[str, str]]] = lambda _, __: ()
    secrets: tuple[str, ...] = ()
    concerns: Callable[[Finding], bool] = lambda _: True


@dataclass(frozen=True)
class Action:
    """A kind of action as somebody configured it.

    Args:
        name: unique in the job.
        key: the same for the same action in every run.
        rule: the configuration whose findings it is for; None for those of all rules.
        at_least: the least severity that it is for; None for every one.
    """

    name: str
    key: str
    kind: Kind[Any]
    parameters: ActionParameters
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    rule: str | None = None
    at_least: Severity | None = None

    def concerns(self, finding: Finding) -> bool:
        """Whether it is to be done for this finding."""
        if self.rule is not None and self.rule != finding.rule_configuration:
            return False
        if not self.kind.concerns(finding):
            return False
        return self.at_least is None or SEVERITIES.index(finding.severity) <= SEVERITIES.index(self.at_least)

    def do(self, finding: Finding, around: Surroundings, clock: Clock) -> Mapping[str, object]:
        """Do it. Raises NotDone."""
        return self.kind.act(Call(self.parameters, finding, around, clock, self.secrets))


@cache
def kinds() -> Mapping[str, Kind[Any]]:
    """Name -> kind, of every module in this package that has an `ACTION`."""
    names = sorted(module.name for module in pkgutil.iter_modules(evaluator.actions.__path__))
    found = [getattr(importlib.import_module(f"evaluator.actions.{name}"), "ACTION", None) for name in names]
    return {one.name: one for one in found if isinstance(one, Kind)}
