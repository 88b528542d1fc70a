"""The base class of trials."""

from evaluator.user_rules.trial import Trial

__all__ = ["Trial"]
