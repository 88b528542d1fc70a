"""Invokes a rule step by step."""

from evaluator.user_rules.rule_invoker import invoke_rule

__all__ = ["invoke_rule"]
