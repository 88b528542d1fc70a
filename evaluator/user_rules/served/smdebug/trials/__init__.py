"""Trials and how they are opened."""

from evaluator.user_rules.opening import LocalTrial, S3Trial, create_trial
from evaluator.user_rules.trial import Trial

__all__ = ["LocalTrial", "S3Trial", "Trial", "create_trial"]
