"""The base class of rules."""

from evaluator.user_rules.rule import Rule

__all__ = ["Rule"]
