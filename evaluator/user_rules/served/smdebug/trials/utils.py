"""How trials are opened."""

from evaluator.user_rules.opening import create_trial

__all__ = ["create_trial"]
