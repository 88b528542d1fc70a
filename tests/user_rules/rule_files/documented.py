# mypy: ignore-errors
"""No. 16: the form of the documentation, with other_trials by keyword and the method name of 2019."""

from smdebug.rules.rule import Rule


class VanishingGradientRule(Rule):
    def __init__(self, base_trial, threshold=0.0000001):
        super().__init__(base_trial, other_trials=None)
        self.threshold = float(threshold)

    def invoke_at_step(self, step):
        for name in self.base_trial.tensors(collection="gradients"):
            if self.base_trial.tensor(name).reduction_value(step, "mean", abs=True) < self.threshold:
                return True
        return False
