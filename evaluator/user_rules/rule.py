"""The base class of users' rules.

Source:
    smdebug-api.md, sections 0 and 1. The constructor changed twice between versions; all forms that rule files use
    are taken (smdebug-review.md, R27).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from evaluator.user_rules.actions import Actions
from evaluator.user_rules.exceptions import RuleEvaluationConditionMet
from evaluator.user_rules.helpers import no_refresh
from evaluator.user_rules.logger import get_logger
from evaluator.user_rules.required import RequiredTensors
from evaluator.user_rules.trial import Trial

OtherTrials = Iterable[Trial]


class Rule(ABC):
    """A condition that is looked at step by step."""

    def __init__(
        self,
        base_trial: Trial,
        *given: OtherTrials | str | None,
        action_str: str | None = None,
        other_trials: OtherTrials | None = None,
    ) -> None:
        """Take the trials to judge.

        Args:
            base_trial: the one whose steps are gone through.
            given: other trials (a list) and actions (a text), in either order, as one version or another had them.
            action_str: what to do when the condition is met, as JSON.
            other_trials: trials to compare with.

        Raises:
            TypeError: something was given twice, or is none of these.
        """
        for argument in given:
            if argument is None:
                continue
            if isinstance(argument, str) and action_str is None:
                action_str = argument
            elif isinstance(argument, list | tuple) and other_trials is None:
                other_trials = argument
            else:
                raise TypeError(
                    f"{type(self).__name__}: {argument!r} is too much; "
                    "Rule(base_trial, other_trials=None, action_str='') would be right"
                )
        self.base_trial = base_trial
        self.other_trials = other_trials
        self.trials = [base_trial, *(other_trials or [])]
        self.req_tensors = RequiredTensors(base_trial, other_trials)
        self.logger = get_logger()
        self.rule_name = type(self).__name__
        self.report: dict[str, Any] = {
            "RuleTriggered": 0,
            "Violations": 0,
            "Details": {},
            "Datapoints": 0,
            "RuleParameters": "",
        }
        self._actions = Actions(action_str, self.rule_name)

    def set_required_tensors(self, step: int) -> None:  # noqa: B027 - a rule may have nothing to say
        """Say by `self.req_tensors.add` what is needed at the step, so that it is read at once."""

    @abstractmethod
    def invoke_at_step(self, step: int) -> Any:
        """Whether the condition is met at this global step."""

    def invoke(self, step: int) -> None:
        """Wait for the step, and look whether the condition is met.

        Raises:
            RuleEvaluationConditionMet: it is.
            StepUnavailable: the step was not saved; and all that `invoke_at_step` raises.
        """
        self.base_trial.wait_for_steps([step])
        with no_refresh(self.trials):
            self.req_tensors.clear()
            self.set_required_tensors(step)
            self.req_tensors.fetch()
            met = self.invoke_at_step(step)
        if met:
            self._actions.invoke()
            raise RuleEvaluationConditionMet(self.rule_name, step)
