"""Units of the times in profiles."""

from evaluator.user_rules.signals import TimeUnits

__all__ = ["TimeUnits"]
