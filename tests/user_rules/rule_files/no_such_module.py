# mypy: ignore-errors
"""No. 17: imports what does not exist."""

from sagemaker.rules.rule import Rule


class CustomGradientRule(Rule):
    def __init__(self):
        super().__init__()
