"""Trials on S3."""

from evaluator.user_rules.opening import S3Trial

__all__ = ["S3Trial"]
