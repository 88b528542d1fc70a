"""Access to stores."""

from evaluator.user_rules.signals import has_training_ended, training_has_ended

__all__ = ["has_training_ended", "training_has_ended"]
