"""Checks for a distributed training job that stalls, slows down or will not start, one in each module."""

from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result, word_of
from evaluator.sagemaker.diagnose._evidence import START_LIMIT, Evidence
from evaluator.sagemaker.diagnose._gathering import Gathering, Inputs
from evaluator.sagemaker.diagnose._walking import checks, diagnose

__all__ = [
    "START_LIMIT",
    "Check",
    "Evidence",
    "Example",
    "Found",
    "Gathering",
    "Inputs",
    "NotChecked",
    "Ok",
    "Result",
    "checks",
    "diagnose",
    "word_of",
]
