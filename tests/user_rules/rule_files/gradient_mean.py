# mypy: ignore-errors
"""No. 1: fires at the first gradient whose mean magnitude exceeds a threshold."""

from smdebug.rules.rule import Rule


class CustomGradientRule(Rule):
    def __init__(self, base_trial, threshold=10.0):
        super().__init__(base_trial)
        self.threshold = float(threshold)

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(collection="gradients"):
            magnitude = self.base_trial.tensor(name).reduction_value(step, "mean", abs=True)
            if magnitude > self.threshold:
                return True
        return False
