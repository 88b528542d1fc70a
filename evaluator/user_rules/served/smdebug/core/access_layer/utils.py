"""The end of a run, and the signal for rules to stop."""

from evaluator.user_rules.signals import has_training_ended, is_rule_signalled_gracetime_passed, training_has_ended

__all__ = ["has_training_ended", "is_rule_signalled_gracetime_passed", "training_has_ended"]
