"""What is to be done when a rule fires, as its parameter says: parsed here, sent by the sinks of a job.

Source:
    smdebug-api.md, section 10. Unlike the reference, nothing is done at construction, values keep their case, and the
    form with escaped quotes that the SageMaker SDK sends is understood.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from evaluator.user_rules.exceptions import SMDebugValueError
from evaluator.user_rules.logger import get_logger

TOPIC = "SMDebugRules"
"""Where the reference publishes messages. Source: smdebug-api.md, section 10."""


@dataclass(frozen=True, slots=True)
class StopTrainingAction:
    """Stop the training job whose name starts so."""

    _training_job_prefix: str
    _rule_name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class MessageAction:
    """Send an e-mail or a text message."""

    _protocol: str
    _message_endpoint: str
    _rule_name: str = field(default="", compare=False)
    _topic_name: str = TOPIC


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
        """Say that they are due; whoever runs the rule sends them."""
        for action in self._actions:
            self._logger.debug("Action %s is due: %s", action, message)


def _entries(text: str) -> list[object]:
    if not text.strip():
        return []
    try:
        parsed = json.loads(text)
    except ValueError as error:
        try:
            # as the SDK sends it: meant to be pasted into a Python text
            parsed = json.loads(text.replace('\\"', '"'))
        except ValueError:
            raise SMDebugValueError(f"actions: {text!r} is not JSON ({error})") from error
    return parsed if isinstance(parsed, list) else [parsed]


def _action(entry: object, rule_name: str) -> Action | None:
    if not isinstance(entry, dict):
        return None
    given = {str(key).lower(): value for key, value in entry.items()}
    name = str(given.get("name", "")).strip().lower()
    if name == "stoptraining" and given.get("training_job_prefix"):
        return StopTrainingAction(str(given["training_job_prefix"]), rule_name)
    if name in {"email", "sms"} and given.get("endpoint"):
        return MessageAction(name, str(given["endpoint"]), rule_name)
    return None
