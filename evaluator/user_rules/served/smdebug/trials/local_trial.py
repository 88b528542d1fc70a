"""Trials in local folders."""

from evaluator.user_rules.opening import LocalTrial

__all__ = ["LocalTrial"]
