# mypy: ignore-errors
"""No. 18, 19 and 21: actions given as None, the reduction "variance", a defective rule, value(step_num=)."""

import numpy as np
from smdebug.core.logger import get_logger
from smdebug.exceptions import *  # noqa: F403 - so it is published
from smdebug.rules.action.action import Actions
from smdebug.rules.rule import Rule


class TanhSaturationRule(Rule):
    def __init__(self, base_trial, min_threshold=1e-4, action_str=None):
        super().__init__(base_trial, action_str)
        self.min_threshold = float(min_threshold)
        self.log = get_logger()
        self.acts = Actions(action_str, self.rule_name)

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(collection="weights"):
            tensor = self.base_trial.tensor(name)
            if step not in tensor.steps(mode=modes.GLOBAL):  # noqa: F405
                continue
            if tensor.reduction_value(step, "variance", abs=True, worker=None) < self.min_threshold:
                return True
        return False


class SigmondSaturationRule(TanhSaturationRule):
    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(collection="weights"):
            if abs(self.base_trial.tensor(name).reduction_value(step, "variance") - 1) < self.min_threshold:
                return True
        return False


class DeadReluRule(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial, None)

    def invoke_at_step(self, step):
        list.append(step)
        return False


class MyAttentionEntropyRule(Rule):
    def __init__(self, base_trial, threshold=0.5):
        super().__init__(base_trial)
        self.threshold = float(threshold)

    def invoke_at_step(self, step):
        from math import log  # noqa: PLC0415 - so it is published

        entropies = []
        for name in self.base_trial.tensor_names(regex="attention"):
            rows = self.base_trial.tensor(name).value(step_num=step)
            entropies.extend(-sum(share * log(share) for share in row if share > 0) for row in rows)
        self.logger.info("entropies %s", entropies)
        return bool(entropies) and np.mean(entropies) < self.threshold


class SmallVarianceRule:
    """No rule either: it goes through all steps when it is called."""

    def __init__(self, trial, min_threshold=1e-4):
        self.trial = trial
        self.min_threshold = min_threshold

    def __call__(self):
        for name in self.trial.tensor_names(collection="weights"):
            tensor = self.trial.tensor(name)
            for step in self.trial.steps():
                if tensor.reduction_value(step, "variance") < self.min_threshold:
                    return step, name
        return None


class ValuesUnchangedRule:
    """No rule: it has no base class."""

    def __init__(self, trial):
        self.trial = trial
        self.steps = trial.steps()

    def invoke_at_step(self, step):
        return [step]
