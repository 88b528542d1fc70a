"""What a rule says it needs."""

from evaluator.user_rules.required import RequiredTensors, RequiredTensorsForTrial

__all__ = ["RequiredTensors", "RequiredTensorsForTrial"]
