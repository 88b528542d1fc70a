# mypy: ignore-errors
"""No. 15: opens a trial beside the class when the module is imported."""

from smdebug.rules import Rule, invoke_rule
from smdebug.trials import create_trial


class CustomGradientRule(Rule):
    def __init__(self, base_trial, threshold=10.0):
        super().__init__(base_trial)
        self.threshold = float(threshold)

    def invoke_at_step(self, step):
        names = self.base_trial.tensor_names(collection="gradients")
        means = (self.base_trial.tensor(name).reduction_value(step, "mean", abs=True) for name in names)
        return any(mean > self.threshold for mean in means)


invoke_rule(CustomGradientRule(create_trial("./output")), start_step=0, end_step=2)
