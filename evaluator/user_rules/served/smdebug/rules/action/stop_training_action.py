"""The stop of a training job when a rule fires."""

from evaluator.user_rules.actions import StopTrainingAction

__all__ = ["StopTrainingAction"]
