# mypy: ignore-errors
"""No. 12: the required tensors by the method name of 2019."""

from smdebug.rules.rule import Rule


class CustomGradientRule(Rule):
    def __init__(self, base_trial, threshold=10.0):
        super().__init__(base_trial)
        self.threshold = float(threshold)

    def set_required_tensors(self, step):
        for name in self.base_trial.tensors(collection="gradients"):
            self.req_tensors.add(name, steps=[step])

    def invoke_at_step(self, step):
        for tensor in self.req_tensors.get():
            if tensor.reduction_value(step, "mean", abs=True) > self.threshold:
                return True
        return None
