# mypy: ignore-errors
"""The rule that everybody writes first: gradients above a threshold."""

from smdebug.rules.rule import Rule


class LargeGradient(Rule):
    def __init__(self, base_trial, threshold=10.0):
        super().__init__(base_trial)
        self.threshold = float(threshold)

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(collection="gradients"):
            if self.base_trial.tensor(name).reduction_value(step, "mean", abs=True) > self.threshold:
                return True
        return False
