# mypy: ignore-errors
"""No. 4 to 10: classes that collect data per step and never fire."""

from collections import defaultdict

import numpy as np
from smdebug.rules.rule import Rule


class Collecting(Rule):
    pattern = "."

    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.found = defaultdict(dict)

    def measure(self, values):
        return float(np.mean(values))

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(regex=self.pattern):
            try:
                values = self.base_trial.tensor(name).value(step)
            except:  # noqa: E722 - so it is published
                self.logger.warning("no %s at step %s", name, step)
                continue
            self.found[name][step] = self.measure(values)
        return False


class ActivationOutputs(Collecting):
    pattern = ".*relu_output"


class ActivationInputs(Collecting):
    pattern = ".*relu_input"


class GradientsLayer(Collecting):
    pattern = "^gradient"


class GradientsAcrossLayers(Collecting):
    pattern = "^gradient"

    def measure(self, values):
        return float(np.abs(values).max())


class Inputs(Collecting):
    pattern = ".*relu_input_0"


class Outputs(Collecting):
    pattern = ".*relu_output_0"


class WeightRatio(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.found = defaultdict(dict)
        self.before = {}

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(regex=".*weight$"):
            if name.startswith("gradient"):
                continue
            now = self.base_trial.tensor(name).value(step)
            if name in self.before:
                self.found[name][step] = float(np.abs(now - self.before[name]).mean() / np.abs(now).mean())
            self.before[name] = now
