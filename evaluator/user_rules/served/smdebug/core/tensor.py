"""Tensors and the state of a step."""

from evaluator.user_rules.modes import StepState
from evaluator.user_rules.tensor import Tensor

__all__ = ["StepState", "Tensor"]
