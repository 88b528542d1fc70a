"""Messages that are sent when a rule fires."""

from evaluator.user_rules.actions import MessageAction

__all__ = ["MessageAction"]
