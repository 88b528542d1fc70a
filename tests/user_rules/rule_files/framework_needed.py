# mypy: ignore-errors
"""No. 18: needs a framework, steps through a trial of its own when imported, and takes a trial's tensor for an array."""

import numpy as np
import torch
from smdebug.core.logger import get_logger
from smdebug.exceptions import NoMoreData
from smdebug.rules.action import Actions
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import invoke_rule
from smdebug.trials import create_trial

logger = get_logger()


class Watching(Rule):
    def __init__(self, base_trial, threshold=None, action_str=None):
        super().__init__(base_trial, action_str)
        self.threshold = None if threshold is None else float(threshold)
        self.todo = Actions(action_str, self.rule_name)

    def found(self, name, step):
        raise NotImplementedError

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(collection=self.looks_at):
            if self.found(name, step):
                logger.info("%s: %s at step %s", self.rule_name, name, step)
                return True
        return False


class GradientExplodingRule(Watching):
    looks_at = "gradients"

    def __init__(self, base_trial, threshold=1e6, action_str=None):
        super().__init__(base_trial, threshold, action_str)

    def found(self, name, step):
        return self.base_trial.tensor(name).reduction_value(step, "max", abs=True) > self.threshold


class GradientVanishingRule(Watching):
    looks_at = "gradients"

    def __init__(self, base_trial, threshold=1e-6, action_str=None):
        super().__init__(base_trial, threshold, action_str)

    def found(self, name, step):
        return self.base_trial.tensor(name).reduction_value(step, "max", abs=True) < self.threshold


class WeightsNanRule(Watching):
    looks_at = "weights"

    def found(self, name, step):
        return bool(torch.isnan(self.base_trial.tensor(name)).any())


class WeightsinitializationRule(Watching):
    looks_at = "weights"

    def found(self, name, step):
        return step == 0 and bool(np.all(self.base_trial.tensor(name).value(step) == 0))


class WeightRatio(Watching):
    looks_at = "weights"

    def __init__(self, base_trial, action_str=None):
        super().__init__(base_trial, None, action_str)
        self.before = {}

    def found(self, name, step):
        now, before = self.base_trial.tensor(name).value(step), self.before.get(name)
        self.before[name] = now
        return before is not None and float(np.abs(now - before).mean()) > 1e3


try:
    invoke_rule(GradientExplodingRule(create_trial("./db")), start_step=0, end_step=2840)
except NoMoreData:
    logger.info("the trial beside this file has no more steps")
