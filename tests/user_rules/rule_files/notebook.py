# mypy: ignore-errors
"""No. 20: detectors that are no rules and use a trial as notebooks do."""

import smdebug.pytorch as smd


class PoorInitialization:
    def __init__(self, path):
        self.trial = smd.create_trial(path)

    def look(self):
        trial, train = self.trial, smd.modes.TRAIN
        found = {}
        for name in trial.tensor_names(collection=smd.CollectionKeys.WEIGHTS, mode=train):
            tensor = trial.tensor(name)
            for step in tensor.steps(mode=train):
                value = tensor.value(step_num=step, worker=None, mode=train)
                mean = tensor.reduction_value(step, "mean", mode=train, worker=None, abs=True)
                found[f"{name} {step}"] = [list(value.shape), float(mean)]
        return found, len(trial.tensor_names(regex="gradient", mode=train))
