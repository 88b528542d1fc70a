# mypy: ignore-errors
"""No. 14: counts one confusion of classes over all steps."""

import numpy as np
from smdebug.rules.rule import Rule


class MyCustomRule(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.counter = 0

    def invoke_at_step(self, step):
        guessed = np.argmax(self.base_trial.tensor("CrossEntropyLoss_input_0").value(step), axis=1)
        true = self.base_trial.tensor("CrossEntropyLoss_input_1").value(step)
        self.counter += int(np.sum((true == 34) & (guessed == 33)))
        self.logger.info("confused %s times up to step %s", self.counter, step)
        return self.counter > 5
