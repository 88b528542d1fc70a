"""What is to be done when a rule fires, as its parameter says: parsed here, sent by the sinks of a job.

Source:
    smdebug-api.md, section 10. Unlike the reference, nothing is done at construction, values keep their case, and the
    form with escaped quotes that the SageMaker SDK sends is understood.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from evaluator.actions.text import named_values, parse_actions
from evaluator.user_rules.exceptions import SMDebugValueError
from evaluator.user_rules.logger import get_logger

TOPIC = "SMDebugRules"
"""Where the reference publishes messages. Source: smdebug-api.md, section 10."""


MOST_DUE = 10
"""Actions that are told of one finding; a file that asks for more has lost count."""

_due: deque[dict[str, str]] = deque(maxlen=MOST_DUE)


@dataclass(frozen=True, slots=True)
class StopTrainingAction:
    """Stop the training job whose name starts so."""

    _training_job_prefix: str
    _rule_name: str = field(default="", compare=False)

    def entry(self) -> dict[str, str]:
        """As SageMaker writes it."""
        return {"name": "stoptraining", "training_job_prefix": self._training_job_prefix}


@dataclass(frozen=True, slots=True)
class MessageAction:
    """Send an e-mail or a text message."""

    _protocol: str
    _message_endpoint: str
    _rule_name: str = field(default="", compare=False)
    _topic_name: str = TOPIC

    def entry(self) -> dict[str, str]:
        """As SageMaker writes it."""
        return {"name": self._protocol, "endpoint": self._message_endpoint}


Action = StopTrainingAction | MessageAction


class Actions:
    """The actions of one rule."""

    def __init__(self, actions_str: str | None = "", rule_name: str = "") -> None:
        """Parse them.

        Raises:
            SMDebugValueError: the text is not JSON.
        """
        self._actions: list[Action] = []
        self._logger = get_logger()
        for entry in _entries(actions_str or ""):
            action = _action(entry, rule_name)
            if action is None:
                self._logger.info("Action %s is not known or lacks a parameter, it is left out", entry)
            else:
                self._actions.append(action)

    def invoke(self, message: str = "") -> None:
        """Say that they are due; the job that runs the rule does them, where its configuration allows that."""
        for action in self._actions:
            self._logger.debug("Action %s is due: %s", action, message)
            _due.append(action.entry())


def take_due() -> list[dict[str, str]]:
    """The actions that were said to be due since this was asked last."""
    taken = list(_due)
    _due.clear()
    return taken


def _entries(text: str) -> list[object]:
    try:
        return parse_actions(text)
    except ValueError as error:
        raise SMDebugValueError(f"actions: {text!r} is not JSON ({error})") from error


def _action(entry: object, rule_name: str) -> Action | None:
    given = named_values(entry)
    if given is None:
        return None
    name = str(given["name"])
    if name == "stoptraining" and given.get("training_job_prefix"):
        return StopTrainingAction(str(given["training_job_prefix"]), rule_name)
    if name in {"email", "sms"} and given.get("endpoint"):
        return MessageAction(name, str(given["endpoint"]), rule_name)
    return None
