"""Rules and what invokes them."""

from evaluator.user_rules.required import RequiredTensors, RequiredTensorsForTrial
from evaluator.user_rules.rule import Rule
from evaluator.user_rules.rule_invoker import invoke_rule

__all__ = ["RequiredTensors", "RequiredTensorsForTrial", "Rule", "invoke_rule"]
