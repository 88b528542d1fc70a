"""Evaluates rules over the tensors that a training run saved, step by step."""

__version__ = "0.1.0"
