"""What is done when a rule fires."""

from evaluator.user_rules.actions import Actions, MessageAction, StopTrainingAction

__all__ = ["Actions", "MessageAction", "StopTrainingAction"]
