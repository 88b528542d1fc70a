"""A class written for smdebug as a rule of ours: made once, invoked at each saved step, its condition told.

Source:
    custom-rule-files.md, section 1: parameters reach the constructor as strings, and only those that it names; one
    instance sees all steps in order.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pydantic import ConfigDict, create_model

from evaluator.actions.text import ACTIONS_KEY
from evaluator.needs import Need, Progress
from evaluator.rule import Rule, RuleParameters
from evaluator.user_rules.actions import take_due
from evaluator.user_rules.exceptions import (
    NoMoreData,
    RuleEvaluationConditionMet,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
    TensorUnreadable,
)
from evaluator.user_rules.trial import Trial
from evaluator.window import Decided, Met, NotYet, ProgressView, Verdict

NOT_PARAMETERS = frozenset({"self", "base_trial", "other_trials", "action_str"})
"""Arguments of a constructor that are no parameters of the rule."""

MOST_TEXT = 2000
"""Characters of what an exception says that are told."""

MESSAGE = "the rule's condition was met"

Trials = Callable[[], tuple[Trial, Sequence[Trial]]]
"""Gives the trial to judge, and those to compare with."""


class ClassParameters(RuleParameters):
    """Parameters of a constructor: of any type, because it converts them itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)


class Instance:
    """The object of the class, made when the first step is there: constructors look at what was saved."""

    def __init__(self, one: type, trials: Trials) -> None:
        """Nothing is made yet."""
        self._class = one
        self._trials = trials
        self._made: Any = None
        self._base: Trial | None = None
        self._verdict: Verdict = None

    def forget(self) -> None:
        """All steps come anew, for a fresh object."""
        self._judged_at = -1
        self._made = None

    def judge(self, progress: ProgressView, parameters: RuleParameters) -> Verdict:
        """Invoke it at the newest step; what it raises itself is not caught."""
        step = int(progress.last_step.max())
        try:
            if self._made is None:
                self._made = self._make(parameters)
            take_due()
            self._made.invoke(step)
        except RuleEvaluationConditionMet as error:
            nothing = np.zeros(0)
            details: dict[str, Any] = {"text": str(error)[:MOST_TEXT]}
            if due := take_due():
                # what the file asks for; whether it is done, the job's configuration says
                details[ACTIONS_KEY] = due
            return Met(nothing.astype(np.int64), nothing, message=MESSAGE, details=details)
        except NoMoreData as error:
            return Decided(str(error))
        except TensorUnreadable as error:
            return NotYet(f"tensor {error.tname!r} could not be read")
        except TensorUnavailableForStep as error:
            return NotYet(f"tensor {error.tname!r} was not saved at the step")
        except TensorUnavailable as error:
            return NotYet(f"no tensor {error.tname!r} was saved")
        except (StepUnavailable, StepNotYetAvailable):
            # without the number, so that equal reasons are counted together
            return NotYet("it asked for a step that was not saved")
        return None

    @property
    def tensors(self) -> int:
        """How many tensors it has asked for."""
        return 0 if self._base is None else self._base.asked_for

    def _make(self, parameters: RuleParameters) -> Any:
        base, others = self._trials()
        self._base = base
        given: dict[str, Any] = {name: wire(getattr(parameters, name)) for name in parameters.model_fields_set}
        takes = arguments(self._class)
        if others and ("other_trials" in takes or _takes_all(takes)):
            given["other_trials"] = list(others)
        return self._class(base, **given)


def as_rule(one: type, trials: Trials) -> tuple[Rule, Instance]:
    """The class as a rule, and the object that it will be made of."""
    instance = Instance(one, trials)
    takes = arguments(one)
    fields: dict[str, Any] = {
        name: (Any, ... if argument.default is inspect.Parameter.empty else argument.default)
        for name, argument in takes.items()
        if name not in NOT_PARAMETERS and argument.kind in _NAMED
    }
    model = create_model(f"{one.__name__}Parameters", __base__=ClassParameters, **fields)
    rule = Rule(
        name=one.__name__,
        severity="error",
        parameters=model,
        requires=_every_step,
        condition=instance.judge,
        other_trials="other_trials" in takes,
        documentation=inspect.cleandoc(one.__doc__ or ""),
    )
    return rule, instance


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def arguments(one: type) -> dict[str, inspect.Parameter]:
    """The arguments of the constructor after the trial, which comes first whatever it is called."""
    found = list(inspect.signature(one).parameters.values())
    if found and found[0].kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
        found = found[1:]
    return {argument.name: argument for argument in found}


def wire(value: object) -> str:
    """A parameter as SageMaker hands it to a rule: a string."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        # as lists are written in SageMaker's strings, and as `parse_list_from_str` reads them
        return ",".join(map(wire, value))
    return json.dumps(value, default=str)


def _takes_all(takes: dict[str, inspect.Parameter]) -> bool:
    return any(argument.kind is inspect.Parameter.VAR_KEYWORD for argument in takes.values())


def _every_step(parameters: RuleParameters) -> Sequence[Need]:
    """Due at every step; what it reads, it asks its trial for."""
    del parameters
    return (Progress(times=False),)
